"""An account in which nothing is deployed yet, so that `relaunch deploy` can be tried from the beginning."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaunch_local.ecs import EcsServer
from relaunch_local.request_guard.credentials import random_root_credentials
from relaunch_local.stack.account import assume_as_ecs
from relaunch_local.stack.account_mirror import AccountMirror
from relaunch_local.stack.container_logs import ContainerLogs
from relaunch_local.stack.containers import Containers
from relaunch_local.stack.deployment import Deployment, read_stack, store_webhook_secret
from relaunch_local.stack.emulator import EMULATOR_LOG, Emulator, running_emulator
from relaunch_local.stack.forwarder import EmulatorTargets, EventForwarder
from relaunch_local.stack.local_world import (
    LocalWorld,
    LocalWorldSettings,
    running_simulator,
    save_offerings,
    simulated_endpoints,
    temporary_folder,
)
from relaunch_local.stack.policies import RolePolicies


@dataclass(frozen=True)
class EmptyAccount:
    """The emulator and the ECS simulator, without a cluster, a network of ours, or a stack."""

    emulator: Emulator
    server: EcsServer
    settings: LocalWorldSettings
    folder: Path
    _policies: RolePolicies
    _containers: Containers
    _stack: ExitStack

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which the `relaunch` command and boto3 use this account."""
        return {**self.emulator.environment(), **simulated_endpoints(self.server.url)}

    def join(self, stack: str, training: Mapping[str, str]) -> LocalWorld:
        """Return the world of a stack that was deployed: what AWS does by itself between services is done from now on.

        `training` are the outputs of the stack of what trainings need, whose task role containers run with.
        """
        for output in ("CheckpointBucketName", "DataBucketName"):
            # It lets in encrypted connections only, which the emulator on loopback does not have.
            self.emulator.client("s3").delete_bucket_policy(Bucket=training[output])
        deployment = Deployment(*read_stack(self.emulator, stack), self.emulator)
        if "WebhookSecretArn" in deployment.outputs:
            store_webhook_secret(deployment)
        self._policies.load_function_roles(self.emulator)
        save_offerings(deployment)
        logs = self._stack.enter_context(closing(ContainerLogs(self.emulator)))
        self._containers.connect(self.emulator, assume_as_ecs(self.emulator, training["TaskRoleArn"]), logs)
        targets = EmulatorTargets(self.emulator)
        forwarder = self._stack.enter_context(closing(EventForwarder(targets, self.settings.delivery_faults)))
        simulator = self.server.simulator
        with simulator.clock.lock:
            simulator.subscribe(forwarder.publish)
        self._stack.callback(self.server.close)
        log = self.folder / EMULATOR_LOG
        return LocalWorld(self.emulator, simulator, self.server.url, deployment, forwarder, log, self._policies)

    def join_deployed(self) -> LocalWorld | None:
        """Join the first application that is completely deployed, with what its trainings need; None without one."""
        found = self.client("cloudformation").describe_stacks()["Stacks"]
        complete = {each["StackName"] for each in found if each["StackStatus"] == "CREATE_COMPLETE"}
        name = next((each for each in sorted(complete) if f"{each}-training" in complete), None)
        return self.join(name, read_stack(self.emulator, f"{name}-training")[0]) if name else None

    def client(self, service: str) -> Any:
        """Return a boto3 client of the root user for a service of the emulator."""
        return self.emulator.client(service)


@contextmanager
def empty_account(settings: LocalWorldSettings | None = None) -> Iterator[EmptyAccount]:
    """Run an account; its processes and folders are removed however this process ends.

    Raises:
        EmulatorError: the message says what to do.
    """
    settings = settings or LocalWorldSettings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary_folder()))
        root = random_root_credentials()
        policies = RolePolicies(root)
        containers = Containers()
        server = stack.enter_context(running_simulator(settings, policies, containers))
        emulator = stack.enter_context(running_emulator(folder, simulated_endpoints(server.url), root, settings.hosts))
        server.attach(AccountMirror(emulator, server.simulator))
        yield EmptyAccount(emulator, server, settings, folder, policies, containers, stack)
