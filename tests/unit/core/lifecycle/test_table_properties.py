"""Random lives of one job against a small truthful ECS: whatever comes in whatever order, the promises hold."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fakes.builders import (
    NOW,
    make_definition,
    make_failed_placement,
    make_job,
    make_observation,
    make_offering,
    make_selection,
    task_id,
)
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches import launch
from relaunch.core.launches.launch import TaskPhase
from relaunch.core.lifecycle import events
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.table import decide

LIMITS = StackLimits()
PROGRESS = {"PROVISIONING": "PENDING", "PENDING": "RUNNING"}
EXITS: tuple[dict[str, Any], ...] = (
    {"stop_code": "EssentialContainerExited", "container_exit_codes": {"main": 0}},
    {"stop_code": "EssentialContainerExited", "container_exit_codes": {"main": 1}},
    {"stop_code": "TerminationNotice", "stopped_reason": "Host EC2 (instance i-1) terminated."},
    {"stop_code": "TaskFailedToStart", "stopped_reason": "RESOURCE:GPU"},
)


@dataclass
class Ecs:
    """Tasks by ARN, everything that was ever said of them, and what became of each client token."""

    tasks: dict[str, launch.TaskObservation] = field(default_factory=dict)
    words: dict[str, dict[str, Any]] = field(default_factory=dict)
    observations: list[launch.TaskObservation] = field(default_factory=list)
    tokens: dict[tuple[int, int], str | None] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)
    without_host: set[str] = field(default_factory=set)

    @property
    def live(self) -> list[launch.TaskObservation]:
        return [task for task in self.tasks.values() if task.phase is not TaskPhase.STOPPED]

    @property
    def stopped(self) -> list[launch.TaskObservation]:
        return [task for task in self.tasks.values() if task.phase is TaskPhase.STOPPED]

    def place(self, token: tuple[int, int], started_by: str, now) -> None:
        arn = task_id(len(self.tasks) + 1)
        self.tokens[token] = arn
        self._say(arn, last_status="PROVISIONING", version=1, started_by=started_by, created_at=now)

    def change(self, arn: str, **fields: Any) -> None:
        self._say(arn, version=self.tasks[arn].version + 1, **fields)

    def _say(self, arn: str, **words: Any) -> None:
        self.words[arn] = self.words.get(arn, {"task_id": arn}) | words
        self.tasks[arn] = make_observation(**self.words[arn])
        self.observations.append(self.tasks[arn])


def instance_of(task: launch.TaskObservation) -> launch.Node:
    return launch.Node(f"machine-of-{task.task_id}", f"i-{task.task_id[-8:]}")


class LifeOfAJob(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.ecs = Ecs()
        self.answers: list[events.LaunchAnswered] = []
        self.slots = 0
        self.job = make_job(definition=make_definition(max_failures=2, deadline=timedelta(hours=60)))

    # what is done with a decision, as the use cases do it

    def feed(self, event: events.JobEvent) -> None:
        before = self.job
        decision = decide(before, event, self.now, LIMITS)
        if decision.is_ignored:
            assert decision.job is before
            return
        if self.is_orphaned(decision):
            assert replace(decision.job, pending=(), wake_at=before.wake_at) == before
        if decision.take_slot_limits is not None:
            assert not before.has_slot
            self.slots += 1
        if decision.release_slot:
            self.slots -= 1
        self.job = replace(decision.job, pending=())
        self.check_step(before, decision.job)
        for effect in decision.job.pending:
            if isinstance(effect, StopTask):
                self.ask_to_stop(effect.task_id)

    def ask_to_stop(self, arn: str) -> None:
        if arn == self.job.current_attempt.task_id:
            # One that was lost with its host, and is seen again, is an orphan.
            assert self.job.current_attempt.intent is not None or self.job.current_attempt.placement.is_lost
        else:
            # Old observations of an earlier attempt's task: harmless, but only because that one has stopped.
            assert self.ecs.tasks[arn].phase is TaskPhase.STOPPED
        if not self.ecs.tasks[arn].phase.is_ending:
            self.ecs.change(arn, desired_status="STOPPED", stop_code="UserInitiated")

    def is_orphaned(self, decision: Decision) -> bool:
        return [entry.event for entry in decision.timeline] == ["orphaned task"]

    def check_step(self, before: Job, after: Job) -> None:
        assert not before.state.is_final or after.state is before.state
        assert after.totals.run_seconds >= before.totals.run_seconds
        assert after.totals.cost_usd >= before.totals.cost_usd
        assert 0 <= after.totals.failures - before.totals.failures <= 1
        assert 0 <= after.totals.interruptions - before.totals.interruptions <= 1
        given_up = int("may live on" in after.reason)
        assert after.totals.failures + after.totals.interruptions <= len(self.ecs.stopped) + given_up
        if after.attempt and before.attempt and after.attempt.task_id == before.attempt.task_id:
            assert after.attempt.task_version >= before.attempt.task_version
        if after.attempt and before.attempt and after.attempt.number != before.attempt.number:
            assert after.attempt.number == before.attempt.number + 1
            assert before.attempt.is_number_used
        if after.state is JobState.LAUNCHING and before.state is JobState.WAITING:
            assert self.ecs.live == []

    # what happens to it

    @rule()
    def an_offering_is_chosen(self) -> None:
        self.feed(events.OfferingChosen(make_offering(), make_selection(), None))

    @rule(permanent=st.integers(0, 19))
    def nothing_is_kept(self, permanent: int) -> None:
        waits_for = None if permanent == 19 else WaitReason.CAPACITY
        self.feed(events.NothingKept(make_selection(kept=()), "nothing", waits_for, None))

    @precondition(lambda self: not self.job.has_slot)
    @rule(slot=st.sampled_from(["resnet", "*"]))
    def a_slot_is_denied(self, slot: str) -> None:
        self.feed(events.SlotDenied(slot, 5))

    @rule()
    def it_gets_to_run(self) -> None:
        self.an_offering_is_chosen()
        if self.is_pending() and not self.job.cancel_requested:
            self.run_task_is_sent("placed")
            self.feed(self.answers[-1])
        for _ in self.ecs.live:
            self.the_task_gets_on()
            self.the_task_gets_on()
            self.the_latest_observation_arrives()

    @precondition(lambda self: self.ecs.live)
    @rule()
    def it_is_interrupted(self) -> None:
        self.a_machine_is_warned_of(self.ecs.live[0], is_told_by_ecs=True)
        self.stop_task(container_exit_codes={"main": 0})
        self.the_latest_observation_arrives()

    def is_pending(self) -> bool:
        job = self.job
        return job.state is JobState.LAUNCHING and job.current_attempt.placement.state is PlacementState.PENDING

    @precondition(lambda self: self.is_pending() and not self.job.cancel_requested)
    @rule(answer=st.sampled_from(["placed", "placed", "failed", "deferred", "lost", "lost-and-placed", "conflict"]))
    def run_task_is_sent(self, answer: str) -> None:
        placement = self.job.current_attempt.placement
        token = (self.job.current_attempt.number, placement.number)
        if token not in self.ecs.tokens and answer in {"placed", "lost-and-placed", "conflict"}:
            self.ecs.place(token, str(self.job.attempt_key), self.now)
        if token not in self.ecs.tokens and answer == "failed":
            self.ecs.tokens[token] = None
        arn = self.ecs.tokens.get(token)
        outcome = launch.LaunchUncertain("no answer")
        if answer == "deferred":
            outcome = launch.LaunchDeferred("ThrottlingException")
        elif not answer.startswith("lost") and token in self.ecs.tokens:
            placed = launch.LaunchConflict((arn,)) if answer == "conflict" and arn else launch.TaskPlaced(arn or "")
            outcome = placed if arn else make_failed_placement("RESOURCE:GPU")
        self.answers.append(events.LaunchAnswered(*token, outcome))

    @precondition(lambda self: self.answers)
    @rule(data=st.data(), is_last_time=st.booleans())
    def an_answer_arrives(self, data: st.DataObject, is_last_time: bool) -> None:
        answer = data.draw(st.sampled_from(self.answers))
        if is_last_time:
            self.answers.remove(answer)
        self.feed(answer)

    @precondition(lambda self: self.is_pending() and not self.answers)
    @rule()
    def the_try_expires(self) -> None:
        token = (self.job.current_attempt.number, self.job.current_attempt.placement.number)
        if self.ecs.tokens.get(token) is None:
            self.feed(events.PlacementExpired(*token))

    @precondition(lambda self: self.ecs.live)
    @rule()
    def the_task_gets_on(self) -> None:
        task = self.ecs.live[0]
        status = PROGRESS.get(task.status)
        if status is not None and not task.phase.is_ending:
            started_at = self.now if status == "RUNNING" else None
            self.ecs.change(task.task_id, last_status=status, node=instance_of(task).name, started_at=started_at)

    @precondition(lambda self: self.ecs.live)
    @rule(how=st.sampled_from(EXITS))
    def the_task_stops_by_itself(self, how: dict[str, Any]) -> None:
        self.stop_task(**how)

    @precondition(lambda self: any(task.phase.is_ending for task in self.ecs.live))
    @rule(exit_code=st.sampled_from([0, 143, 137]))
    def the_task_stops_as_it_was_asked_to(self, exit_code: int) -> None:
        self.stop_task(container_exit_codes={"main": exit_code})

    def stop_task(self, **how: Any) -> None:
        task = self.ecs.live[0]
        self.ecs.change(
            task.task_id, **{"last_status": "STOPPED", "desired_status": "STOPPED", "stopped_at": self.now, **how}
        )

    @precondition(lambda self: self.ecs.observations)
    @rule(data=st.data(), is_looked_up=st.booleans(), is_answered=st.booleans())
    def an_observation_arrives_late_or_twice(self, data: st.DataObject, is_looked_up: bool, is_answered: bool) -> None:
        observation = data.draw(st.sampled_from(self.ecs.observations))
        node = instance_of(observation) if is_looked_up else None
        self.feed(events.TaskSeen(observation, node, self.host_of(observation) if is_answered else None))

    def host_of(self, task: launch.TaskObservation) -> launch.HostObservation:
        return launch.HostObservation(has_ended=task.task_id in self.ecs.without_host)

    @precondition(lambda self: self.ecs.observations)
    @rule()
    def the_latest_observation_arrives(self) -> None:
        observation = self.ecs.observations[-1]
        self.feed(events.TaskSeen(observation, instance_of(observation), self.host_of(observation)))

    @precondition(lambda self: self.ecs.stopped)
    @rule(data=st.data())
    def ecs_forgets_a_stopped_task(self, data: st.DataObject) -> None:
        arn = data.draw(st.sampled_from(self.ecs.stopped)).task_id
        self.ecs.forgotten.add(arn)
        self.feed(events.TaskMissing(arn))

    @precondition(lambda self: self.ecs.tasks)
    @rule(data=st.data(), is_told_by_ecs=st.booleans())
    def a_machine_is_warned(self, data: st.DataObject, is_told_by_ecs: bool) -> None:
        self.a_machine_is_warned_of(data.draw(st.sampled_from(list(self.ecs.tasks.values()))), is_told_by_ecs)

    def a_machine_is_warned_of(self, task: launch.TaskObservation, is_told_by_ecs: bool) -> None:
        self.feed(events.HostWarned(instance_of(task).instance_id, self.now, task.task_id if is_told_by_ecs else None))

    @precondition(lambda self: self.ecs.tasks)
    @rule(data=st.data())
    def a_machine_ends(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(list(self.ecs.tasks.values())))
        self.ecs.without_host.add(task.task_id)
        self.feed(events.HostEnded(instance_of(task).instance_id, "terminated", self.now))

    @rule(is_meant=st.integers(0, 9))
    def somebody_cancels(self, is_meant: int) -> None:
        if is_meant == 9:
            self.feed(events.CancelAsked("not needed"))

    @rule(minutes=st.sampled_from([0, 1, 5, 9, 31]))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)
        for task in self.ecs.live:
            if minutes and task.task_id in self.ecs.without_host:
                # Whether ECS ever tells or not.
                self.stop_task(stop_code="TerminationNotice", stopped_reason="Host EC2 (instance i-1) terminated.")
        self.feed(events.TimePassed())

    # what always holds

    @invariant()
    def at_most_one_task_lives(self) -> None:
        assert len(self.ecs.live) <= 1

    @invariant()
    def an_open_job_is_woken(self) -> None:
        assert self.job.state.is_final or self.job.wake_at is not None

    @invariant()
    def a_slot_is_taken_once_and_given_back_once(self) -> None:
        assert self.slots == int(self.job.has_slot)
        assert self.slots in {0, 1}
        assert not (self.job.state.is_final and self.slots)

    @invariant()
    def attempts_are_tasks_that_started_or_that_nobody_knows_of(self) -> None:
        spent = sum(task.started_at is not None or arn in self.ecs.forgotten for arn, task in self.ecs.tasks.items())
        number = self.job.attempt.number if self.job.attempt else 1
        assert number <= spent + 1

    @invariant()
    def a_job_that_is_over_has_no_task_but_one_that_stops(self) -> None:
        if self.job.state.is_final and "may live on" not in self.job.reason:
            assert self.ecs.live == []

    @invariant()
    def the_current_task_was_started_by_the_current_attempt(self) -> None:
        arn = self.job.attempt.task_id if self.job.attempt else None
        assert arn is None or self.ecs.tasks[arn].owner == self.job.attempt_key

    @invariant()
    def every_task_that_is_not_waited_for_any_more_has_its_stop(self) -> None:
        attempt = self.job.attempt
        if attempt and attempt.task_id:
            is_over = self.job.state.is_final or self.job.state is JobState.WAITING
            assert (attempt.stop is not None) is is_over

    @invariant()
    def success_is_a_program_that_ended_with_0(self) -> None:
        if self.job.state is JobState.SUCCEEDED:
            ended = [task.containers.get("main") for task in self.ecs.stopped]
            assert any(main is not None and main.exit_code == 0 for main in ended)

    def teardown(self) -> None:
        """From wherever it is, a job comes to its end once its dependencies work."""
        self.answers.clear()
        for _ in range(60):
            if self.job.state.is_final:
                return
            self.behave()
        raise AssertionError(f"stuck in {self.job.state}: {self.job.reason}")

    def behave(self) -> None:
        self.now += timedelta(minutes=1)
        if self.job.state is JobState.WAITING:
            self.an_offering_is_chosen()
        elif self.is_pending() and self.job.cancel_requested and not self.ecs.live:
            self.the_try_expires()
        elif self.is_pending() and not self.job.cancel_requested:
            self.run_task_is_sent("placed")
            self.feed(self.answers.pop())
        elif self.ecs.live:
            self.the_task_gets_on()
            self.stop_task(**EXITS[0])
        for observation in reversed(self.ecs.observations[-3:]):
            self.feed(events.TaskSeen(observation, instance_of(observation), self.host_of(observation)))


LifeOfAJob.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLifeOfAJob = LifeOfAJob.TestCase
