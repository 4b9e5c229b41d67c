"""Whichever of two events is handled first that nobody orders, the job ends the same."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import INSTANCE_ID, NOW, make_definition, make_running_attempt, make_running_job
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import HeldStop, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import HostObservation
from relaunch.core.lifecycle.events import (
    CancelAsked,
    HostEnded,
    HostWarned,
    JobEvent,
    TaskMissing,
    TaskSeen,
    TimePassed,
)
from relaunch.core.lifecycle.running import observed
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD, NOTICE_WINDOW
from relaunch.core.lifecycle.table import decide, is_new_observation
from relaunch.core.lifecycle.verdicts import VERDICT_WAIT, held_stop, may_ask, seconds_to_verdict
from relaunch.core.machines.limits import MachineLimits, TaskStop
from unit.core.lifecycle.table_matrix import RUNS, SITUATIONS, seen_stopped

SECOND = timedelta(seconds=1)
EXITED_AT = NOW + timedelta(minutes=5)
SIGNALS = (143, 137)
CODES = (0, 1, 130, *SIGNALS)


@dataclass(frozen=True)
class World:
    """What happened: a program exited at EXITED_AT; EC2 warned of its instance, and ended it, so many seconds later."""

    exit_code: int
    warned: int | None = None
    ended: int | None = None

    @property
    def notices(self) -> tuple[JobEvent, ...]:
        """Return the events of EC2."""
        warned = () if self.warned is None else (HostWarned(INSTANCE_ID, EXITED_AT + self.warned * SECOND),)
        if self.ended is None:
            return warned
        ended_at = EXITED_AT + self.ended * SECOND
        # No program outlives its instance.
        terminated = HostEnded(INSTANCE_ID, "terminated", max(ended_at + timedelta(minutes=1), EXITED_AT + SECOND))
        return (*warned, HostEnded(INSTANCE_ID, "shutting-down", ended_at), terminated)

    @property
    def stopped(self) -> TaskSeen:
        """Return the event of ECS."""
        return seen_stopped(self.exit_code, EXITED_AT + SECOND, None, execution_stopped_at=EXITED_AT)

    def look(self, now: datetime) -> HostObservation:
        """Return what EC2 says to whom asks it."""
        given = {
            name: EXITED_AT + seconds * SECOND
            for name, seconds in (("warned_at", self.warned), ("ended_at", self.ended))
            if seconds is not None and EXITED_AT + seconds * SECOND <= now
        }
        warnings = frozenset({given["warned_at"]} if "warned_at" in given else ())
        return HostObservation("ended_at" in given, given.get("ended_at"), warnings)

    @property
    def end(self) -> str:
        """Return what becomes of a job that may not fail."""

        is_lost = self.ended is not None and -self.ended * SECOND >= -NOTICE_LEAD
        is_heeded = self.warned is not None and -NOTICE_LEAD <= -self.warned * SECOND <= NOTICE_WINDOW
        if is_lost or (is_heeded and self.exit_code in {0, *SIGNALS}):
            return JobState.WAITING
        return JobState.FAILED if self.exit_code else JobState.SUCCEEDED


def handle(job: Job, event: JobEvent, world: World, now: datetime, *, is_answered: bool = True) -> Job:
    """Let a job handle an event as the use cases do, which ask EC2 where they may."""
    if isinstance(event, TaskSeen) and is_new_observation(job, event):
        may = may_ask(observed(job, event, now), event.observation, now)
        event = replace(event, host=world.look(now) if may and is_answered else None)
    return replace(decide(job, event, now, StackLimits()).job, pending=())


def end_of(world: World, handled: list[tuple[int, JobEvent]], *, unanswered: int = 0) -> str:
    """Handle events at these seconds after the program's end, then look at the job whenever it is due."""
    job = make_running_job()
    job = replace(job, definition=replace(job.definition, max_failures=0))
    for seconds, event in sorted(handled, key=lambda each: each[0]):
        if job.state in (JobState.RUNNING, JobState.STOPPING):
            job = handle(job, event, world, EXITED_AT + seconds * SECOND)
    now = EXITED_AT + max(seconds for seconds, _ in handled) * SECOND
    for look in range(4):
        if job.state not in (JobState.RUNNING, JobState.STOPPING):
            break
        assert job.wake_at is not None
        now = max(job.wake_at, now) + SECOND
        job = handle(job, world.stopped, world, now, is_answered=look >= unanswered)
    return job.state


