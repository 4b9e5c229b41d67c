"""The local world: the emulator, the ECS simulator, the deployed application and the forwarding of events."""

import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.core.definitions.targets import Target
from relaunch_local.ecs import EcsServer, EcsSimulator, Timing, WallClock, Watchdog
from relaunch_local.iam.policies import PolicyAuthorizer
from relaunch_local.iam.reference import is_without_key
from relaunch_local.internet.internet import Internet
from relaunch_local.request_guard.credentials import random_root_credentials
from relaunch_local.request_guard.guard import LOOPBACK_HOSTS, REFUSAL, RequestGuard
from relaunch_local.stack.account import CHECKPOINTS, DATASETS, provision_account
from relaunch_local.stack.alibaba_cluster import NAMESPACE, AlibabaCluster, running_cluster
from relaunch_local.stack.container_logs import ContainerLogs
from relaunch_local.stack.containers import EXAMPLES, Containers, ImageFiles
from relaunch_local.stack.deployment import STACK, Deployment, deploy
from relaunch_local.stack.emulator import EMULATOR_LOG, Emulator, running_emulator
from relaunch_local.stack.forwarder import DeliveryFaults, EmulatorTargets, Event, EventForwarder
from relaunch_local.stack.policies import RolePolicies
from relaunch_local.stack.training_cluster import (
    CLUSTER,
    HOLD,
    Training,
    capacity_providers,
    machine_parameters,
    provision_cluster,
    regional_snapshot,
    simulator_settings,
)

_KUBECONFIG = "kubeconfig"
_GITHUB_TOKEN = "relaunch-github-statuses"  # noqa: S105 - the name of a secret

Report = Callable[[str], None]

_REFUSED = {"AccessDeniedException", "UnauthorizedOperation"}
SIMULATED_SERVICES = frozenset({"ecs", "ec2"})
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only a new temporary folder in it is used
REQUIRED_BYTES = 4 * 2**30


@dataclass(frozen=True)
class LocalWorldSettings:
    """The settings of a local world."""

    speed: float = 40.0
    """How much faster than on AWS machines come and go."""
    training: Training = field(default_factory=Training)
    delivery_faults: DeliveryFaults = field(default_factory=DeliveryFaults)
    provisioning_deadline_seconds: float = 480.0
    """As the template's parameter: functions start no faster than on AWS."""
    has_capacity_providers: bool = False
    """Whether jobs run on the cluster's capacity providers instead of on machines of our own."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Additional or overriding template parameters."""
    target: Target = Target.ECS
    """Where jobs run: on ECS, or on a cluster of ACK or ACS."""
    internet: Internet | None = None
    """The hosts beyond AWS that functions reach; without it they reach none."""
    github_token: str = ""
    """The token of GitHub that commit statuses are set with; empty sets none."""
    hosts: Collection[str] = ()
    """The hosts beside those of loopback that requests may name, for containers that have a loopback of their own."""
    has_own_disks: bool = False
    """Whether each container has a copy of examples/, as on a machine; else all of them run in the folder itself."""


