"""EventBridge Scheduler: the schedules of the stack's group, and the times that it sends to the queue for uploads.

A minute is a time of a cron expression if the clocks of its time zone show one of its times then, and show it for the
first time: what the spring leaves out never comes, and what the autumn has twice comes once ("Daylight savings time").
A rate begins when its schedule is created, as none has a start date ("Rate-based schedules"), and counts on whatever
the clocks do. A target is invoked within the minute, at least once ("Schedule types", all in the Scheduler User Guide).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from botocore.exceptions import ClientError

from relaunch.adapters.aws.schedules import SchedulerGroup
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.outages import SCHEDULER, SCHEDULER_TARGETS, SQS, Outages
from relaunch_local.simulation.aws.sqs import Queues
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.chance import Chance

GROUP = "relaunch-Schedules-1A2B3C4D5E6F"
_QUEUE = "UploadsQueue"
_MINUTE = timedelta(minutes=1)
_PRECISION_SECONDS = 59.0
_FARTHEST = timedelta(days=40)
_UNITS = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_TIME = "<aws.scheduler.scheduled-time>"


class ConflictError(ClientError):
    """CreateSchedule: there is a schedule of this name."""


class NotFoundError(ClientError):
    """There is no schedule of this name."""


class Exceptions:
    """The exceptions of the client, by the names that Scheduler gives them."""

    ConflictException = ConflictError
    ResourceNotFoundException = NotFoundError


def rate_of(expression: str) -> timedelta | None:
    """Return the interval of a rate; None for another expression."""
    match = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression)
    return int(match[1]) * _UNITS[match[2]] if match else None


def cron_times(expression: str, time_zone: str, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield the times of a cron expression from `since` on and before `until`, in UTC."""
    zone = ZoneInfo(time_zone)
    minute = since.replace(second=0, microsecond=0)
    minute += _MINUTE if minute < since else timedelta(0)
    while minute < until:
        if _is_time(expression, minute.astimezone(zone)):
            yield minute
        minute += _MINUTE


def _is_time(expression: str, shown: datetime) -> bool:
    """Return whether clocks show a time of the expression, and for the first time."""
    minutes, hours, of_month, months, of_week, years = _fields(expression)
    return (
        (minutes is None or shown.minute in minutes)
        and (hours is None or shown.hour in hours)
        and not shown.fold
        and (of_month is None or shown.day in of_month)
        and (months is None or shown.month in months)
        and (of_week is None or shown.isoweekday() % 7 + 1 in of_week)
        and (years is None or shown.year in years)
    )


@cache
def _fields(expression: str) -> tuple[frozenset[int] | None, ...]:
    """Return the numbers of each field; None for all of them."""
    texts = expression.removeprefix("cron(").removesuffix(")").split()
    highest = (59, 23, 31, 12, 7, 2199)
    return tuple(_numbers(text, most) for text, most in zip(texts, highest, strict=True))


