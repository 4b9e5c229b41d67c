"""ECS with reads that lag behind, answers that are lost, tasks that it hides, and launches that it refuses."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from relaunch_local.ecs import Clock, Event, InProcessClient
from relaunch_local.ecs.api.in_process import client_error_of
from relaunch_local.ecs.engine.placement import MEMBER_OF_UNSATISFIED
from relaunch_local.ecs.errors import concurrent_registration, invalid_parameter
from relaunch_local.simulation.aws.clients import client_error, timed_out
from relaunch_local.simulation.aws.group_faults import RETIRED
from relaunch_local.simulation.aws.rank_environment import has_next_rank
from relaunch_local.simulation.chance import Chance

TASK_STATE_CHANGE = "ECS Task State Change"
# Callers are to wait five minutes for a task that ECS does not show; the clocks of functions differ by seconds.
_LONGEST_ABSENCE = timedelta(minutes=4, seconds=30)


def _family_of(parameters: Mapping[str, Any]) -> str:
    """Return the family whose tasks a RunTask is to launch; that of the source if its definition is derived."""
    return str(parameters["taskDefinition"]).rpartition("/")[2].partition(":")[0].partition("--")[0]


@dataclass(slots=True)
class DelayedEcs:
    """ECS with eventually consistent reads: a new task is not visible everywhere for a while.

    RunTask's documentation says so, and has callers retry for up to five minutes.
    """

    _client: InProcessClient
    _clock: Clock
    _chance: Chance
    _on_stop: Callable[[str], object]
    """Called with each task that StopTask names."""
    _on_made: Callable[[str, str, str], None]
    """Called with the `startedBy` and task of each RunTask, and the token's first task."""
    group_faults: Mapping[str, float] = field(default_factory=dict)
    """How often, by kind: group_faults.RETIRED happens to the launch of a rank before the last."""
    answers_lost_until: datetime | None = None
    lost_share: float = 0.5
    """While answers are lost: the share of RunTask calls whose request is lost too."""
    on_lost: Callable[[str], None] = lambda _started_by: None
    """Called with the `startedBy` of each RunTask of which the request or the answer was lost."""
    on_unanswered: Callable[[str], None] = lambda _arn: None
    """Called with each task that RunTask created or returned in an answer that was lost."""
    forgotten: set[str] = field(default_factory=set)
    """Tasks that ECS no longer describes once they have stopped."""
    forbidden_until: datetime | None = None
    """Until when RunTask and RegisterTaskDefinition are forbidden."""
    on_refused: Callable[[Mapping[str, Any]], None] = lambda _parameters: None
    """Called with the parameters of each RunTask that is refused because it is forbidden, and has made no task."""
    on_register_refused: Callable[[], None] = lambda: None
    """Called when RegisterTaskDefinition is refused because it is forbidden."""
    on_taken: Callable[..., None] = lambda _started_by, **_what: None
    """Called with the `startedBy` of each RunTask that is allowed, and whether ECS made or returned a task."""
    on_placed: Callable[[str, str | None], None] = lambda _started_by, _away: None
    """Called with the `startedBy` of each RunTask, and the container instance of which its answer says AGENT."""
    unplaceable: set[str] = field(default_factory=set)
    """Families of which ECS places no task on any instance, always with the same words."""
    refused_families: set[str] = field(default_factory=set)
    """Families of which RunTask is forbidden to launch tasks."""
    on_unplaced: Callable[[Mapping[str, Any], str], None] = lambda _parameters, _reason: None
    """Called with the parameters of each RunTask that made no task, and ECS's words for it."""
    lost_stops: Counter[str] = field(default_factory=Counter)
    """How many calls of StopTask had no effect, by task."""
    _absent: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    _denied: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    _missing_since: dict[str, datetime] = field(default_factory=dict)
    """Since when every answer has said MISSING of a task: nobody knows of a time between two of them."""
    _made: dict[str, str] = field(default_factory=dict)
    _made_at: dict[str, datetime] = field(default_factory=dict)
    _visible_at: dict[str, datetime] = field(default_factory=dict)
    _states: dict[str, tuple[datetime, Mapping[str, Any] | None, Mapping[str, Any]]] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Delegate every other action."""
        method: Callable[..., Any] = getattr(self._client, name)
        return method

    def observe(self, event: Event) -> None:
        """Keep a task's previous state, for answers that lag behind."""
        if event["detail-type"] != TASK_STATE_CHANGE:
            return
        detail = event["detail"]
        known = self._states.get(detail["taskArn"])
        self._states[detail["taskArn"]] = (self._clock.now(), known[2] if known else None, detail)

    def run_task(self, **parameters: Any) -> Any:
        """RunTask; its task may not be visible at once."""
        # The repetition of a call that made its task keeps no job from having one.
        is_refused = self.is_forbidden() or _family_of(parameters) in self.refused_families
        if is_refused and parameters["clientToken"] not in self._made:
            self.on_refused(parameters)
        if is_refused:
            raise client_error("AccessDeniedException", "RunTask")
        is_lost = self.answers_lost_until is not None and self._clock.now() < self.answers_lost_until
        if is_lost:
            self.on_lost(parameters["startedBy"])
        if is_lost and self._chance.stream("lost-calls").random() < self.lost_share:
            raise timed_out("run_task")
        answer = self._place(parameters)
        self._retire_between_ranks(parameters)
        for failure in answer["failures"]:
            self.on_unplaced(parameters, str(failure.get("reason", "")))
        arns = [task["taskArn"] for task in answer["tasks"]]
        self._note_tasks(arns, parameters["startedBy"], parameters["clientToken"])
        if is_lost:
            for arn in arns:
                self.on_unanswered(arn)
            raise timed_out("run_task")
        away = (failure.get("arn") for failure in answer["failures"] if failure["reason"] == "AGENT")
        self.on_placed(parameters["startedBy"], next(away, None))
        return answer

    def _retire_between_ranks(self, parameters: Mapping[str, Any]) -> None:
        revision = parameters["taskDefinition"]
        share = self.group_faults.get(RETIRED, 0.0)
        is_new = parameters["clientToken"] not in self._made
        if "--" not in revision or not (share and is_new and has_next_rank(parameters)):
            return

        def retire() -> None:
            # It may be already.
            with suppress(ClientError):
                self._client.deregister_task_definition(taskDefinition=revision)

        if self._chance.strikes(RETIRED, share, note=parameters["startedBy"]):
            # By somebody else, which the role of the function that sends the ranks says nothing of.
            self._clock.call_later(0.0, retire)

    def _place(self, parameters: Mapping[str, Any]) -> Any:
        """Call RunTask, which places nothing if a constraint of the task definition holds for no instance.

        ECS takes such a definition (aws/amazon-ecs-agent#3044 has the words of the failure). It answers the repetition
        of a call that made its task with that task.
        """
        if _family_of(parameters) in self.unplaceable and parameters["clientToken"] not in self._made:
            return {"tasks": [], "failures": [{"reason": MEMBER_OF_UNSATISFIED}]}
        try:
            return self._client.run_task(**parameters)
        except ClientError:
            # It was authorized, and is wrong: its revision was deregistered.
            self.on_taken(parameters["startedBy"], has_task=False)
            raise

    def _note_tasks(self, arns: Sequence[str], started_by: str, client_token: str) -> None:
        self.on_taken(started_by, has_task=bool(arns))
        for arn in arns:
            self._on_made(started_by, arn, self._made.setdefault(client_token, arn))
            if arn not in self._visible_at:
                self._made_at[arn] = self._clock.now()
                self._visible_at[arn] = self._made_at[arn] + timedelta(seconds=self._lag(arn))

    def register_task_definition(self, **parameters: Any) -> Any:
        """RegisterTaskDefinition; another call may be creating the same revision, which may be visible already."""
        if self.is_forbidden():
            self.on_register_refused()
        self._check_allowed("RegisterTaskDefinition")
        if self._chance.strikes("registrations-overlap", 0.12, note=parameters["family"]):
            if self._chance.stream("registrations").random() < 0.5:
                raise client_error_of(concurrent_registration(), "RegisterTaskDefinition")
            self._client.register_task_definition(**parameters)
        return self._client.register_task_definition(**parameters)

    def stop_task(self, **parameters: Any) -> Any:
        """StopTask; the program may exit at the same moment, and ECS may not know a new task yet."""
        arn = parameters["task"]
        self._on_stop(arn)
        if self.is_hidden(arn):
            raise client_error_of(invalid_parameter("The referenced task was not found."), "StopTask")
        if self._chance.strikes("stop-without-effect", 0.15, note=arn[-6:]):
            self.lost_stops[arn] += 1
            return {"task": {"taskArn": arn}}
        return self._client.stop_task(**parameters)

    def describe_tasks(self, **parameters: Any) -> Any:
        """DescribeTasks: a new task is MISSING, another may be returned in its previous state."""
        answer = self._client.describe_tasks(**parameters)
        absent = {task["taskArn"] for task in answer["tasks"] if self._is_absent(task["taskArn"])}
        for arn in (task["taskArn"] for task in answer["tasks"]):
            if arn in absent:
                self._missing_since.setdefault(arn, self._clock.now())
            else:
                self._missing_since.pop(arn, None)
        answer["failures"] += [{"arn": arn, "reason": "MISSING"} for arn in sorted(absent)]
        answer["tasks"] = [self._aged(task) for task in answer["tasks"] if task["taskArn"] not in absent]
        return answer

    def list_tasks(self, **parameters: Any) -> Any:
        """ListTasks: a new task is not listed."""
        answer = self._client.list_tasks(**parameters)
        answer["taskArns"] = [arn for arn in answer["taskArns"] if not self.is_hidden(arn)]
        return answer

    def forbid(self, seconds: float) -> None:
        """Refuse RunTask and RegisterTaskDefinition with AccessDenied for this long."""
        self.forbidden_until = self._clock.now() + timedelta(seconds=seconds)

    def is_forbidden(self) -> bool:
        """Return whether RunTask and RegisterTaskDefinition are refused now."""
        return self.forbidden_until is not None and self._clock.now() < self.forbidden_until

    def _check_allowed(self, action: str) -> None:
        if self.is_forbidden():
            raise client_error("AccessDeniedException", action)

    def deny(self, arn: str, seconds: float) -> None:
        """Hide a task for this long from now, longer than ECS documents."""
        now = self._clock.now()
        told_at = self._missing_since.get(arn, now)
        begun_at = self._denied[arn][0] if arn in self._denied else min(self._hidden_since(arn), told_at)
        self._denied[arn] = (begun_at, now + timedelta(seconds=seconds))

    def _hidden_since(self, arn: str) -> datetime:
        """Return since when a task is hidden that is hidden now for longer: it may have been for a while already."""
        now = self._clock.now()
        begins, ends = self._absent.get(arn, (now, now))
        if now < self._visible_at.get(arn, now):
            return min(self._made_at[arn], begins)
        return begins if now < ends else now

    def end_denials(self) -> None:
        """Show every hidden task again."""
        now = self._clock.now()
        self._denied = {arn: (begins, min(ends, now)) for arn, (begins, ends) in self._denied.items()}

    def known_again_at(self, arn: str) -> datetime | None:
        """Return when ECS showed a hidden task again; None for any other task."""
        return self._denied[arn][1] if arn in self._denied else None

    def denied_span(self, arn: str) -> tuple[datetime, datetime] | None:
        """Return from when until when ECS hides a task for longer than it documents; None for any other task."""
        return self._denied.get(arn)

    def suppresses(self, event: Event) -> bool:
        """Return whether ECS publishes no event for this change of a task."""
        if event["detail-type"] != TASK_STATE_CHANGE:
            return False
        detail = event["detail"]
        return self.is_denied(detail["taskArn"]) or self._is_forgotten(detail["taskArn"], detail["lastStatus"])

    def is_denied(self, arn: str) -> bool:
        """Return whether ECS hides a task that it created."""
        return arn in self._denied and self._clock.now() < self._denied[arn][1]

    def _is_forgotten(self, arn: str, last_status: str) -> bool:
        return last_status == "STOPPED" and arn in self.forgotten

    def _lag(self, arn: str) -> float:
        is_outage = self.answers_lost_until is not None and self._clock.now() < self.answers_lost_until
        if self._chance.strikes("task-visible-late", 0.4 if is_outage else 0.05, note=arn[-6:]):
            return self._chance.stream("task-visibility").uniform(5.0, 240.0)
        return 0.0

    def was_hidden(self, arn: str, since: datetime) -> bool:
        """Return whether a task was hidden at any time since then."""
        until = [
            self._visible_at.get(arn, since),
            self._absent.get(arn, (since, since))[1],
            self._denied.get(arn, (since, since))[1],
        ]
        return any(moment > since for moment in until)

    def _is_absent(self, arn: str) -> bool:
        """Return whether DescribeTasks reports a task as MISSING now: a new one, or briefly any."""
        now = self._clock.now()
        begins, ends = self._absent.get(arn, (now - timedelta(days=1), now))
        if now - begins > timedelta(minutes=20) and self._chance.strikes("task-missing", 0.02, note=arn[-6:]):
            begins = now
            ends = now + timedelta(seconds=self._chance.stream("absences").uniform(1.0, 200.0))
            # One that is already missing is so no longer than ECS documents, either.
            ends = min(ends, self._missing_since.get(arn, now) + _LONGEST_ABSENCE)
            self._absent[arn] = (begins, ends)
        return self.is_hidden(arn) or begins <= now < ends

    def is_hidden(self, arn: str) -> bool:
        """Return whether a task is too new to be visible, or is denied or forgotten."""
        visible_at = self._visible_at.get(arn)
        if visible_at is not None and self._clock.now() < visible_at:
            return True
        if arn in self.forgotten and arn in self._states and self._states[arn][2]["lastStatus"] == "STOPPED":
            return True
        return self.is_denied(arn)

    def _aged(self, task: Mapping[str, Any]) -> Mapping[str, Any]:
        changed_at, before, _ = self._states.get(task["taskArn"], (None, None, {}))
        is_fresh = changed_at is not None and self._clock.now() - changed_at < timedelta(seconds=20)
        if before is not None and is_fresh and self._chance.strikes("describe-behind", 0.2, note=task["taskArn"][-6:]):
            return before
        return task
