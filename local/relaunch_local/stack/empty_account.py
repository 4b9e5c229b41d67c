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
from relaunch_local.stack.pushed_images import PushedImages

_COMPLETE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


@dataclass(frozen=True)
class Deployed:
    """An application that is deployed; `state` is another one once its stacks were updated, or made again."""

    stack: str
    state: tuple[str, ...]


@dataclass(frozen=True)
class EmptyAccount:
    """The emulator and the ECS simulator, without a cluster, a network of ours, or a stack."""

    emulator: Emulator
    server: EcsServer
    settings: LocalWorldSettings
    folder: Path
    images: PushedImages
    _policies: RolePolicies
    _containers: Containers
    _logs: ContainerLogs
    _forwarder: EventForwarder

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
        self._containers.connect(self.emulator, assume_as_ecs(self.emulator, training["TaskRoleArn"]), self._logs)
        # The rules of a stack are read once.
        self._forwarder.targets = EmulatorTargets(self.emulator)
        simulator = self.server.simulator
        log = self.folder / EMULATOR_LOG
        return LocalWorld(self.emulator, simulator, self.server.url, deployment, self._forwarder, log, self._policies)

    def find_deployed(self) -> Deployed | None:
        """Return the first application that is completely deployed, with what its trainings need; None without one."""
        found = {each["StackName"]: each for each in self.client("cloudformation").describe_stacks()["Stacks"]}
        for name in sorted(found):
            stacks = [found[each] for each in (name, f"{name}-training") if each in found]
            if len(stacks) > 1 and all(each["StackStatus"] in _COMPLETE for each in stacks):
                return Deployed(name, tuple(f"{each['StackId']} {each.get('LastUpdatedTime')}" for each in stacks))
        return None

    def join_deployed(self, deployed: Deployed) -> LocalWorld:
        """Join what was found."""
        return self.join(deployed.stack, read_stack(self.emulator, f"{deployed.stack}-training")[0])

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
        images = PushedImages(folder)
        containers = Containers(images.find)
        server = stack.enter_context(running_simulator(settings, policies, containers))
        emulator = stack.enter_context(running_emulator(folder, simulated_endpoints(server.url), root, settings.hosts))
        server.attach(AccountMirror(emulator, server.simulator))
        logs = stack.enter_context(closing(ContainerLogs(emulator)))
        forwarder = stack.enter_context(closing(EventForwarder(EmulatorTargets(emulator), settings.delivery_faults)))
        images.connect(emulator, forwarder.publish)
        server.add_control("push", images.push_archive)
        with server.simulator.clock.lock:
            server.simulator.subscribe(forwarder.publish)
        # Containers end first, so that their last output and events are delivered.
        stack.callback(server.close)
        yield EmptyAccount(emulator, server, settings, folder, images, policies, containers, logs, forwarder)
