from dataclasses import replace
from datetime import timedelta
from functools import cache
from itertools import pairwise

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_observation,
    make_running_attempt,
    make_running_job,
)
from fakes.machines import machine
from fakes.repository import REPOSITORY
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import HeldStop, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import FINAL_STATES, JobState, Waiting, WaitReason
from relaunch.core.lifecycle.events import (
    CheckpointsUnreadable,
    JobEvent,
    LaunchNotGranted,
    LaunchRepeated,
    MachineAwaited,
    MachineLimitReached,
    NothingKept,
    SlotDenied,
    TaskSeen,
    TimePassed,
)
from relaunch.core.lifecycle.long_waits import RESERVATION_LIMIT
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, decision_metrics, machine_metrics
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.events import AgentSeen, AgentState, InstanceMissing, MachineDue
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.table import decide as decide_machine
from relaunch.core.selection.selection import Selection
from relaunch_local.pages.waits import JOB_STATES, MACHINE_STATES, WAIT_REASONS, main, render_page

PAGE = REPOSITORY / "docs" / "waits.md"
LONG = (
    WaitReason.SLOT,
    WaitReason.MACHINE_LIMIT,
    WaitReason.LAUNCH,
    WaitReason.CAPACITY,
    WaitReason.PRICE,
    WaitReason.MARKET,
    WaitReason.MACHINE,
)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def test_the_page_is_that_of_the_code():
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "write it anew: python -m relaunch_local.pages.waits docs/waits.md"
    )


def test_the_page_is_written(tmp_path):
    main([str(tmp_path / "waits.md")])

    assert (tmp_path / "waits.md").read_text(encoding="utf-8") == render_page()


def test_every_state_and_reason_has_its_bound():
    assert set(JOB_STATES) == set(JobState) - FINAL_STATES
    assert set(WAIT_REASONS) == set(WaitReason)
    assert set(MACHINE_STATES) == set(MachineState) - {MachineState.GONE}


def waiting(reason: WaitReason, until: timedelta | None = None, slot: str = "", **fields) -> Job:
    held = Waiting(reason, NOW, f"waits for {reason}", NOW + until if until else None, slot=slot)
    given = {"waiting": held, "image": ("trainer", "5e07"), "wake_at": NOW, "reason": held.detail, "accepted_at": NOW}
    return make_job(**{**given, **fields})


def stopping() -> Job:
    attempt = make_running_attempt(intent=StopIntent(IntentKind.CANCEL, NOW, "enough"))
    return replace(make_running_job(attempt=attempt), state=JobState.STOPPING, state_since=NOW)


def tell(job: Job, event: JobEvent, lasts: timedelta) -> list[timedelta]:
    """Return when, after the beginning of its wait, somebody is told of the starving job."""
    told, now, until = [], NOW, NOW + lasts
    while not job.state.is_final and job.wake_at is not None and job.wake_at <= until:
        now = max(now, job.wake_at)
        decision = decide(job, event, now, StackLimits())
        if MetricDatum(Metric.JOBS_REFUSED) in decision_metrics(job, decision, now):
            told.append(now - NOW)
        job = replace(decision.job, pending=())
    return told


def starve(job: Job, event: JobEvent, lasts: timedelta) -> Job:
    """Return the job after its wakes, at each of which the event tells that nothing has changed."""
    now, until = NOW, NOW + lasts
    for _ in range(10_000):
        if job.state.is_final or job.wake_at is None or job.wake_at > until:
            return job
        now = max(now, job.wake_at)
        decision = decide(job, event, now, StackLimits())
        assert decision.job.wake_at is None or decision.job.wake_at > now
        job = replace(decision.job, pending=())
    raise AssertionError(f"it is woken for ever: {job.state} {job.wake_at}")


STOPPING = JobState.STOPPING
PLACED = replace(make_running_attempt(), started_at=None)
HELD_STOP = HeldStop(Stop(StopKind.SUCCESS, NOW, exit_code=0), NOW, StopKind.HOST_LOST, StopKind.INTERRUPTION)


