"""Which receivers of notices a seed has, and when they take nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.notice_routes import DEFAULT_KINDS, NoticeKind
from relaunch_local.simulation.aws.template import ACCOUNT, REGION

WEBHOOK_HOST = "hooks.example.com"
STATUS_TOKEN = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:statuses-AbCdEf"
FOR_EVER = 1e9
"""The seconds of what never ends."""


class Service(StrEnum):
    """What a receiver is."""

    SLACK = "slack"
    WEBHOOK = "webhook"
    SNS = "sns"


class Away(StrEnum):
    """What a receiver that takes nothing does."""

    REFUSES = "answers 503"
    SILENT = "does not answer"
    REVOKED = "does not accept the token"


@dataclass(frozen=True, slots=True)
class Absence:
    """For how long a receiver takes nothing, in seconds after the beginning of the run."""

    begins_at: float
    seconds: float
    kind: Away

    def is_on(self, at: float) -> bool:
        """Return whether it takes nothing at this time."""
        return self.begins_at <= at < self.begins_at + self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverPlan:
    """A receiver as it is stored, and its absences."""

    name: str
    service: Service
    kinds: tuple[NoticeKind, ...] = DEFAULT_KINDS
    is_for_all: bool = True
    waits_after_minutes: int = 60
    absences: tuple[Absence, ...] = ()

    @property
    def topic_arn(self) -> str:
        """Return the topic of a receiver of the kind sns."""
        return f"arn:aws:sns:{REGION}:{ACCOUNT}:{self.name}"

    @property
    def is_dead(self) -> bool:
        """Return whether it takes nothing any more from some time on."""
        return any(each.seconds >= FOR_EVER for each in self.absences)

    def kinds_for(self, definition: JobDefinition) -> frozenset[NoticeKind]:
        """Return what it is asked to get of the jobs of a definition; nothing if nobody asked."""
        named = {each.receiver: each.kinds for each in definition.notices}
        if self.name not in named:
            return frozenset(self.kinds if self.is_for_all else ())
        return frozenset(named[self.name] or self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusPlan:
    """The statuses of commits of a seed."""

    absences: tuple[Absence, ...] = ()
    without_right: Mapping[str, Absence] = field(default_factory=dict)
    """By repository: while the token may not write its statuses."""
    most_statuses: int = 1_000
    """How many statuses of a context GitHub takes of a commit."""


@dataclass(frozen=True, slots=True)
class NoticePlan:
    """The receivers of a seed; without `statuses` no commit has one."""

    receivers: Sequence[ReceiverPlan] = ()
    statuses: StatusPlan | None = None

    @property
    def hosts(self) -> Sequence[str]:
        """Return the hosts of endpoints."""
        return (WEBHOOK_HOST,)

    @property
    def parameters(self) -> Mapping[str, str]:
        """Return the parameters of the template of a stack that sends notices."""
        statuses = {"GithubStatusTokenSecretArn": STATUS_TOKEN} if self.statuses is not None else {}
        topics = ",".join(each.topic_arn for each in self.receivers if each.service is Service.SNS)
        return {"Notices": "on", "NoticeHosts": WEBHOOK_HOST, "NoticeTopicArns": topics, **statuses}
