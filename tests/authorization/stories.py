"""What functions do, each by its entry point and with the permissions of its role alone."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from fakes.builders import NOW, make_definition, make_running_attempt, make_running_job, make_timeline_entry
from fakes.fleet import make_fleet_request, make_override
from fakes.functions import FakeContext, make_batch
from fakes.role_world import ACCOUNT, CHECKPOINTS, CLUSTER, FAMILY, REGION, SUFFIX, RoleWorld, unique
from fakes.simulated_region import container, gpu
from fakes.stored_machines import change, make_machine
from fakes.webhook import EVENTS
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt_key import AttemptKey
from relaunch.core.jobs.effects import (
    AdmitWaiting,
    CountRun,
    LookForWarning,
    ReleaseMachine,
    RememberCapacity,
    RequestLaunch,
    RequestMachine,
    StopTask,
)
from relaunch.core.machines.events import InstanceLaunched
from relaunch.core.machines.machine import (
    AdmitJobs,
    AskFleet,
    DeregisterNode,
    MachineState,
    RememberFailures,
    RememberLaunch,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.quotas import QUOTA_CODES
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.entrypoints.consumers import CONSUMERS, consumer
from relaunch.entrypoints.job_api import answer_request
from relaunch.entrypoints.reconcile import reconcile
from relaunch.ports import PortError
from relaunch.usecases.advance_job import finish_pending
from relaunch.usecases.advance_machine import finish_effects
from relaunch.usecases.refresh_offerings import refresh_offerings
from relaunch_local.ecs import Purchase

WEBHOOK_SECRET, INTAKE_QUEUE = "RELAUNCH_WEBHOOK_SECRET_ARN", "RELAUNCH_INTAKE_QUEUE_URL"
SPOT = OfferingKey("g5.xlarge", "us-east-1a", PurchaseOption.SPOT)
TASK = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task/{CLUSTER}/0a1b2c3d4e5f60718293a4b5c6d7e8f9"
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
SINGLE_IMAGE = {"config": {"digest": "sha256:2"}}


def make_demo() -> JobDefinition:
    """Make the definition that the jobs of all stories are of."""
    uri = f"s3://{CHECKPOINTS}/demo/"
    return make_definition(name="demo", task_definition=FAMILY, checkpoint_uri=uri, command=())


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
            ("sts", "GetWebIdentityToken"): lambda **_: {"WebIdentityToken": "t"},
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
        queue = queue or f"{CONSUMERS[function].title().replace('-', '')}Queue"
        batch = make_batch(body)
        for record in batch["Records"]:
            record["eventSourceARN"] = f"arn:aws:sqs:{REGION}:{ACCOUNT}:relaunch-{queue}-{SUFFIX}"
        with self.world.function(function) as dependencies:
            consumer(function)(batch, FakeContext(), dependencies)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request to job_api, and return the answer."""
        with self.world.function("job_api") as dependencies:
            return answer_request(request, unique("request"), dependencies.deps)

    def reconcile(self) -> None:
        """Invoke reconcile."""
        # What one part could not do is raised once all parts were tried.
        with self.world.function("reconcile") as dependencies, suppress(PortError):
            reconcile(dependencies, FakeContext(milliseconds=600_000).get_remaining_time_in_millis)

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

    def _listed(self, prefix: str) -> list[dict[str, Any]]:
        at = self.world.region.clock.now()
        return [{"Key": key, "Size": 2, "LastModified": at} for key in self.checkpoints if key.startswith(prefix)]

    def _object(self, **asked: Any) -> Any:
        if asked["Key"] not in self.checkpoints:
            raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "no"}}, "GetObject")
        return {"Body": io.BytesIO(json.dumps(MANIFEST).encode())}


def _body(sample: str) -> str:
    """Return the body of the message in a sample event."""
    return str(json.loads((EVENTS / f"{sample}.json").read_text())["Records"][0]["body"])


def tell_of_a_life_on_machines(stories: Stories) -> None:
    """A push trains on a machine of our own, which EC2 takes away; the next attempt ends well."""
    world = stories.world
    stories.deliver("submit_job", _body("sqs.intake.github-push"))
    job_id = json.loads(stories.received("AttemptsQueue"))["job_id"]
    for attempt in (1, 2):
        stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
        stories.deliver("request_machine", stories.received("MachinesQueue"))
        stories.pass_time(240.0)
        stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
        stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
        stories.pass_time(120.0)
        stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="RUNNING"))
        if attempt == 1:
            _interrupt(stories, job_id)
    stories.pass_time(900.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="STOPPED"))
    job = world.stores.jobs.load_job(job_id)
    assert job is not None
    assert job.state.is_final, job.reason
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(120.0)
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.reconcile()


