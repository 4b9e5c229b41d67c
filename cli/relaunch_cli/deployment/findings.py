"""What a deployment finds in an account, and what follows from it."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from relaunch.core.offerings.quotas import ALL_QUOTAS, Quota

# A g4dn.2xlarge or g5.2xlarge, or two of the xlarge, on spot and on demand: enough for a first training, and little
# enough to be granted without a question. Of the others nobody needs any before he says so.
REQUESTED_VCPUS: Mapping[str, int] = {"L-3819A6DF": 8, "L-DB2E81BA": 8}
# The smallest instance of a family that has no small ones: p4d.24xlarge, trn1.32xlarge.
_LARGE_VCPUS = 128


@dataclass(frozen=True)
class Stack:
    """A stack of CloudFormation as it is now."""

    name: str
    status: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AccountRoles:
    """The service-linked roles that are missing, by the service, and the ARN of GitHub's provider, empty if missing.

    `unread` says what could not be read, and counts as there; `notes` what is there and does not do.
    """

    missing: tuple[str, ...]
    github_provider_arn: str
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuotaRequests:
    """The codes of the quotas that were requested, and what to tell about the others."""

    made: Collection[str] = ()
    refused: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class QuotaState:
    """The vCPUs of each quota by its code, those of the open requests, and why they are not known."""

    vcpus: Mapping[str, float] = field(default_factory=dict)
    requested: Mapping[str, float] = field(default_factory=dict)
    unread: str = ""

    @property
    def zero(self) -> Sequence[Quota]:
        """The quotas that let nothing start."""
        return [quota for quota in ALL_QUOTAS if self.vcpus.get(quota.code) == 0]

    @property
    def to_request(self) -> Sequence[Quota]:
        """Those of 0 that a new deployment requests, and nobody has."""
        return [quota for quota in self.zero if quota.code in REQUESTED_VCPUS and quota.code not in self.requested]


@dataclass(frozen=True, slots=True)
class ParameterChange:
    """A parameter of a stack that exists, and its value before and after a deployment; one that is hidden is `****`."""

    stack: str
    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Survey:
    """What a deployment finds, and what it will make.

    `training` are the parameters of the stack of what trainings need, None if there is to be none. `before` are the
    stacks that exist, by the names of the application's, the training's and the machines'. `trainings` are those with a
    role of their own, and `repositories` the stacks of those on GitHub that are let in beside the training's.
    """

    stack: str
    account: str
    region: str
    given: Mapping[str, str]
    training: Mapping[str, str] | None
    has_machines: bool
    before: Mapping[str, Stack]
    roles: AccountRoles
    quotas: QuotaState
    notes: Sequence[str] = field(default=())
    trainings: Sequence[str] = ()
    repositories: Sequence[Stack] = ()
    is_left_over: bool = False
    """Whether there is a stack of the application's name whose first deployment failed."""

    @property
    def is_new(self) -> bool:
        """Whether the application is not deployed yet."""
        return self.stack not in self.before

    def is_on(self, switch: str) -> bool:
        """Whether the application has what a parameter turns on and off."""
        before = self.before[self.stack].parameters if self.stack in self.before else {}
        # A stack of a release before notices has none of them.
        default = "off" if switch == "Notices" else "on"
        return self.given.get(switch, before.get(switch, default)) == "on"

    @property
    def has_monitoring(self) -> bool:
        """Whether the application will have alarms and dashboards."""
        before = self.before[self.stack].parameters if self.stack in self.before else {}
        return self.given.get("Monitoring", before.get("Monitoring", "true")) != "false"

    @property
    def has_providers(self) -> bool:
        """Whether the application will have capacity providers; `Providers` makes some."""
        before = self.before[self.stack].parameters if self.stack in self.before else {}
        named = self.given.get("CapacityProviders", before.get("CapacityProviders", ""))
        return bool(named or self.given.get("Providers"))

    @property
    def has_topics(self) -> bool:
        """Whether messages of SNS topics start jobs."""
        before = self.before[self.stack].parameters if self.stack in self.before else {}
        return bool(self.given.get("SnsTopicArns", before.get("SnsTopicArns", "")))

    @property
    def needs_github_provider(self) -> bool:
        """Whether GitHub's OIDC provider is to be made."""
        wanted = self.training or {}
        return bool(wanted.get("GitHubRepository")) and not (
            wanted.get("GitHubOidcProviderArn") or self.roles.github_provider_arn
        )


def role_stack_name(stack: str, training: str) -> str:
    """Return the name of the stack with the role of a training of the application `stack`."""
    return f"{stack}-training-{training}"


def github_stack_name(stack: str, repository: str) -> str:
    """Return the name of the stack with the roles of a repository on GitHub, of the application `stack`.

    Its end tells `a-b/c` from `a/b-c`; names of GitHub are the same in capitals.
    """
    name = repository.lower()
    slug = re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:60].strip("-")
    return f"{stack}-github-{slug}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def request_command(quota: Quota, least: int = 0) -> str:
    """Return the command that requests a quota, of `least` vCPUs or what is worth requesting if that is more."""
    vcpus = max(least, REQUESTED_VCPUS.get(quota.code, _LARGE_VCPUS))
    return (
        f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quota.code} "
        f"--desired-value {vcpus}"
    )


def blocked(state: QuotaState, asked: Collection[str] = ()) -> list[str]:
    """Return what cannot run until AWS grants it: what a first training needs, and the other families in a line.

    Args:
        state: The quotas as they were before the deployment.
        asked: The codes of those that it requested.
    """
    first = [quota for quota in state.zero if quota.code in REQUESTED_VCPUS]
    others = [quota for quota in state.zero if quota.code not in REQUESTED_VCPUS]
    lines = [f"{quota}: 0 vCPUs, {_describe_request(quota, state, asked)}" for quota in first]
    if others:
        families = dict.fromkeys(_family(quota) for quota in others)
        also = " too" if first else ""
        lines.append(
            f"quotas of {', '.join(families)} are 0{also}: `relaunch doctor` says which one a definition needs"
        )
    return lines


def _describe_request(quota: Quota, state: QuotaState, asked: Collection[str]) -> str:
    if quota.code in asked:
        return f"{REQUESTED_VCPUS[quota.code]} are requested"
    if quota.code in state.requested:
        return f"{state.requested[quota.code]:.0f} are requested"
    return f"nobody has requested any: {request_command(quota)}"


def _family(quota: Quota) -> str:
    return next(name for name in ("P", "Trn", "Inf", "G") if re.search(rf"\b{name}[0-9]?\b", quota.name))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept when a deployment is removed, why, and the command that deletes it."""

    what: str
    why: str
    command: str