def placed(**fields) -> Job:
    placement = replace(PLACED.placement, placed_at=NOW, requested_at=NOW)
    attempt = replace(PLACED, placement=placement, **fields)
    return make_job(state=JobState.LAUNCHING, attempt=attempt, waiting=None, accepted_at=NOW, wake_at=NOW)


ENDS: dict[str, tuple[Job, JobEvent, timedelta, JobState]] = {
    "image": (waiting(WaitReason.IMAGE, 30 * MINUTE), TimePassed(), 30 * MINUTE, JobState.FAILED),
    "checkpoint": (waiting(WaitReason.CHECKPOINT), CheckpointsUnreadable("AccessDenied"), DAY, JobState.FAILED),
    "refused": (waiting(WaitReason.REFUSED), LaunchNotGranted("iam:PassRole"), DAY, JobState.FAILED),
    "refused after it has trained": (
        waiting(WaitReason.REFUSED, first_started_at=NOW, attempt=make_attempt()),
        LaunchNotGranted("iam:PassRole"),
        14 * DAY,
        JobState.FAILED,
    ),
    "stopping": (stopping(), TimePassed(), DAY + 2 * MINUTE, JobState.CANCELLED),
    "running and then stopping": (
        make_running_job(definition=make_definition(max_runtime=2 * HOUR)),
        TimePassed(),
        2 * HOUR + DAY + 2 * MINUTE,
        JobState.TIMED_OUT,
    ),
    "waiting for capacity after an interruption": (
        waiting(WaitReason.CAPACITY, first_started_at=NOW, interruptions=1),
        TimePassed(),
        DAY,
        JobState.FAILED,
    ),
    "waiting for capacity after a failure of its program": (
        waiting(WaitReason.CAPACITY, first_started_at=NOW, failures=1),
        TimePassed(),
        DAY,
        JobState.FAILED,
    ),
    **{
        f"{reason} before its first run": (waiting(reason), TimePassed(), DAY, JobState.FAILED)
        for reason in (
            WaitReason.LAUNCH,
            WaitReason.CAPACITY,
            WaitReason.PRICE,
            WaitReason.MARKET,
            WaitReason.MACHINE,
        )
    },
    **{
        f"{reason}{' after its first run' if fields else ''}": (
            waiting(reason, slot=slot, **fields),
            TimePassed(),
            14 * DAY,
            JobState.FAILED,
        )
        for reason, slot in ((WaitReason.SLOT, "resnet"), (WaitReason.MACHINE_LIMIT, ""))
        for fields in ({}, {"first_started_at": NOW, "attempt": make_attempt()})
    },
    "reserved capacity before its first run": (
        waiting(
            WaitReason.CAPACITY,
            accepted_at=NOW - RESERVATION_LIMIT + DAY,
            definition=make_definition(purchase=PurchasePolicy.RESERVED),
        ),
        TimePassed(),
        DAY,
        JobState.FAILED,
    ),
    "launching: a task without an instance": (placed(node=None, instance_id=None), TimePassed(), 15 * MINUTE, STOPPING),
    "launching: a task that does not start": (placed(), TimePassed(), 30 * MINUTE, STOPPING),
    "running on a host that EC2 ended": (
        make_running_job(attempt=make_running_attempt(host_ended_at=NOW), wake_at=NOW + MINUTE),
        TimePassed(is_described=True),
        10 * MINUTE,
        JobState.WAITING,
    ),
    "running on a host that EC2 ended while the cluster cannot be asked": (
        make_running_job(attempt=make_running_attempt(host_ended_at=NOW), wake_at=NOW + MINUTE),
        TimePassed(),
        30 * MINUTE,
        JobState.WAITING,
    ),
    "stopping: a verdict that EC2 may change": (
        make_running_job(
            state=STOPPING,
            state_since=NOW,
            attempt=make_running_attempt(held=HELD_STOP, held_since=NOW),
            wake_at=NOW + timedelta(seconds=10),
        ),
        TimePassed(),
        MINUTE,
        JobState.SUCCEEDED,
    ),
    "a pod that no node takes": (
        make_job(
            state=JobState.LAUNCHING,
            definition=make_definition(target=Target.ACK, purchase=PurchasePolicy.ON_DEMAND),
            attempt=replace(PLACED, node=None, instance_id=None),
            waiting=None,
            accepted_at=NOW,
            wake_at=NOW,
        ),
        TimePassed(),
        DAY + HOUR + 10 * MINUTE,
        JobState.FAILED,
    ),
}
HELD = [
    name
    for name, (job, *_) in ENDS.items()
    # The reservation has waited before.
    if job.waiting and job.waiting.reason in LONG and job.accepted_at == NOW
]