SECONDS = st.integers(-400, 200)
WORLDS = st.builds(World, st.sampled_from(CODES), st.none() | SECONDS, st.none() | SECONDS)


@given(world=WORLDS, data=st.data())
@settings(max_examples=400, deadline=None)
def test_the_end_of_a_job_depends_on_what_happened_alone(world: World, data: st.DataObject) -> None:
    # EC2's events may be lost; each comes after it happened, once or more often, and so late as it likes.
    delays = st.integers(1, 90)
    told = [world.stopped for _ in range(data.draw(st.integers(1, 3)))]
    handled: list[tuple[int, JobEvent]] = [(data.draw(delays), event) for event in told]
    for notice in world.notices:
        at = (notice.at - EXITED_AT) // SECOND  # type: ignore[union-attr]
        times = data.draw(st.integers(0, 2))
        handled += [(max(at, 0) + data.draw(delays), notice) for _ in range(times)]
    data.draw(st.randoms()).shuffle(handled)

    assert end_of(world, handled) == world.end


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("seconds", [-181, -180, -60, 0, 10, 11])
@pytest.mark.parametrize("is_warning", [True, False])
def test_two_events_come_to_the_same_end_in_either_order_and_where_one_is_lost(code, seconds, is_warning):
    world = World(code, warned=seconds) if is_warning else World(code, ended=seconds)
    late = max(seconds, 0) + 2

    for orders in ([(late, 0), (late + 1, 1)], [(late + 1, 0), (late, 1)], [(1, 0), (late + 30, 1)], [(1, 0)]):
        events = (world.stopped, world.notices[0])
        assert end_of(world, [(at, events[index]) for at, index in orders]) == world.end


def stopped_at(now: datetime, code: int | None = 0, host: HostObservation | None = RUNS, **fields) -> Job:
    told = seen_stopped(code, EXITED_AT, host, execution_stopped_at=EXITED_AT, **fields)
    return decide(SITUATIONS["ru"], told, now, StackLimits()).job


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_exited_by_itself_waits_for_seconds(code):
    held = stopped_at(EXITED_AT + SECOND, code)

    assert (held.state, held.wake_at) == (JobState.STOPPING, EXITED_AT + NOTICE_LEAD)
    assert held.reason == f"exit code {code}; whether EC2 was taking {INSTANCE_ID} away is found out within a minute"
    # The program has ended, however long its verdict takes.
    assert held.run_time(EXITED_AT + 9 * SECOND) == EXITED_AT - held.current_attempt.started_at
    assert seconds_to_verdict(held, EXITED_AT + SECOND) == 9
    assert seconds_to_verdict(held, EXITED_AT + NOTICE_LEAD) == 0
    assert stopped_at(EXITED_AT + NOTICE_LEAD, code).state is not JobState.STOPPING


@pytest.mark.parametrize(("code", "host"), [(143, RUNS), (0, None), (None, None)])
def test_a_signal_and_an_ec2_without_an_answer_are_waited_for_for_a_minute(code, host):
    asked_at = EXITED_AT + NOTICE_LEAD
    held = stopped_at(asked_at, code, host)

    assert (held.state, held.wake_at) == (JobState.STOPPING, asked_at + VERDICT_WAIT)
    assert seconds_to_verdict(held, asked_at) == 0, "reconcile is soon enough"
    again = seen_stopped(code, EXITED_AT, host, execution_stopped_at=EXITED_AT)
    over = decide(replace(held, pending=()), again, asked_at + VERDICT_WAIT, StackLimits()).job
    assert over.state is not JobState.STOPPING
    assert seconds_to_verdict(over, asked_at) == 0


