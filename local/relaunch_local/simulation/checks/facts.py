"""What the simulated AWS did and told, which checks excuse by, and which they compare the application's record with.

Nothing here is read from what the application stored of itself. What a function was told counts once that function has
handled its message without an error: then it must be stored.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch_local.ecs import Clock, Event

TASK_STATE_CHANGE = "ECS Task State Change"
_MACHINE_STATE_CHANGE = "ECS Container Instance State Change"
_INSTANCE_STATE_CHANGE = "EC2 Instance State-change Notification"
_WARNING = "EC2 Spot Instance Interruption Warning"
_RECOMMENDATION = "EC2 Instance Rebalance Recommendation"
_RETIREMENT = "AWS Health Event"
_BLOCK_END = "Capacity Block Reservation Expiration Warning"
_NOTICES = frozenset({_WARNING, _RECOMMENDATION})
_ENDING = frozenset({"shutting-down", "terminated", "stopping", "stopped"})
# Events have whole seconds.
_SECOND = timedelta(seconds=1)
# The clocks of two functions differ by up to six seconds.
_SKEW = timedelta(seconds=15)
LONGEST_MISSING = timedelta(minutes=5)
"""RunTask's documentation has callers wait so long for a task that ECS does not show: it is lost after that."""
NOTICE_LEAD = timedelta(seconds=10)
"""The metadata of an instance has a notice so long before its event at most; who left earlier had another one."""
STOPPED_KEPT = timedelta(hours=1)
"""How long ECS describes a stopped task."""
HOST_GONE_AFTER = timedelta(minutes=10)
"""Nothing runs any more on an instance that began to end so long ago: accelerated ones take up to six minutes."""
UNCONFIRMED_AFTER = timedelta(minutes=10)
"""A task that is not STOPPED so long after StopTask, four times its time-out, has a host that does not confirm it."""
GIVEN_UP_AFTER = timedelta(hours=24)
"""How long a job waits for a stop that its host does not confirm, as the design says: its task may live on."""


