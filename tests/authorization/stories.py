"""The stack of one story: what its functions get, and what AWS answers them."""

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from fakes.builders import make_definition
from fakes.functions import FakeContext, make_batch
from fakes.role_world import ACCOUNT, CHECKPOINTS, FAMILY, REGION, SUFFIX, RoleWorld, unique
from fakes.simulated_region import container, gpu
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.entrypoints.consumers import CONSUMERS, consumer
from relaunch.entrypoints.job_api import answer_request
from relaunch.entrypoints.plan_api import answer_plan_request
from relaunch.entrypoints.reconcile import reconcile
from relaunch.ports import PortError

MANIFEST = {"format": 1, "step": 120, "attempt": 1, "objects": [{"key": "state.json", "size": 2}]}
INDEX = {"manifests": [{"digest": "sha256:1", "platform": {"os": "linux", "architecture": "amd64"}}]}
G5_XLARGE = {
    "InstanceType": "g5.xlarge",
    "VCpuInfo": {"DefaultVCpus": 4},
    "MemoryInfo": {"SizeInMiB": 16_384},
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
    "NetworkInfo": {"EfaSupported": False, "NetworkPerformance": "Up to 10 Gigabit"},
    "BareMetal": False,
    "SupportedUsageClasses": ["on-demand", "spot"],
    "GpuInfo": {"Gpus": [{"Name": "A10G", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 22_888}}]},
}


def make_demo() -> JobDefinition:
    """Make the definition that the jobs of all stories are of."""
    uri = f"s3://{CHECKPOINTS}/demo/"
    return make_definition(
        name="demo",
        task_definition=FAMILY,
        checkpoint_uri=uri,
        command=(),
        purchase=PurchasePolicy.RESERVED_THEN_SPOT_THEN_ON_DEMAND,
    )