def test_a_stop_that_means_the_same_whatever_ec2_says_waits_for_nothing():
    lost = stopped_at(EXITED_AT, None, None, stop_code="TerminationNotice")
    cancelled = decide(
        SITUATIONS["sc"], seen_stopped(0, EXITED_AT, None, execution_stopped_at=EXITED_AT), EXITED_AT, StackLimits()
    ).job

    assert (lost.state, cancelled.state) == (JobState.WAITING, JobState.CANCELLED)


def test_a_start_that_failed_with_words_that_nobody_knows_waits_for_ec2_too():
    words = {
        "stop_code": "TaskFailedToStart",
        "stopped_reason": "CannotStartContainerError: the flux capacitor is empty",
    }
    told = seen_stopped(None, EXITED_AT, None, execution_stopped_at=EXITED_AT, started_at=None, **words)

    held = decide(SITUATIONS["pl"], told, EXITED_AT, StackLimits()).job
    ended = HostObservation(has_ended=True, ended_at=EXITED_AT - 5 * SECOND)
    over = decide(replace(held, pending=()), replace(told, host=ended), EXITED_AT + NOTICE_LEAD, StackLimits()).job

    assert (held.state, held.wake_at) == (JobState.STOPPING, EXITED_AT + NOTICE_LEAD)
    assert over.current_attempt.stop.kind is StopKind.HOST_LOST
    assert over.faults.failed_starts == ()


def test_without_an_instance_there_is_nothing_to_wait_for():
    job = make_running_job(attempt=make_running_attempt(instance_id=None, node=None))

    told = seen_stopped(0, EXITED_AT, None, execution_stopped_at=EXITED_AT)
    nowhere = replace(told, observation=replace(told.observation, node=None))

    assert decide(job, nowhere, EXITED_AT, StackLimits()).job.state is JobState.SUCCEEDED


def test_an_instance_that_is_not_looked_up_yet_is_waited_for_like_any_other():
    job = make_running_job(attempt=make_running_attempt(instance_id=None))
    told = seen_stopped(0, EXITED_AT, None, execution_stopped_at=EXITED_AT)

    held = decide(job, told, EXITED_AT, StackLimits()).job
    over = decide(replace(held, pending=()), told, EXITED_AT + VERDICT_WAIT, StackLimits()).job

    assert (held.state, held.wake_at) == (JobState.STOPPING, EXITED_AT + NOTICE_LEAD)
    assert held.reason == "exit code 0; whether EC2 was taking its instance away is found out within a minute"
    assert over.state is JobState.SUCCEEDED


@pytest.mark.parametrize(("seconds", "state"), [(30, JobState.WAITING), (3_600, JobState.SUCCEEDED)])
def test_a_warning_that_comes_with_the_end_of_a_task_counts_as_if_it_had_come_before(seconds, state):
    definition = make_definition(target=Target.ACK)
    job = make_running_job(definition=definition, attempt=make_running_attempt(instance_id=None))
    told = seen_stopped(0, EXITED_AT, None, execution_stopped_at=EXITED_AT)
    observation = replace(told.observation, warned_at=EXITED_AT - seconds * SECOND)

    over = decide(job, replace(told, observation=observation), EXITED_AT, StackLimits()).job

    assert over.state is state


def test_an_instance_that_ends_since_nobody_knows_when_is_the_cause_of_what_ended_lately():
    ending = HostObservation(has_ended=True)

    soon, late = (stopped_at(EXITED_AT + NOTICE_WINDOW + wait, 0, ending) for wait in (timedelta(), SECOND))

    assert (soon.state, late.state) == (JobState.WAITING, JobState.SUCCEEDED)
    assert soon.current_attempt.stop is not None
    assert soon.current_attempt.stop.kind is StopKind.HOST_LOST


def test_of_two_warnings_the_one_counts_that_the_program_may_have_heeded():
    earlier = replace(SITUATIONS["ru"].current_attempt, warned_at=EXITED_AT - timedelta(hours=1))
    job = replace(SITUATIONS["ru"], attempt=earlier)
    told = seen_stopped(
        0, EXITED_AT, HostObservation(warnings=frozenset({EXITED_AT - SECOND})), execution_stopped_at=EXITED_AT
    )

    over = decide(job, told, EXITED_AT + NOTICE_LEAD, StackLimits()).job

    assert over.state is JobState.WAITING