def _interrupt(stories: Stories, job_id: str) -> None:
    world = stories.world
    stories.checkpoints += [f"demo/{job_id}/attempt-1/step-0000120/{name}" for name in ("manifest.json", "state.json")]
    host = next(each for each in world.region.simulator.instances.by_id.values() if each.tasks)
    world.region.simulator.interrupt(host.instance_id)
    stories.deliver("observe_capacity", stories.event("EC2 Spot Instance Interruption Warning"))
    # The last moment at which the task can save.
    stories.pass_time(30.0)
    stories.deliver("observe_capacity", stories.event("EC2 Spot Instance Interruption Warning"))
    stories.pass_time(300.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="STOPPED"))


def _launch_instance(stories: Stories) -> str:
    """Launch an instance of the stack that no machine accounts for, and return its ID."""
    tags = [{"Key": "relaunch:stack", "Value": "relaunch"}, {"Key": "relaunch:machine", "Value": "m-unknown"}]
    kinds = ("instance", "volume", "fleet")
    # EC2 launches two a second.
    stories.pass_time(2.0)
    return stories.world.region.launch(TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in kinds])


def tell_of_an_agent_that_stays_away(stories: Stories) -> None:
    """A machine hangs: its status checks fail, and it is ended once its training saves no more."""
    world = stories.world
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    job_id = json.loads(stories.received("AttemptsQueue"))["job_id"]
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(240.0)
    stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.pass_time(120.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="RUNNING"))
    stories.checkpoints += [f"demo/{job_id}/attempt-1/step-0000120/{name}" for name in ("manifest.json", "state.json")]
    job = world.stores.jobs.load_job(job_id)
    assert job is not None
    instances = world.region.simulator.instances
    host = instances.by_id[job.current_attempt.placement.instance_id]
    instances.set_agent(host, connected=False)
    host.is_impaired = True
    for _ in range(25):
        stories.pass_time(60.0)
        stories.reconcile()
    assert host.is_alive
    stories.checkpoints.clear()
    stories.pass_time(60.0)
    stories.reconcile()
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    assert not host.is_alive


def tell_of_a_machine_in_another_zone(stories: Stories) -> None:
    """A request names one subnet of each zone."""
    place = make_override("g5.xlarge", "us-east-1b", PurchaseOption.SPOT, subnet_id="subnet-b")
    machine_id = unique("m")
    request = make_fleet_request(place, machine_id=machine_id, launch_template_id="lt-1", launch_template_version="2")
    with stories.world.function("request_machine") as dependencies:
        tags = {"relaunch:stack": "relaunch", "relaunch:machine": machine_id}
        assert isinstance(dependencies.deps.fleet.request(replace(request, tags=tags)), InstanceLaunched)


def tell_of_effects_left_behind(stories: Stories) -> None:
    """Whoever loads a job or a machine does first what its last writer left undone."""
    world = stories.world
    stores = world.stores
    for function in ("submit_job", "job_api", "launch_attempt", "observe_capacity", "observe_task", "reconcile"):
        machine_id, job_id = unique("m"), unique("left")
        stores.machines.save_machine(change(make_machine(machine_id)))
        pending = (
            StopTask(TASK, "left undone"),
            RequestLaunch(),
            RememberCapacity(SPOT, "none", NOW, NOW + timedelta(minutes=5)),
            CountRun(SpotRun(SPOT, job_id, Observed.START, NOW)),
            AdmitWaiting(),
            LookForWarning("i-0a1b2c3d4e5f60718"),
            RequestMachine(machine_id),
            ReleaseMachine(machine_id, "left undone"),
        )
        job = make_running_job(job_id, attempt=make_running_attempt(), pending=pending, machine_id=machine_id)
        assert stores.jobs.create_job(job, [make_timeline_entry()])
        with world.function(function) as dependencies:
            finish_pending(replace(job, version=1), dependencies.deps)
    for function in (*CONSUMERS, "job_api", "reconcile"):
        machine_id, instance_id = unique("m"), _launch_instance(stories)
        effects = (
            TellJobs((unique("told"),)),
            AdmitJobs(),
            RememberFailures((CapacityFailure(SPOT, "none", NOW, NOW + timedelta(minutes=5)),)),
            RememberLaunch(SPOT, NOW),
            AskFleet(),
            TerminateInstance(instance_id),
            DeregisterNode(TASK.replace(":task/", ":container-instance/")),
        )
        machine = make_machine(machine_id, pending=effects, state=MachineState.ENDING)
        saved = stores.machines.save_machine(change(machine))
        with world.function(function) as dependencies:
            finish_effects(saved, dependencies.deps)