@dataclass(slots=True)
class AccountFacts:
    """The facts of one account; times are those of its clock."""

    _clock: Clock
    _instance_of: Callable[[str], str]
    """Returns the EC2 instance of a container instance."""
    outage_time: Callable[[datetime, datetime], timedelta] = lambda _since, _until: timedelta(0)
    """Returns how much longer than otherwise what began and ended at these times may take: services were away."""
    message_began_at: Callable[[], datetime | None] = lambda: None
    """Returns when the running function began its message, None outside of functions."""
    hidden_span: Callable[[str], tuple[datetime, datetime] | None] = lambda _arn: None
    """Returns from when until when ECS hides a task for longer than it documents."""
    forgotten: Collection[str] = frozenset()
    """Tasks that ECS does not describe once they have stopped."""
    known_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when a function first handled an event of it, or an answer of RunTask that names it."""
    named: set[str] = field(default_factory=set)
    """The tasks that RunTask named in an answer which a function had."""
    instances_told_at: dict[str, datetime] = field(default_factory=dict)
    """By instance: when EC2 first told of it a function that was not killed over that, or one that described it."""
    stop_asked_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when the application first sent StopTask."""
    stop_wanted_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when its desired status became STOPPED, as StopTask had effect, or it ended by itself."""
    ended_at: dict[str, datetime] = field(default_factory=dict)
    """By instance: when it began to end."""
    _stop_told_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when the application first handled an event, or got an answer, by which it has stopped."""
    _told_by_request: dict[str, list[tuple[datetime, datetime, Any]]] = field(default_factory=lambda: defaultdict(list))
    """By instance: since when its Spot request says that it is interrupted, and when which function heard of it."""
    refused: list[tuple[datetime, datetime]] = field(default_factory=list)
    """From when until when checkpoints, RunTask or RegisterTaskDefinition were refused."""
    refusals_told: set[str] = field(default_factory=set)
    """The first machines of the requests of which a function handled the answer that EC2 launched nothing."""
    unanswered_jobs: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """By job: when a RunTask or its answer was lost in an outage."""
    _told_missing: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=lambda: defaultdict(list))
    """By task: from when until when DescribeTasks always answered MISSING, each time within LONGEST_MISSING."""
    _live_at: dict[str, list[tuple[datetime, Any]]] = field(default_factory=lambda: defaultdict(list))
    """By task: when an answer of DescribeTasks to which function had it, and it had not stopped."""
    _last_missing: set[str] = field(default_factory=set)
    """Tasks of which the last answer of DescribeTasks was MISSING."""
    shown_nodes: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """By instance: when ECS described it to a function that did not fail."""
    _hosts: dict[str, str] = field(default_factory=dict)
    _cut_off: set[str] = field(default_factory=set)
    _cut_off_since: dict[str, datetime] = field(default_factory=dict)
    _away: dict[str, list[tuple[datetime, datetime | None]]] = field(default_factory=lambda: defaultdict(list))
    """By instance: from when until when its agent was disconnected."""
    _stopped_at: dict[str, datetime] = field(default_factory=dict)
    _unstarted: set[str] = field(default_factory=set)
    _placed_at: dict[str, datetime] = field(default_factory=dict)
    _notices: dict[str, list[tuple[datetime, bool]]] = field(default_factory=lambda: defaultdict(list))
    _handled: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=lambda: defaultdict(list))
    """By instance: when EC2 gave each warning that a function handled, and when it had."""
    retirement_known_at: dict[str, datetime] = field(default_factory=dict)
    """By instance: when a function first handled an event that AWS will retire it."""
    block_end_known_at: dict[str, datetime] = field(default_factory=dict)
    """By Capacity Block: when a function first handled the announcement of its end."""

    def observe(self, event: Event) -> None:
        """Note an event as ECS or EC2 emits it, whether it is delivered or not."""
        kind = event["detail-type"]
        detail = event["detail"]
        if kind == _MACHINE_STATE_CHANGE:
            self._note_agent(detail["ec2InstanceId"], is_connected=detail["agentConnected"])
        if kind == TASK_STATE_CHANGE:
            self._observe_task(detail)
        elif kind == _RETIREMENT:
            self._notices[event["resources"][0]].append((_time_of(event), False))
        elif kind in _NOTICES:
            self._notices[detail["instance-id"]].append((_time_of(event), kind == _WARNING))
        elif kind == _INSTANCE_STATE_CHANGE and detail["state"] in _ENDING:
            self.ended_at.setdefault(detail["instance-id"], self._clock.now())

    def _observe_task(self, detail: Mapping[str, Any]) -> None:
        arn = detail["taskArn"]
        if detail.get("desiredStatus") == "STOPPED":
            self.stop_wanted_at.setdefault(arn, self._clock.now())
        if detail["lastStatus"] == "STOPPED":
            self._stopped_at.setdefault(arn, self._clock.now())
        if detail.get("containerInstanceArn"):
            if arn not in self._hosts:
                self._hosts[arn] = self._instance_of(detail["containerInstanceArn"])
            if detail["lastStatus"] == "STOPPED" and "startedAt" not in detail:
                self._unstarted.add(self._hosts[arn])

    def message_handled(self, function: str, body: str, told: Collection[str], *, has_failed: bool) -> None:
        """Note a message that a function handled without an error, and the tasks that RunTask told it of meanwhile.

        `has_failed`: a call failed for good, and the function went on without its answer.
        """
        now = self._clock.now()
        for arn in told:
            self.named.add(arn)
            self.known_at.setdefault(arn, now)
        if function == "observe_task" and TASK_STATE_CHANGE in body:
            detail = json.loads(body)["detail"]
            self.known_at.setdefault(detail["taskArn"], now)
            if detail["lastStatus"] == "STOPPED":
                self._stop_told_at.setdefault(detail["taskArn"], now)
            # A container instance that is gone is not described any more, so that its EC2 instance stays unknown.
            is_described = self.host_of(detail["taskArn"]) not in self.ended_at and not has_failed
            if detail.get("containerInstanceArn") and is_described:
                self._placed_at.setdefault(detail["taskArn"], now)
        elif function == "observe_capacity" and _RETIREMENT in body:
            self.retirement_known_at.setdefault(json.loads(body)["resources"][0], now)
        elif function == "observe_capacity" and _BLOCK_END in body:
            self.block_end_known_at.setdefault(json.loads(body)["detail"]["capacity-reservation-id"], now)
        elif function == "observe_capacity" and _WARNING in body:
            event = json.loads(body)
            self._handled[event["detail"]["instance-id"]].append((_time_of(event), now))

    def block_announced(self, event: Event, instance_ids: Iterable[str]) -> None:
        """Note that EC2 announces the end of a Capacity Block with these instances, which is no interruption by it."""
        for each in instance_ids:
            self._notices[each].append((_time_of(event), False))

    def instances_told(self, instance_ids: Iterable[str]) -> None:
        """Note the instances of which EC2 told a function."""
        for each in instance_ids:
            self.instances_told_at.setdefault(each, self._clock.now())

    def described(self, answer: Mapping[str, Any], function: Any) -> None:
        """Note an answer of DescribeTasks to an invocation of a function."""
        now = self._clock.now()
        for task in answer["tasks"]:
            if task["lastStatus"] == "STOPPED":
                self._stop_told_at.setdefault(task["taskArn"], now)
            else:
                self._live_at[task["taskArn"]].append((now, function))
        for arn in (failure["arn"] for failure in answer["failures"]):
            spans = self._told_missing[arn]
            goes_on = arn in self._last_missing and now - spans[-1][1] <= LONGEST_MISSING + _SKEW
            begins = spans.pop()[0] if goes_on else now
            spans.append((begins, now))
            self._last_missing.add(arn)

    def shown(self, names: Iterable[str]) -> None:
        """Note tasks and instances that ECS described to a function which did not fail, and so may have saved them."""
        for each in names:
            self._last_missing.discard(each)
            self.shown_nodes[each].append(self._clock.now())

    def was_missing(self, task_arn: str, since: datetime) -> bool:
        """Return whether DescribeTasks answered MISSING about a task since a time, or at the last answer before."""
        return task_arn in self._last_missing or any(until >= since for _, until in self._told_missing[task_arn])

    def last_seen_live(self, task_arn: str, until: datetime) -> datetime | None:
        """Return when, by then, a function that did not fail last saw that a task had not stopped; None if none did."""
        return max(
            (at for at, by in self._live_at[task_arn] if at <= until and not (by and by.has_failed)), default=None
        )

    def requests_described(self, answer: Mapping[str, Any], function: Any) -> None:
        """Note an answer of DescribeSpotInstanceRequests to an invocation of a function."""
        for each in answer["SpotInstanceRequests"]:
            if each["Status"]["Code"] != "fulfilled":
                heard = (each["Status"]["UpdateTime"], self._clock.now(), function)
                self._told_by_request[each["InstanceId"]].append(heard)

    def was_placed(self, task_arn: str) -> bool:
        """Return whether the application knew on which instance a task is, while ECS described that."""
        return task_arn in self._placed_at

    def was_told_by_request(self, task_arn: str, until: datetime) -> bool:
        """Return whether a function that was not killed heard by then of the Spot request of a task's instance."""
        heard = self._told_by_request[self.host_of(task_arn)]
        return any(at <= until and not (function and function.kill_reason) for _, at, function in heard)

    def stop_asked(self, task_arn: str) -> None:
        """Note a StopTask of the application."""
        self.stop_asked_at.setdefault(task_arn, self._clock.now())

    def host_of(self, task_arn: str) -> str:
        """Return the EC2 instance of a task, empty if it never had one."""
        return self._hosts.get(task_arn, "")

    def gave_notice(self, instance_id: str, at: datetime) -> bool:
        """Return whether EC2 warned of an instance, or recommended to leave it, at this time."""
        given = [given_at for given_at, _ in self._notices[instance_id]]
        given += [since for since, _, _ in self._told_by_request[instance_id]]
        return any(abs(given_at - at) <= _SECOND for given_at in given)

    def warned_at(self, instance_id: str) -> datetime | None:
        """Return when EC2 first warned of an instance, whether anybody was told or not; None if it did not."""
        return min((at for at, is_warning in self._notices[instance_id] if is_warning), default=None)

    def noticed_at(self, instance_id: str) -> datetime | None:
        """Return when EC2 first warned of an instance, or recommended to leave it; None if it did neither."""
        return min((at for at, _ in self._notices[instance_id]), default=None)

    def was_threatened(self, instance_id: str) -> bool:
        """Return whether EC2 warned of an instance, recommended to leave it, or ended it, or it confirmed no stop."""
        is_told = bool(self._notices[instance_id]) or instance_id in self.ended_at
        return is_told or self.has_unconfirmed_stop(instance_id)

    def was_noticed(self, instance_id: str, until: datetime) -> bool:
        """Return whether EC2 had warned of an instance by then, or recommended to leave it."""
        return any(at <= until for at, _ in self._notices[instance_id])

    def has_unconfirmed_stop(self, instance_id: str) -> bool:
        """Return whether a task on an instance took too long to be STOPPED: its other tasks are told to leave."""
        now = self._clock.now()
        not_asked_for = [
            arn
            for arn, wanted_at in self.stop_wanted_at.items()
            if self._stop_told_at.get(arn, now) - wanted_at >= UNCONFIRMED_AFTER
        ]
        return any(self.host_of(arn) == instance_id for arn in (*self.unconfirmed_stops(), *not_asked_for))

    def unconfirmed_stops(self, after: timedelta = UNCONFIRMED_AFTER) -> Iterator[str]:
        """Yield the tasks whose stop the application was not told of in this time after it sent StopTask.

        Events come late, and ECS may not answer.
        """
        now = self._clock.now()
        for arn, asked_at in self.stop_asked_at.items():
            if self._stop_told_at.get(arn, now) - asked_at >= after:
                yield arn

    def is_host_gone(self, task_arn: str) -> bool:
        """Return whether EC2 began to end the host of a task so long ago that the task is over, whatever ECS says.

        "Instances with disconnected agents aren't automatically deregistered when terminated"
        (DeregisterContainerInstance, Amazon ECS API Reference): nobody reports the stops of their tasks.
        """
        return self.host_gone_at(task_arn, self._clock.now()) is not None

    def host_gone_at(self, task_arn: str, until: datetime) -> datetime | None:
        """Return when EC2 began to end the host of a task, if the task was over for that by then; None otherwise."""
        ended_at = self.ended_at.get(self.host_of(task_arn))
        return ended_at if ended_at is not None and until - ended_at >= HOST_GONE_AFTER - _SKEW else None

    def is_stop_unheard(self, task_arn: str) -> bool:
        """Return whether ECS wants a task stopped whose host is out of reach: its agent is away, or EC2 ends it."""
        host = self.host_of(task_arn)
        return task_arn in self.stop_wanted_at and (host in self._cut_off_since or host in self.ended_at)

    def stops_for_long(self, task_arn: str) -> bool:
        """Return whether ECS has said for so long that a task is to be STOPPED that its host does not confirm it."""
        return self._clock.now() - self.stop_wanted_at.get(task_arn, self._clock.now()) >= UNCONFIRMED_AFTER

    def stop_told_at(self, task_arn: str) -> datetime | None:
        """Return when the application first knew that a task has stopped, None if it never did."""
        return self._stop_told_at.get(task_arn)

    def was_cut_off(self, instance_id: str) -> bool:
        """Return whether ECS lost the agent of an instance for so long that a stop could not be confirmed in time."""
        since = self._cut_off_since.get(instance_id)
        is_away = since is not None and self._clock.now() - since >= UNCONFIRMED_AFTER
        return is_away or instance_id in self._cut_off

    def was_away(self, instance_id: str, since: datetime, until: datetime) -> bool:
        """Return whether ECS had lost the agent of an instance at any time between these."""
        return any(began <= until and (ended is None or ended >= since) for began, ended in self._away[instance_id])

    def away_time(self, instance_id: str, since: datetime, until: datetime) -> timedelta:
        """Return for how long ECS had lost the agent of an instance between two times."""
        spans = ((max(began, since), min(ended or until, until)) for began, ended in self._away[instance_id])
        return sum((max(ended - began, timedelta(0)) for began, ended in spans), timedelta(0))

    def _note_agent(self, instance_id: str, *, is_connected: bool) -> None:
        spans = self._away[instance_id]
        now = self._clock.now()
        is_away = bool(spans) and spans[-1][1] is None
        if not is_connected and not is_away:
            spans.append((now, None))
        elif is_connected and is_away:
            spans[-1] = (spans[-1][0], now)
        if not is_connected:
            self._cut_off_since.setdefault(instance_id, self._clock.now())
        elif self.was_cut_off(instance_id):
            self._cut_off.add(instance_id)
        if is_connected:
            self._cut_off_since.pop(instance_id, None)

    def was_refused(self, since: datetime, until: datetime, for_at_least: timedelta) -> bool:
        """Return whether a permission was missing for so long between two times."""
        return any(min(end, until) - max(begin, since) >= for_at_least for begin, end in self.refused)

    def ran_until(self, task_arn: str) -> datetime | None:
        """Return when ECS reported a task as STOPPED, or its instance began to end; None if neither."""
        ends = (self._stopped_at.get(task_arn), self.ended_at.get(self.host_of(task_arn)))
        return min((each for each in ends if each is not None), default=None)

    def failed_to_start_on(self, instance_id: str) -> bool:
        """Return whether a task stopped on an instance without having started."""
        return instance_id in self._unstarted

    def knows_warning(self, task_arn: str, stopped_at: datetime) -> bool:
        """Return whether the application was told of a task's instance, and of a warning that may explain its stop.

        What was handled since the running function began its message is none that it must have read.
        """
        began_at = self.message_began_at() or self._clock.now()
        warnings = self._handled[self.host_of(task_arn)]
        known = (given_at for given_at, handled_at in warnings if handled_at <= began_at)
        return task_arn in self._placed_at and any(stopped_at >= at - NOTICE_LEAD for at in known)

    def was_warned(self, instance_id: str) -> bool:
        """Return whether the application handled a warning of an instance."""
        return bool(self._handled[instance_id])

    def first_warning(self, instance_id: str) -> tuple[datetime, datetime] | None:
        """Return when the first warning was given that the application handled, and when it had; None without one."""
        return next(iter(self._handled[instance_id]), None)

    def is_unknown(self, task_arn: str, stopped_at: datetime | None) -> bool:
        """Return whether nobody told the application of a task while ECS described it."""
        known_at = self.known_at.get(task_arn)
        kept = timedelta(0) if task_arn in self.forgotten else STOPPED_KEPT - _SECOND
        return known_at is None or (stopped_at is not None and known_at > stopped_at + kept)

    def is_unplaced(self, task_arn: str) -> bool:
        """Return whether RunTask never named a task, and ECS did not list it once it had stopped, or hid it then.

        An event of it is not enough where several tasks are launched together: those that were placed are listed when
        no more are sent.
        """
        span = self.hidden_span(task_arn)
        stopped_at = self._stopped_at.get(task_arn)
        is_hidden = span is not None and stopped_at is not None and span[0] <= stopped_at <= span[1]
        return (task_arn in self.forgotten or is_hidden) and task_arn not in self.named

    def may_be_lost(self, task_arn: str, stopped_at: datetime | None, at: datetime) -> bool:
        """Return whether ECS may have said, for as long as it documents, that there is no such task.

        It may have shown the task in between, while nobody asked.
        """
        span = self.hidden_span(task_arn)
        was_hidden = span is not None and at - span[0] >= LONGEST_MISSING
        told = self._told_missing.get(task_arn, ())
        was_hidden = was_hidden or any(ends <= at and ends - begins >= LONGEST_MISSING - _SKEW for begins, ends in told)
        was_dropped = stopped_at is not None and at >= stopped_at + STOPPED_KEPT
        return was_hidden or was_dropped or (task_arn in self.forgotten and stopped_at is not None)

    def shown_at(self, task_arn: str) -> datetime | None:
        """Return when ECS showed a task again that it hid, None for any other."""
        span = self.hidden_span(task_arn)
        return span[1] if span else None

    def hidden_for(self, task_arn: str) -> timedelta:
        """Return how long ECS hid a task for longer than it documents."""
        span = self.hidden_span(task_arn)
        return span[1] - span[0] if span else timedelta(0)


def tasks_in(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tasks that an answer of RunTask names."""
    for task in answer.get("tasks", ()):
        yield task["taskArn"]


def _time_of(event: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(event["time"]))