def test_what_is_asked_meanwhile_does_not_put_a_verdict_off():
    held = replace(stopped_at(EXITED_AT + SECOND), pending=())
    due = held.wake_at

    for event in (
        HostWarned(INSTANCE_ID, EXITED_AT),
        HostEnded(INSTANCE_ID, "terminated", EXITED_AT),
        CancelAsked("x"),
    ):
        assert decide(held, event, EXITED_AT + 2 * SECOND, StackLimits()).job.wake_at == due


def test_the_clock_of_an_instance_puts_no_verdict_off_for_long():
    ahead = seen_stopped(0, EXITED_AT, RUNS, execution_stopped_at=EXITED_AT + timedelta(days=1))

    held = decide(SITUATIONS["ru"], ahead, EXITED_AT, StackLimits()).job
    over = decide(replace(held, pending=()), ahead, EXITED_AT + VERDICT_WAIT, StackLimits()).job

    assert (held.wake_at, over.state) == (EXITED_AT + VERDICT_WAIT, JobState.SUCCEEDED)


def test_a_success_that_is_to_be_cancelled_waits_like_any_other():
    intent = StopIntent(IntentKind.CANCEL, EXITED_AT + SECOND, "enough")
    job = replace(SITUATIONS["sc"], attempt=replace(SITUATIONS["sc"].current_attempt, intent=intent))
    told = seen_stopped(0, EXITED_AT, None, execution_stopped_at=EXITED_AT)

    assert decide(job, told, EXITED_AT + SECOND, StackLimits()).job.state is JobState.STOPPING


def test_a_job_without_a_task_has_no_verdict_to_come():
    assert seconds_to_verdict(SITUATIONS["w0"], NOW) == 0
    assert seconds_to_verdict(SITUATIONS["ru"], NOW) == 0


def woken(held: Job, seconds: int) -> Job:
    """Look at a held job so many seconds after its program ended, while the cluster cannot be asked."""
    return decide(replace(held, pending=()), TimePassed(), EXITED_AT + seconds * SECOND, StackLimits()).job


@pytest.mark.parametrize(
    ("code", "notices", "end"),
    [
        (0, (), StopKind.SUCCESS),
        (143, (), StopKind.USER_ERROR),
        (0, (HostEnded(INSTANCE_ID, "shutting-down", EXITED_AT + SECOND),), StopKind.HOST_LOST),
        (1, (HostEnded(INSTANCE_ID, "shutting-down", EXITED_AT + SECOND),), StopKind.HOST_LOST),
        (1, (HostEnded(INSTANCE_ID, "shutting-down", EXITED_AT + 20 * SECOND),), StopKind.USER_ERROR),
        (None, (HostEnded(INSTANCE_ID, "shutting-down", EXITED_AT + 20 * SECOND),), StopKind.HOST_LOST),
        (None, (), StopKind.UNKNOWN),
        (143, (HostWarned(INSTANCE_ID, EXITED_AT - 30 * SECOND),), StopKind.INTERRUPTION),
        (1, (HostWarned(INSTANCE_ID, EXITED_AT - 30 * SECOND),), StopKind.USER_ERROR),
        (143, (HostWarned(INSTANCE_ID, EXITED_AT + 20 * SECOND),), StopKind.USER_ERROR),
    ],
)
def test_a_held_verdict_is_made_after_a_minute_by_what_is_known_though_the_cluster_cannot_be_asked(code, notices, end):
    # The exit code of the only container is told, or that of none: ECS says no cause then.
    told = {"stop_code": "", "stopped_reason": ""} if code is None else {}
    held = stopped_at(EXITED_AT + SECOND, code, None, **told)
    for notice in notices:
        held = decide(replace(held, pending=()), notice, EXITED_AT + 25 * SECOND, StackLimits()).job

    early, over = woken(held, 40), woken(held, 61)

    assert (early.state, early.wake_at) == (JobState.STOPPING, EXITED_AT + SECOND + VERDICT_WAIT)
    attempt = over.current_attempt
    assert (attempt.stop.kind, attempt.stop.at, attempt.stop.exit_code) == (end, EXITED_AT, code)
    assert attempt.held is None, "it would be stored twice"