def tell_of_a_request_that_ec2_refuses(stories: Stories) -> None:
    """The machine is given up, and no longer counted."""
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    simulator = stories.world.region.simulator
    for purchase in Purchase:
        simulator.set_capacity("g5.xlarge", purchase, 0)
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    for purchase in Purchase:
        simulator.set_capacity("g5.xlarge", purchase, None)


def tell_of_messages_that_fail(stories: Stories) -> None:
    """A message that no function can read goes to the dead-letter queue; one that comes too early goes back."""
    for function in CONSUMERS:
        stories.deliver(function, "no message")
    stories.world.is_throttled = True
    stories.deliver("launch_attempt", json.dumps({"job_id": "demo-1"}))
    stories.deliver("request_machine", json.dumps({"machine_id": "m-1"}))
    stories.deliver("submit_job", _body("sqs.intake.github-push"))
    stories.deliver("submit_job", _body("sqs.intake.s3"), "UploadsQueue")
    stories.deliver("observe_capacity", _body("sqs.warnings.spot-interruption-warning"))
    stories.deliver("observe_task", _body("sqs.task-changes.stopped-spot"))
    stories.world.is_throttled = False


def tell_of_requests(stories: Stories) -> None:
    """Whoever may invoke job_api plans, submits, shows, cancels and retries."""
    assert "plan" in stories.ask(action="plan", definition="demo")
    submitted = stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    job_id = submitted["job"]["job_id"]
    stories.ask(action="show", job_id=job_id)
    stories.ask(action="cancel", job_id=job_id, reason="of a story")
    stories.ask(action="retry", job_id=job_id, idempotency_key=unique("key"))


def tell_of_an_image_of_one_platform(stories: Stories) -> None:
    """What such an image is for is not in its manifest, but in its configuration."""
    stories.image = SINGLE_IMAGE
    with suppress(PortError):
        stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    for function in ("submit_job", "reconcile"):
        with stories.world.function(function) as dependencies, suppress(PortError):
            dependencies.deps.images.find_image("trainer", "latest")
    stories.image = INDEX


def tell_of_a_family_whose_newest_revision_is_inactive(stories: Stories) -> None:
    """Then all revisions are listed."""
    answer = stories.world.region.ecs.describe_task_definition(taskDefinition=FAMILY)
    inactive = {**answer, "taskDefinition": {**answer["taskDefinition"], "status": "INACTIVE"}}
    stories.world.answers |= {
        ("ecs", "DescribeTaskDefinition"): lambda **_: inactive,
        ("ecs", "ListTaskDefinitions"): lambda **_: {"taskDefinitionArns": []},
    }
    for function in ("submit_job", "job_api"):
        with stories.world.function(function) as dependencies, suppress(PortError):
            dependencies.deps.revisions.newest_active(FAMILY)
    for name in ("DescribeTaskDefinition", "ListTaskDefinitions"):
        del stories.world.answers["ecs", name]


def tell_of_old_derived_revisions(stories: Stories) -> None:
    """Reconcile deregisters the revisions that no job has used for a day."""
    tell_of_a_life_on_machines(stories)
    world = stories.world
    for _ in range(2):
        world.region.clock.advance(timedelta(days=2).total_seconds())
        stories.reconcile()


def tell_of_instances_of_nobody(stories: Stories) -> None:
    """Reconcile ends what no machine accounts for, and looks at every task of the cluster."""
    _launch_instance(stories)
    stories.world.region.run("g5-spot", taskDefinition=FAMILY, startedBy="unknown/1")
    for _ in range(30):
        stories.pass_time(60.0)
        stories.reconcile()