@dataclass(frozen=True)
class LocalWorld:
    """A running local world."""

    emulator: Emulator
    simulator: EcsSimulator
    simulator_url: str
    deployment: Deployment
    forwarder: EventForwarder
    emulator_log: Path
    """The output of the emulator and its functions; removed with the world."""
    policies: RolePolicies
    alibaba: AlibabaCluster | None = None

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which the `relaunch` command and boto3 use this world."""
        return {
            **self.emulator.environment(),
            **simulated_endpoints(self.simulator_url),
            "RELAUNCH_STACK": STACK,
            **({"KUBECONFIG": str(self.emulator_log.with_name(_KUBECONFIG))} if self.alibaba else {}),
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client of the root user; ECS and EC2 are the simulator's."""
        is_simulated = service in SIMULATED_SERVICES
        served = replace(self.emulator, endpoint_url=self.simulator_url) if is_simulated else self.emulator
        return served.client(service)

    def refusals(self) -> list[str]:
        """Return the calls so far that their callers' policies did not allow."""
        found = [line.strip() for line in self.emulator_log.read_text(errors="replace").splitlines() if REFUSAL in line]
        with self.simulator.clock.lock:
            refused = [each for each in self.simulator.requests if set(each.outcome) & _REFUSED]
        return found + [f"{each.service}:{each.action} by {each.access_key}" for each in refused]

    def function_credentials(self, name: str) -> dict[str, str]:
        """Return credentials, as variables, of the role of a function that runs elsewhere than in the emulator."""
        return self.policies.open_session(self.emulator, name)

    def publish(self, event: Event) -> None:
        """Publish an event that neither the emulator nor the simulator emits, such as ECR's."""
        self.forwarder.publish(event)

    def hold_trainings(self) -> None:
        """Let trainings wait at the step where they hold, and on SIGTERM before they save, until `release_trainings`.

        A training of seconds could end before it is interrupted, on a machine that has other things to do.
        """
        self.client("s3").put_object(Bucket=CHECKPOINTS, Key=HOLD, Body=b"")

    def release_trainings(self) -> None:
        """Let held trainings go on."""
        self.client("s3").delete_object(Bucket=CHECKPOINTS, Key=HOLD)


@contextmanager
def local_world(settings: LocalWorldSettings | None = None, report: Report = lambda _: None) -> Iterator[LocalWorld]:
    """Run a local world; its processes and folders are removed however this process ends.

    Raises:
        EmulatorError, NotBuiltError, DeploymentError: the message says what to do.
    """
    settings = settings or LocalWorldSettings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        root = random_root_credentials()
        policies = RolePolicies(root)
        containers = make_containers(settings, folder)
        server = stack.enter_context(running_simulator(settings, policies, containers))
        report(f"ECS simulator at {server.url}")
        emulator = stack.enter_context(
            running_emulator(folder, function_environment(settings, server.url, folder), root, settings.hosts)
        )
        report(f"emulator of the other services at {emulator.endpoint_url}")
        credentials = provision_account(emulator)
        containers.connect(emulator, credentials, stack.enter_context(closing(ContainerLogs(emulator))))
        runs_pods = settings.target.capabilities.runs_pods
        alibaba = stack.enter_context(running_cluster(settings.target, settings.speed)) if runs_pods else None
        secret = alibaba.connect(emulator, credentials) if alibaba else ""
        if alibaba:
            report(f"API server of a cluster: export KUBECONFIG={alibaba.write_kubeconfig(folder / _KUBECONFIG)}")
        provision_cluster(server.simulator, settings.training, root.access_key_id)
        # Only requests of the application are recorded.
        server.simulator.requests.clear()
        report("deploying template.yaml")
        deployment = deploy(emulator, template_parameters(settings, secret) | store_github_token(settings, emulator))
        policies.load_function_roles(emulator)
        save_offerings(deployment)
        forwarder = stack.enter_context(closing(EventForwarder(EmulatorTargets(emulator), settings.delivery_faults)))
        with server.simulator.clock.lock:
            server.simulator.subscribe(forwarder.publish)
        # Containers end first, so that their last output and events are delivered.
        stack.callback(server.close)
        report(f"stack {STACK} is deployed, the webhook is at {deployment.webhook_url}")
        yield LocalWorld(
            emulator, server.simulator, server.url, deployment, forwarder, folder / EMULATOR_LOG, policies, alibaba
        )


def make_containers(settings: LocalWorldSettings, folder: Path) -> Containers:
    """Return what runs the containers; `folder` is the world's."""
    if not settings.has_own_disks:
        return Containers()
    image = ImageFiles(shutil.copytree(EXAMPLES, folder / "image", ignore=shutil.ignore_patterns("__pycache__")))
    return Containers(lambda _image: image)


def save_offerings(deployment: Deployment) -> None:
    """Save what the function refresh_offerings would: it runs every hour, and the simulator has few types."""
    table = deployment.outputs["TableName"]
    DynamoDbSnapshots(deployment.emulator.client("dynamodb"), table).save_snapshot(regional_snapshot(datetime.now(UTC)))