@dataclass
class Stories:
    """The stories of one stack."""

    world: RoleWorld = field(default_factory=RoleWorld)
    image: Mapping[str, Any] = field(default_factory=lambda: INDEX)
    checkpoints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Have what a stack has when its first event comes."""
        world = self.world
        sizes = ("xlarge", "2xlarge", "4xlarge", "8xlarge")
        offered = [{"InstanceType": f"g5.{size}", "Location": "us-east-1a"} for size in sizes]
        world.answers |= {
            ("ecr", "BatchGetImage"): self._image,
            ("ecr", "GetDownloadUrlForLayer"): lambda **_: {"downloadUrl": "https://127.0.0.1:9/"},
            ("s3", "ListObjectsV2"): lambda **asked: {"Contents": self._listed(asked["Prefix"])},
            ("s3", "GetObject"): self._object,
            ("secretsmanager", "GetSecretValue"): self._kubeconfig,
            ("eks", "DescribeCluster"): self._eks_cluster,
            ("sts", "GetWebIdentityToken"): lambda **_: {"WebIdentityToken": "t"},
            ("events", "PutEvents"): lambda **_: {"FailedEntryCount": 0, "Entries": [{"EventId": "taken"}]},
            ("pricing", "GetProducts"): lambda **_: {"PriceList": []},
            ("service-quotas", "GetServiceQuota"): lambda **_: {"Quota": {"Value": 64.0}},
            ("ec2", "DescribeSpotPriceHistory"): self._prices,
            ("ec2", "DescribeCapacityReservations"): lambda **_: {"CapacityReservations": []},
            ("ec2", "GetSpotPlacementScores"): lambda **_: {"SpotPlacementScores": []},
            ("ec2", "DescribeInstanceTypes"): lambda **_: {"InstanceTypes": [G5_XLARGE]},
            ("ec2", "DescribeInstanceTypeOfferings"): lambda **_: {"InstanceTypeOfferings": offered},
        }
        roles = {name: f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}" for name in ("taskRoleArn", "executionRoleArn")}
        image = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/trainer:latest"
        trainer = container(image=image, resourceRequirements=gpu(), stopTimeout=90)
        world.region.register(FAMILY, trainer, **roles)
        world.region.provider()
        world.stores.definitions.save_definition(make_demo())
        snapshot = OfferingsSnapshot(REGION)
        for part, content in (
            (SnapshotPart.ZONES, {"g5.xlarge": ("us-east-1a", "us-east-1b")}),
            (SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 1.0}),
            (SnapshotPart.QUOTAS, dict.fromkeys(QUOTA_CODES, 64.0)),
        ):
            snapshot = snapshot.with_part(part, content, Origin("EC2", world.region.clock.now()))
        world.snapshots.save_snapshot(snapshot)

    # ── What happens ────────────────────────────────────────────────────────────────────────────────────────────────

    def deliver(self, function: str, body: str, queue: str = "") -> None:
        """Hand a message to a function, from its queue or another one."""
        queue = queue or _queue_of(function)
        batch = make_batch(body)
        for record in batch["Records"]:
            record["eventSourceARN"] = f"arn:aws:sqs:{REGION}:{ACCOUNT}:relaunch-{queue}-{SUFFIX}"
        with self.world.function(function) as dependencies:
            consumer(function)(batch, FakeContext(), dependencies)

    def deliver_suspects(self, function: str, queue: str = "") -> None:
        """Hand two unreadable messages to a function that were tried before: each is to come back at its own time."""
        batch = make_batch("{", "[")
        for record in batch["Records"]:
            record["eventSourceARN"] = (
                f"arn:aws:sqs:{REGION}:{ACCOUNT}:relaunch-{queue or _queue_of(function)}-{SUFFIX}"
            )
            record["attributes"]["ApproximateReceiveCount"] = "2"
        with self.world.function(function) as dependencies:
            consumer(function)(batch, FakeContext(), dependencies)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request to job_api, and return the answer."""
        with self.world.function("job_api") as dependencies:
            return answer_request(request, unique("request"), dependencies.deps)

    def compare(self, definitions: str) -> dict[str, Any]:
        """Have plan_api plan a definition file, and return the answer."""
        with self.world.function("plan_api") as dependencies:
            return answer_plan_request({"action": "compare", "definitions": definitions}, dependencies.deps)

    def reconcile(self) -> None:
        """Invoke reconcile."""
        # What one part could not do is raised once all parts were tried.
        with self.world.function("reconcile") as dependencies, suppress(PortError):
            reconcile({}, dependencies, FakeContext(milliseconds=600_000).get_remaining_time_in_millis)

    def received(self, queue: str) -> str:
        """Return the message that was sent last to a queue."""
        return next(body for name, body in reversed(self.world.sent) if name == queue)

    def event(self, kind: str, **detail: Any) -> str:
        """Return the newest event of ECS or EC2 with this detail."""
        found = [each for each in self.world.region.events if each["detail-type"] == kind]
        return json.dumps(next(e for e in reversed(found) if detail.items() <= e["detail"].items()), default=str)

    def pass_time(self, seconds: float = 600.0) -> None:
        """Let the region go on."""
        self.world.region.clock.advance(seconds)

    # ── Answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _image(self, **_: Any) -> Any:
        found = {"imageId": {"imageDigest": f"sha256:{'1' * 64}"}, "imageManifest": json.dumps(self.image)}
        return {"images": [found], "failures": []}

    def _prices(self, **_: Any) -> Any:
        at = self.world.region.clock.now()
        price = {"InstanceType": "g5.xlarge", "AvailabilityZone": "us-east-1a", "SpotPrice": "0.4", "Timestamp": at}
        return {"SpotPriceHistory": [price]}

    def _kubeconfig(self, **_: Any) -> Any:
        error = {"Error": {"Code": "InternalServiceError", "Message": "Secrets Manager is down"}}
        raise ClientError(error, "GetSecretValue")

    def _eks_cluster(self, **_: Any) -> Any:
        raise ClientError({"Error": {"Code": "ServerException", "Message": "EKS is down"}}, "DescribeCluster")

    def _listed(self, prefix: str) -> list[dict[str, Any]]:
        at = self.world.region.clock.now()
        return [{"Key": key, "Size": 2, "LastModified": at} for key in self.checkpoints if key.startswith(prefix)]

    def _object(self, **asked: Any) -> Any:
        if asked["Key"] not in self.checkpoints:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "no"}}, "GetObject")
        return {"Body": io.BytesIO(json.dumps(MANIFEST).encode())}


def _queue_of(function: str) -> str:
    return f"{CONSUMERS[function].title().replace('-', '')}Queue"
