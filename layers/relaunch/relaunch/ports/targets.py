"""The targets of a stack: where the tasks of its jobs run."""

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from relaunch.core.definitions.targets import Target
from relaunch.core.records import dataclass
from relaunch.ports.errors import PermanentError
from relaunch.ports.target import TaskTarget

_TO_READ_OSS = "set OssRegion, AlibabaRoleArn and AlibabaOidcProviderArn and deploy again"


class UnknownTargetError(PermanentError):
    """The stack does not have the target; the message says what to set."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets by their names in job definitions.

    Each is made when it is first used, because what it needs takes long to import: `makers` return the same target at
    every call. With `reads_oss` the functions can read checkpoints in OSS.
    """

    makers: Mapping[Target, Callable[[], TaskTarget]]
    reads_oss: bool = False

    def __contains__(self, name: Target) -> bool:
        """Return whether the stack has this target."""
        return name in self.makers

    def __iter__(self) -> Iterator[Target]:
        """Return the names of the targets."""
        return iter(self.makers)

    def named(self, name: Target) -> TaskTarget:
        """Return the target of this name.

        Raises:
            UnknownTargetError: the stack does not have it.
        """
        if problem := self.problem(name):
            raise UnknownTargetError(problem)
        return self.makers[name]()

    @property
    def ecs(self) -> TaskTarget:
        """Return the target that EC2 instances belong to.

        Raises:
            UnknownTargetError: the stack does not have it.
        """
        return self.named(Target.ECS)

    def problem(self, name: Target, checkpoint_uri: str | None = None) -> str:
        """Return why no job with such checkpoints can run on the target, and what to do; empty if one can."""
        if name in self.makers:
            is_unread = checkpoint_uri is not None and checkpoint_uri.startswith("oss://") and not self.reads_oss
            return f"the stack does not read {checkpoint_uri}: {_TO_READ_OSS}" if is_unread else ""
        has = f"it has {' and '.join(self.makers)}" if self.makers else "it has none"
        return f"the stack has no target {name}, {has}: set {_what_to_set(name)} and deploy again"


def _what_to_set(name: Target) -> str:
    match name:
        case Target.ECS:
            return "CapacityProviders, or MachineSubnets for machines of its own"
        case Target.KUBERNETES:
            return "EksClusterName, or KubernetesKubeconfigSecretArn for a cluster elsewhere,"
        case Target.ACK:
            return "AckClusterId"
        case Target.ACS:
            return "AcsClusterId"
        case _:
            assert_never(name)