def function_environment(settings: LocalWorldSettings, simulator_url: str, folder: Path) -> dict[str, str]:
    """Return the variables that functions have beside those of the template."""
    internet = settings.internet.environment(folder / "internet") if settings.internet else {}
    return {**simulated_endpoints(simulator_url), **internet}


def store_github_token(settings: LocalWorldSettings, emulator: Emulator) -> dict[str, str]:
    """Store the token of GitHub, if there is one; return the parameters that name its secret."""
    if not settings.github_token:
        return {}
    secrets = emulator.client("secretsmanager")
    stored = secrets.create_secret(Name=_GITHUB_TOKEN, SecretString=settings.github_token)
    return {"GithubStatusTokenSecretArn": str(stored["ARN"])}


def simulated_endpoints(simulator_url: str) -> dict[str, str]:
    """Return the endpoint variables of the services that the simulator handles instead of the emulator.

    The simulator rejects Service Quotas at once; the emulator takes seconds to do so.
    """
    return {f"AWS_ENDPOINT_URL_{each}": simulator_url for each in ("ECS", "EC2", "SERVICE_QUOTAS")}


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Create the world's folder, in memory if there is room.

    The emulator unpacks layers and packages into it: thousands of small files, which a busy disk takes seconds to write
    and to remove.
    """
    has_room = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > REQUIRED_BYTES
    place = SHARED_MEMORY if has_room else None
    return tempfile.TemporaryDirectory(prefix="relaunch-", dir=place, ignore_cleanup_errors=True)


@contextmanager
def running_simulator(
    settings: LocalWorldSettings, policies: RolePolicies, containers: Containers
) -> Iterator[EcsServer]:
    """Run the ECS simulator on a wall clock and a free port."""
    clock = WallClock(speed=settings.speed)
    authorize = PolicyAuthorizer(policies.policies_of, is_without_key)
    simulated = replace(simulator_settings(real_watchdog(settings.speed)), timing=real_timing(settings.speed))
    guard = RequestGuard(policies.secret_of, LOOPBACK_HOSTS.union(settings.hosts))
    server = EcsServer(EcsSimulator(clock, containers, simulated, authorize=authorize), guard)
    clock.start()
    server.start()
    try:
        yield server
    finally:
        server.close()
        clock.stop()


def real_timing(speed: float) -> Timing:
    """Return the region's delays, with those undivided in which functions and trainings do something: they are real."""
    as_on_aws = Timing()
    return Timing(
        stop_timeout=as_on_aws.stop_timeout * speed,
        stop_timeout_factor=speed,
        warning_lead=as_on_aws.warning_lead * speed,
    )


def real_watchdog(speed: float) -> Watchdog:
    """Return the watchdog of machines, with those delays undivided in which functions do something: they are real."""
    as_on_aws = Watchdog()
    return Watchdog(idle=(as_on_aws.idle or 0.0) * speed, unregistered=(as_on_aws.unregistered or 0.0) * speed)


def template_parameters(settings: LocalWorldSettings, kubeconfig_secret_arn: str = "") -> dict[str, str]:
    """Return the template parameters of the local world."""
    hosts = {"CapacityProviders": capacity_providers()} if settings.has_capacity_providers else machine_parameters()
    if kubeconfig_secret_arn:
        parameter = f"{settings.target.capitalize()}KubeconfigSecretArn"
        hosts = {parameter: kubeconfig_secret_arn, "KubernetesNamespace": NAMESPACE}
    return {
        "ClusterName": CLUSTER,
        **hosts,
        "CheckpointBuckets": f"{CHECKPOINTS},{DATASETS}",
        "ProvisioningDeadlineSeconds": str(round(settings.provisioning_deadline_seconds)),
        "TableDeletionPolicy": "Delete",
        "PointInTimeRecovery": "false",
        "Notices": "on",
        **settings.parameters,
    }