def _numbers(text: str, most: int) -> frozenset[int] | None:
    if text in ("*", "?"):
        return None
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        end = most if step and not last else _number(last or first)
        found.update(range(0 if first == "*" else _number(first), end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str) -> int:
    return _DAYS.index(text) + 1 if text in _DAYS else int(text)


@dataclass(slots=True)
class SentTime:
    """A time that Scheduler invoked the target for; `arrives_at` is None if it gave it up."""

    name: str
    at: datetime
    arrives_at: datetime | None


@dataclass(eq=False, slots=True)
class _Schedule:
    parameters: Mapping[str, Any]
    created_at: datetime


@dataclass
class ModelScheduler:
    """The schedules of one group."""

    _clock: Clock
    _chance: Chance
    _queues: Queues
    _outages: Outages
    sent: list[SentTime] = field(default_factory=list)
    last_arrival: datetime | None = None
    """When the last message arrives that it has sent."""
    _schedules: dict[str, _Schedule] = field(default_factory=dict)

    @property
    def schedules(self) -> dict[str, Mapping[str, Any]]:
        """The parameters of each schedule, by its name."""
        return {name: each.parameters for name, each in self._schedules.items()}

    def list_schedules(self, **_parameters: Any) -> Any:
        """ListSchedules."""
        return {"Schedules": [{"Name": name, "GroupName": GROUP} for name in sorted(self._schedules)]}

    def get_schedule(self, **parameters: Any) -> Any:
        """GetSchedule."""
        found = self._demand(parameters["Name"], "GetSchedule")
        return {**found.parameters, "CreationDate": found.created_at}

    def create_schedule(self, **parameters: Any) -> Any:
        """CreateSchedule."""
        if parameters["Name"] in self._schedules:
            raise ConflictError(_answer("ConflictException"), "CreateSchedule")
        created_at = self._clock.now().replace(microsecond=0)
        # The first time of a rate is when it is created.
        self._put(_Schedule(parameters, created_at), created_at - timedelta(microseconds=1))
        return {"ScheduleArn": parameters["Name"]}

    def update_schedule(self, **parameters: Any) -> Any:
        """UpdateSchedule."""
        found = self._demand(parameters["Name"], "UpdateSchedule")
        self._put(_Schedule(parameters, found.created_at), self._clock.now())
        return {"ScheduleArn": parameters["Name"]}

    def delete_schedule(self, **parameters: Any) -> Any:
        """DeleteSchedule."""
        self._demand(parameters["Name"], "DeleteSchedule")
        del self._schedules[parameters["Name"]]
        return {}

    def _demand(self, name: str, operation: str) -> _Schedule:
        if name not in self._schedules:
            raise NotFoundError(_answer("ResourceNotFoundException"), operation)
        return self._schedules[name]

    def _put(self, schedule: _Schedule, after: datetime) -> None:
        self._schedules[schedule.parameters["Name"]] = schedule
        if schedule.parameters["State"] == "ENABLED":
            self._wait_for(schedule, after)

    def _wait_for(self, schedule: _Schedule, after: datetime) -> None:
        following = _next(schedule, after)
        if following is not None:
            seconds = (following - self._clock.now()).total_seconds()
            self._clock.call_later(max(seconds, 0.0), lambda: self._come(schedule, following))

    def _come(self, schedule: _Schedule, at: datetime) -> None:
        if self._schedules.get(schedule.parameters["Name"]) is schedule:
            self._send(schedule.parameters, at)
            self._wait_for(schedule, at)

    def _send(self, parameters: Mapping[str, Any], at: datetime) -> None:
        target = parameters["Target"]
        name = parameters["Name"]
        note = f"{parameters['ScheduleExpression']} at {at:%H:%M}"
        delay = self._delay(note)
        queue = _queue_of(target["Arn"])
        body = target["Input"].replace(_TIME, f"{at:%Y-%m-%dT%H:%M:%SZ}")
        if delay > target["RetryPolicy"]["MaximumEventAgeInSeconds"]:
            self._chance.note_organic("scheduled-time-given-up")
            dead_letters = _queue_of(target["DeadLetterConfig"]["Arn"])
            if self._chance.strikes("scheduled-time-redriven", 0.6, note=note):
                # Somebody sends the dead letter back once they see it.
                redriven = delay + self._chance.stream("scheduler/redriven").uniform(60.0, 3_600.0)
                self._later(redriven, "IntakeQueue", body)
                self.sent.append(SentTime(name, at, self._clock.now() + timedelta(seconds=redriven)))
                return
            self._queues.dead_letter(dead_letters, body, "Scheduler gave it up")
            self.sent.append(SentTime(name, at, None))
            return
        self._later(delay, queue, body)
        self.sent.append(SentTime(name, at, self._clock.now() + timedelta(seconds=delay)))
        if self._chance.strikes("scheduled-time-sent-twice", 0.3, note=note):
            stream = self._chance.stream("scheduler/copies")
            self._later(delay + stream.choice((1.0, 60.0, 3_600.0)) * stream.random(), queue, body)

    def _delay(self, note: str) -> float:
        stream = self._chance.stream("scheduler/precision")
        delay = stream.uniform(0.0, _PRECISION_SECONDS)
        if self._chance.strikes("scheduled-time-late", 0.2, note=note):
            delay += stream.uniform(60.0, 2.0 * 3_600.0)
        return delay + max(self._outages.seconds_left(SCHEDULER_TARGETS), self._outages.seconds_left(SQS))

    def _later(self, delay: float, queue: str, body: str) -> None:
        arrives_at = self._clock.now() + timedelta(seconds=delay)
        self.last_arrival = max(self.last_arrival or arrives_at, arrives_at)
        self._clock.call_later(delay, lambda: self._queues.send(queue, body))


def _next(schedule: _Schedule, after: datetime) -> datetime | None:
    """Return the next time of a schedule; None if there is none within so many days."""
    expression = schedule.parameters["ScheduleExpression"]
    rate = rate_of(expression)
    if rate is not None:
        return schedule.created_at + ((after - schedule.created_at) // rate + 1) * rate
    zone = schedule.parameters["ScheduleExpressionTimezone"]
    begin = after + timedelta(microseconds=1)
    return next(cron_times(expression, zone, begin, begin + _FARTHEST), None)


def _queue_of(arn: str) -> str:
    return arn.split(":", 5)[5]


def _answer(code: str) -> Any:
    return {"Error": {"Code": code, "Message": "simulated"}, "ResponseMetadata": {"HTTPStatusCode": 400}}


class GroupOfStack:
    """The schedules of a stack, and the adapter of `apply` over them; each call of its may fail."""

    def __init__(self, scheduler: ModelScheduler, calls: Calls) -> None:
        """Begin with the schedules that the model has."""
        self._client: Any = CallingClient(SCHEDULER, scheduler, calls)
        self.exceptions = Exceptions
        role = f"arn:aws:iam::{ACCOUNT}:role/relaunch-SchedulesRole"
        queue, dead_letters = (f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}" for name in (_QUEUE, f"{_QUEUE}:given-up"))
        self.adapter = SchedulerGroup(self, GROUP, role, queue, dead_letters)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        method: Callable[..., Any] = getattr(self._client, name)
        return method