@cache
def ended(name: str) -> Job:
    job, event, bound, _ = ENDS[name]
    return starve(job, event, bound)


@pytest.mark.parametrize("name", ENDS)
def test_a_starved_job_ends_at_its_bound_and_not_long_before(name: str):
    job, event, bound, end = ENDS[name]

    early = starve(job, event, bound * 0.9).state

    assert early is not end
    assert not early.is_final
    assert ended(name).state is end


@pytest.mark.parametrize("name", ENDS)
def test_every_end_has_its_row_and_says_what_it_waited_for(name: str):
    job = ENDS[name][0]

    assert ended(name).reason
    if job.waiting is not None and name in HELD:
        assert job.waiting.detail in ended(name).reason
        assert WAIT_REASONS[job.waiting.reason].told


@pytest.mark.parametrize("name", HELD)
def test_somebody_is_told_of_a_long_wait_at_half_of_its_bound_and_once_a_day(name: str):
    job, event, bound, _ = ENDS[name]

    told = tell(job, event, bound)

    assert bound / 2 - 20 * MINUTE <= told[0] <= bound / 2 + 20 * MINUTE
    assert all(DAY <= later - earlier <= DAY + 20 * MINUTE for earlier, later in pairwise(told))
    assert bound - told[-1] <= DAY + 20 * MINUTE


def starve_by(job: Job, event: JobEvent, every: timedelta, lasts: timedelta) -> tuple[Job, list[timedelta]]:
    """Return the job, and when somebody was told, if it hears so often that it is not its turn, and wakes meanwhile."""
    told, now, heard_at = [], NOW, NOW
    while not job.state.is_final and now < NOW + lasts:
        heard_at = heard_at + every if now >= heard_at else heard_at
        now = max(now, min(heard_at, job.wake_at or heard_at))
        decision = decide(job, event if now == heard_at else TimePassed(), now, StackLimits())
        if MetricDatum(Metric.JOBS_REFUSED) in decision_metrics(job, decision, now):
            told.append(now - NOW)
        job = replace(decision.job, pending=())
    return job, told


