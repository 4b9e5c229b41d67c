"""Services that are away for minutes or hours: every call of them fails, however often it is repeated.

DynamoDB was away for 2 h 52 min in us-east-1 on 2025-10-20 ("Summary of the Amazon DynamoDB Service Disruption in the
Northern Virginia (US-EAST-1) Region", AWS), and with it most that is built on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from relaunch_local.ecs import Clock
from relaunch_local.simulation.chance import Chance


class Kind(StrEnum):
    """What calls of a service that is away meet: the kind of fault of aws/calls.py."""

    REFUSED = "call-refused"
    UNANSWERED = "call-unanswered"
    THROTTLED = "call-throttled"
    DENIED = "call-denied"


EVENTBRIDGE = "eventbridge"
EVENTS = "events"
LAMBDA = "lambda"
SQS = "sqs"
KUBERNETES = "kubernetes"
STS = "sts"
SSM = "ssm"
SCHEDULER = "scheduler"
SCHEDULER_TARGETS = "scheduler-targets"
_RECOVERY_SECONDS = 20 * 60.0
SERVICES = ("dynamodb", SQS, "ecs", "ec2", "s3", "ecr", EVENTBRIDGE, LAMBDA)
"""EventBridge delivers late what it gets meanwhile; Lambda has no concurrency left, and throttles every invocation."""
RARELY_CALLED = (KUBERNETES, STS, SSM)
"""What only some stacks call: the API of a cluster, STS for the token that signs in to it, SSM for the ID of an AMI."""
HOLDS_UP_NOTHING = frozenset({EVENTS, SCHEDULER, SCHEDULER_TARGETS})
"""PutEvents, which takes the changes of jobs, EventBridge Scheduler's API, which `apply` calls, and the targets that it
invokes: while these fail, nothing else takes longer or is excused."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A service that is away, and from when on, in seconds after the beginning of the run."""

    service: str
    begins_at: float
    seconds: float
    kind: Kind = Kind.REFUSED

    @property
    def ends_at(self) -> float:
        """When it is over, in seconds after the beginning of the run."""
        return self.begins_at + self.seconds

    def __str__(self) -> str:
        """Describe it."""
        return f"{self.service} for {self.seconds / 60:.0f} min: {self.kind}"


class Outages:
    """The outages of a run, and which of them is on now."""

    def __init__(self, clock: Clock, chance: Chance, outages: Sequence[Outage] = ()) -> None:
        """Plan the outages of a run that begins now."""
        self._clock = clock
        self._started_at = clock.now()
        self.on_end: list[Callable[[str], None]] = []
        """Called with the service that is back."""
        self._outages = [each for each in outages if chance.strikes("outage", 1e9, site=each.service, note=str(each))]
        self._times: dict[str, list[tuple[datetime, datetime, Outage]]] = {}
        """When the outages of each service begin and end: it is asked of every call."""
        for each in self._outages:
            times = (self._at(each.begins_at), self._at(each.ends_at), each)
            self._times.setdefault(each.service, []).append(times)
            clock.call_later(each.ends_at, partial(self._end, each.service))

    def _end(self, service: str) -> None:
        for call in self.on_end:
            call(service)

    def fault_of(self, service: str) -> str:
        """Return the fault that a call of a service meets now, empty if the service is there."""
        found = self._now(service)
        if found is None and service == EVENTS:
            found = self._now(EVENTBRIDGE)
        return found.kind if found is not None else ""

    def is_away(self, service: str) -> bool:
        """Return whether a service is away now."""
        return self._now(service) is not None

    def seconds_left(self, service: str) -> float:
        """Return for how much longer a service is away."""
        found = self._now(service)
        return (self._at(found.ends_at) - self._clock.now()).total_seconds() if found is not None else 0.0

    def time_within(self, since: datetime, until: datetime, *, only: str = "") -> timedelta:
        """Return how much longer something may take: as long as services were away, or `only` one, and till it goes on.

        What failed meanwhile comes back within six minutes, and with many faults it may fail again.
        """
        begins = self._seconds_at(since)
        ends = self._seconds_at(until)
        every = (each for each in self._outages if each.service not in HOLDS_UP_NOTHING)
        away = (each for each in every if not only or each.service == only)
        shares = (min(each.ends_at + _RECOVERY_SECONDS, ends) - max(each.begins_at, begins) for each in away)
        return timedelta(seconds=sum(max(share, 0.0) for share in shares))

    @property
    def over_at(self) -> datetime:
        """When the last one is over."""
        return self._at(max((each.ends_at for each in self._outages), default=0.0))

    def _now(self, service: str) -> Outage | None:
        times = self._times.get(service)
        if times is None:
            return None
        now = self._clock.now()
        return next((each for begins_at, ends_at, each in times if begins_at <= now < ends_at), None)

    def _at(self, seconds: float) -> datetime:
        """Return the time to the microsecond, as the clock has it: else a service is still away when its end comes."""
        return self._started_at + timedelta(seconds=seconds)

    def _seconds_at(self, at: datetime) -> float:
        return (at - self._started_at).total_seconds()