@pytest.mark.parametrize(
    ("host", "end"),
    [
        (HostObservation(warnings=frozenset({EXITED_AT + 4 * SECOND})), StopKind.INTERRUPTION),
        (HostObservation(has_ended=True, ended_at=EXITED_AT, is_answered=False), StopKind.HOST_LOST),
        (HostObservation(has_ended=True), StopKind.HOST_LOST),
        (HostObservation(), StopKind.SUCCESS),
        (None, StopKind.SUCCESS),
    ],
)
def test_a_held_verdict_is_made_by_what_is_known_of_the_instance_then(host, end):
    held = stopped_at(EXITED_AT + SECOND)

    over = decide(held, TimePassed(host=host), EXITED_AT + timedelta(minutes=3), StackLimits()).job

    assert over.current_attempt.stop.kind is end


@pytest.mark.parametrize(
    ("host", "end"),
    [
        (HostObservation(warnings=frozenset({EXITED_AT + 4 * SECOND})), StopKind.INTERRUPTION),
        (HostObservation(has_ended=True, ended_at=EXITED_AT), StopKind.HOST_LOST),
        (HostObservation(has_ended=True), StopKind.SUCCESS),
    ],
)
def test_what_ec2_told_before_a_held_verdict_was_due_counts_though_it_does_not_answer_then(host, end):
    held = replace(stopped_at(EXITED_AT + SECOND), pending=())
    early = decide(held, TimePassed(host=host), EXITED_AT + 30 * SECOND, StackLimits()).job

    over = decide(early, TimePassed(host=HostObservation(is_answered=False)), EXITED_AT + 61 * SECOND, StackLimits())

    assert early.wake_at == EXITED_AT + SECOND + VERDICT_WAIT
    assert over.job.current_attempt.stop.kind is end


@pytest.mark.parametrize(
    ("task_stop", "end"),
    [(TaskStop.WHEN_NEXT_READY, JobState.SUCCEEDED), (TaskStop.AT_WARNING, JobState.WAITING)],
)
@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_recommendation_is_the_cause_of_an_end_only_where_it_stops_the_task(task_stop, end, *, is_told_first):
    limits = StackLimits(machines=MachineLimits(task_stop=task_stop))
    recommended = HostWarned(INSTANCE_ID, EXITED_AT - 2 * SECOND, is_rebalance=True)
    stopped, job = World(0).stopped, SITUATIONS["ro"]

    for event in (recommended, stopped) if is_told_first else (stopped, recommended):
        job = replace(decide(job, event, EXITED_AT + SECOND, limits).job, pending=())
    over = decide(job, replace(stopped, host=RUNS), EXITED_AT + NOTICE_LEAD, limits).job

    assert over.state is end


def test_a_held_stop_whose_task_the_cluster_forgets_is_known_all_the_same():
    held = stopped_at(EXITED_AT + SECOND)

    for minutes in range(7):
        now = EXITED_AT + timedelta(minutes=minutes)
        missing = TaskMissing(held.current_attempt.task_id)
        held = replace(decide(held, missing, now, StackLimits()).job, pending=())

    assert held.state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("code", "lead", "kind"),
    [
        (None, VERDICT_WAIT, StopKind.HOST_LOST),
        (None, VERDICT_WAIT + SECOND, StopKind.UNKNOWN_START),
        (1, NOTICE_LEAD, StopKind.HOST_LOST),
        (1, NOTICE_LEAD + SECOND, StopKind.UNKNOWN_START),
    ],
)
def test_a_late_verdict_takes_no_later_end_of_the_instance_for_the_cause(code, lead, kind):
    stop = Stop(StopKind.UNKNOWN_START, EXITED_AT, exit_code=code)
    held = HeldStop(stop, EXITED_AT, StopKind.HOST_LOST, StopKind.INTERRUPTION)

    attempt = make_running_attempt(host_ended_at=EXITED_AT + lead)

    assert held_stop(attempt, held).kind is kind