_NOTHING = Selection((), (), ())
_STILL_RUNS = TaskSeen(make_observation("RUNNING", desired_status="STOPPED", started_at=NOW))
# What a job is told as long as what it waits for is not there, more often than it wakes by itself: each slot and
# machine that becomes free wakes it, and others take what is free.
ANSWERS: dict[str, tuple[JobEvent, timedelta]] = {
    "image": (LaunchRepeated(1, 1), 4 * MINUTE),
    "checkpoint": (CheckpointsUnreadable("AccessDenied"), 4 * MINUTE),
    "refused": (LaunchNotGranted("iam:PassRole"), 4 * MINUTE),
    "refused after it has trained": (LaunchNotGranted("iam:PassRole"), 14 * MINUTE),
    "stopping": (_STILL_RUNS, MINUTE),
    "slot": (SlotDenied("resnet", 5), 14 * MINUTE),
    "slot after its first run": (SlotDenied("resnet", 5), 14 * MINUTE),
    "machine-limit": (MachineLimitReached("usd_per_hour"), 4 * MINUTE),
    "machine-limit after its first run": (MachineLimitReached("usd_per_hour"), 4 * MINUTE),
    "capacity before its first run": (
        NothingKept(_NOTHING, "no capacity", WaitReason.CAPACITY, retry_at=None),
        4 * MINUTE,
    ),
    "price before its first run": (
        NothingKept(_NOTHING, "too dear", WaitReason.PRICE, retry_at=None),
        4 * MINUTE,
    ),
    "market before its first run": (
        NothingKept(_NOTHING, "the policy waits", WaitReason.MARKET, retry_at=None),
        4 * MINUTE,
    ),
    "machine before its first run": (MachineAwaited("it starts"), MINUTE),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_job_that_is_denied_again_and_again_ends_at_its_bound_too_and_somebody_is_told(name: str):
    (job, _, bound, end), (event, every) = ENDS[name], ANSWERS[name]

    after, told = starve_by(job, event, every, bound + every)

    assert after.state is end
    assert after.ended_at is not None
    assert after.ended_at >= NOW + bound * 0.9
    if name in HELD:
        assert bound / 2 - 20 * MINUTE <= told[0] <= bound / 2 + 20 * MINUTE
        assert all(DAY <= later - earlier <= DAY + 20 * MINUTE for earlier, later in pairwise(told))
        assert bound - told[-1] <= DAY + 20 * MINUTE


def test_a_deadline_ends_every_wait():
    for reason in WaitReason:
        job = waiting(reason, DAY, definition=make_definition(deadline=HOUR))
        assert starve(job, TimePassed(), 3 * HOUR).state is JobState.TIMED_OUT, reason


def starve_machine(job: Machine, lasts: timedelta) -> Machine:
    now = NOW
    while job.wake_at is not None and job.wake_at <= NOW + lasts and job.state is not MachineState.GONE:
        now = max(now + timedelta(seconds=1), job.wake_at)
        job = decide_machine(job, MachineDue(), now, MachineLimits()).machine
    return job


def test_a_starved_machine_ends_at_its_bound():
    starting = machine(MachineState.STARTING)
    silent = machine(MachineState.READY, leave_by=NOW + 10 * MINUTE)

    assert starve_machine(starting, 4 * MINUTE).state is MachineState.STARTING
    assert starve_machine(starting, 6 * MINUTE).state is MachineState.ENDING
    assert starve_machine(silent, 9 * MINUTE).state is MachineState.READY
    assert starve_machine(silent, 10 * MINUTE).state is MachineState.ENDING


def test_a_machine_that_ec2_does_not_end_is_told_and_never_forgotten():
    ending, told, now = machine(MachineState.ENDING, state_since=NOW, wake_at=NOW), [], NOW
    while now < NOW + 2 * DAY:
        now = max(now + timedelta(seconds=1), ending.wake_at)
        decision = decide_machine(ending, MachineDue(), now, MachineLimits())
        told += [now - NOW for each in machine_metrics(ending, decision, now) if each.metric is Metric.MACHINE_ALERTS]
        ending = decision.machine

    assert ending.state is MachineState.ENDING
    assert 30 * MINUTE <= told[0] <= 31 * MINUTE
    assert all(HOUR <= later - earlier <= HOUR + 2 * MINUTE for earlier, later in pairwise(told))
    assert Metric.MACHINE_ALERTS in MACHINE_STATES[MachineState.ENDING].told


def test_a_machine_whose_agent_is_away_ends_at_its_bound():
    away = machine(MachineState.READY, away_since=NOW)

    for event, bound in ((AgentSeen(AgentState.AWAY), 30), (AgentSeen(AgentState.AWAY, is_impaired=True), 5)):
        early = decide_machine(away, event, NOW + (bound - 1) * MINUTE, MachineLimits()).machine
        late = decide_machine(away, event, NOW + bound * MINUTE, MachineLimits()).machine
        assert (early.state, late.state) == (MachineState.READY, MachineState.ENDING)
        assert f"{bound} minutes" in MACHINE_STATES[MachineState.READY].bound


def test_a_machine_that_ec2_does_not_know_is_gone_after_five_minutes():
    missing = decide_machine(machine(MachineState.READY), InstanceMissing(), NOW, MachineLimits()).machine

    assert (
        decide_machine(missing, InstanceMissing(), NOW + 5 * MINUTE, MachineLimits()).machine.state is MachineState.GONE
    )