def tell_of_what_the_cluster_is_asked(stories: Stories) -> None:
    """What lost events should have told is looked up, and what is left of machines."""
    region = stories.world.region
    task = region.run_one("g5-spot", taskDefinition=FAMILY)
    started = region.wait_for(task, "RUNNING")
    node, instance_id = started["containerInstanceArn"], region.instance_of(task)
    ecs = {
        "launch_attempt": ("find_tasks_of", "describe", "find_gpus", "find_remaining_resources", "stop"),
        "observe_capacity": ("find_tasks_on", "drain"),
        "observe_task": ("find_node", "stop"),
        "reconcile": ("describe", "list_tasks", "list_nodes", "stop"),
        "submit_job": ("stop",),
        "job_api": ("stop",),
    }
    arguments: Mapping[str, tuple[Any, ...]] = {
        "describe": ([task],),
        "drain": (instance_id,),
        "find_gpus": ("g5.xlarge", "g5-spot"),
        "find_node": (node,),
        "find_remaining_resources": ("g5.xlarge", "g5-spot"),
        "find_tasks_of": (AttemptKey("job", 1),),
        "find_tasks_on": (instance_id,),
        "stop": (task, "of a story"),
    }
    for function, methods in ecs.items():
        with stories.world.function(function) as dependencies:
            target = dependencies.deps.targets.named(Target.ECS)
            for method in methods:
                found = getattr(target, method)(*arguments.get(method, ()))
                if isinstance(found, Iterator):
                    list(found)
    with stories.world.function("launch_attempt") as dependencies:
        dependencies.deps.launches.count_requests()
    with stories.world.function("request_machine") as dependencies:
        dependencies.deps.jobs.load_job("demo-1")
    for function in ("request_machine", "reconcile"):
        with stories.world.function(function) as dependencies:
            dependencies.deps.fleet.describe([instance_id])
            dependencies.deps.targets.named(Target.ECS).deregister(node)
    for function in ("observe_task", "reconcile"):
        with stories.world.function(function) as dependencies:
            dependencies.deps.hosts.look(instance_id, is_spot=True)


def tell_of_a_revision_that_is_run_as_it_is(stories: Stories) -> None:
    """An image that is named by its digest cannot move: there is nothing to derive."""
    image = f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/trainer@sha256:{'1' * 64}"
    roles = {name: f"arn:aws:iam::{ACCOUNT}:role/relaunch/{name}" for name in ("taskRoleArn", "executionRoleArn")}
    stories.world.region.register(FAMILY, container(image=image, resourceRequirements=gpu(), stopTimeout=90), **roles)
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(240.0)
    stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))


def tell_of_a_capacity_block_that_ends(stories: Stories) -> None:
    """EC2 takes its instances 30 minutes before its end."""
    stories.deliver("observe_capacity", _body("sqs.warnings.capacity-block-expiration-warning"))


def tell_of_clusters_of_alibaba_cloud(stories: Stories) -> None:
    """A function signs in to a cluster where a job is on it."""
    for function in ("submit_job", "job_api", "launch_attempt", "reconcile"):
        for target in (Target.ACK, Target.ACS):
            with stories.world.function(function) as dependencies, suppress(PortError):
                dependencies.deps.targets.named(target).describe(["resnet-1f2e3d4c-1-1"])


def tell_of_a_refresh(stories: Stories) -> None:
    """Types, zones, prices, scores and quotas are asked for, and kept in one item."""
    for _ in range(2):
        with stories.world.refreshing() as dependencies, suppress(PortError):
            refresh_offerings(dependencies)
        stories.pass_time(timedelta(days=2).total_seconds())


def tell_of_a_delivery(stories: Stories) -> None:
    """The webhook reads its secret, and enqueues what GitHub signed."""
    variables = {name: stories.world.variable("github_webhook", name) for name in (WEBHOOK_SECRET, INTAKE_QUEUE)}
    with stories.world.webhook() as client:
        client.read_secret(variables[WEBHOOK_SECRET], "AWSCURRENT")
        client.send_message(variables[INTAKE_QUEUE], "{}")


STORIES = (
    tell_of_a_life_on_machines,
    tell_of_effects_left_behind,
    tell_of_messages_that_fail,
    tell_of_what_the_cluster_is_asked,
    tell_of_a_revision_that_is_run_as_it_is,
    tell_of_requests,
    tell_of_a_request_that_ec2_refuses,
    tell_of_an_image_of_one_platform,
    tell_of_a_family_whose_newest_revision_is_inactive,
    tell_of_old_derived_revisions,
    tell_of_instances_of_nobody,
    tell_of_a_capacity_block_that_ends,
    tell_of_clusters_of_alibaba_cloud,
    tell_of_a_machine_in_another_zone,
    tell_of_an_agent_that_stays_away,
    tell_of_a_refresh,
    tell_of_a_delivery,
)
