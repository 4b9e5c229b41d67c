"""A task trains on, although EC2 takes its machine away, until its next machine is ready or it has to save."""

from datetime import timedelta

import pytest

from fakes.machine_story import MachineStory
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.limits import TaskStop
from relaunch.core.machines.machine import MachineState
from relaunch.ports import NotYetError, StaleWriteError, TransientError
from relaunch.usecases.launch_attempt import launch_attempt

SECOND = timedelta(seconds=1)
# A stop time-out of 90 s and ten seconds for the way to SIGTERM, of the 120 that a warning leaves.
LEFT = 20


@pytest.fixture
def machines() -> MachineStory:
    return MachineStory(task_stop=TaskStop.WHEN_NEXT_READY, starts_on_rebalance=True)


def warn(machines: MachineStory, job_id: str, *, left: int = LEFT) -> None:
    """Deliver a warning of the job's machine, which is to come back after `left` seconds."""
    with pytest.raises(NotYetError) as early:
        machines.warn(machines.attempt(job_id).instance_id)
    assert early.value.seconds == left


def take_timer(machines: MachineStory) -> None:
    """Take the message for the last moment out of the queue of launches, and leave the others there."""
    timers = [each for each in machines.launches.requested if each[1]]
    assert [delay for _, delay in timers] == [LEFT]
    machines.launches.requested = [each for each in machines.launches.requested if not each[1]]


@pytest.fixture
def warned(machines) -> str:
    """Return the ID of a job that trains on after a warning, whose next machine is launched; its timer is lost."""
    job_id = machines.train()
    warn(machines, job_id)
    take_timer(machines)
    machines.settle_all()
    assert machines.job(job_id).state is JobState.RUNNING
    assert machines.machine(job_id).state is MachineState.STARTING
    return job_id


def test_it_is_stopped_when_the_next_machine_is_ready_and_goes_on_there_once_it_has_stopped(machines, warned):
    machines.register(machines.machine(warned))
    machines.settle_all()

    assert machines.job(warned).state is JobState.STOPPING
    assert machines.tasks.stops[0][0] == machines.arn(warned)
    assert len(machines.tasks.requests) == 1, "never beside a live task"

    machines.end(warned, 143, stop_code="UserInitiated")
    machines.settle_all()
    assert machines.tasks.requests[-1].instance_id == machines.load(machines.machine(warned).machine_id).instance_id


@pytest.mark.parametrize("early", [0, 1, 19])
def test_the_warning_that_comes_back_early_waits_for_the_rest(machines, warned, early: int):
    machines.clock.advance(LEFT - early - 1)

    warn(machines, warned, left=early + 1)

    assert machines.tasks.stops == []
    assert machines.job(warned).state is JobState.RUNNING


def test_the_warning_that_comes_back_in_time_stops_it_though_the_other_message_is_lost(machines):
    job_id = machines.train()
    instance_id, warned_at = machines.attempt(job_id).instance_id, machines.now
    warn(machines, job_id)
    take_timer(machines)
    machines.clock.advance(LEFT)

    machines.warn(instance_id)

    assert machines.job(job_id).current_attempt.intent.at == warned_at + LEFT * SECOND
    assert machines.tasks.stops[0][0] == machines.arn(job_id)


def test_the_message_for_the_last_moment_stops_it_though_the_warning_never_comes_back(machines):
    job_id = machines.train()
    warned_at = machines.now
    warn(machines, job_id)

    machines.deliver()

    assert machines.now == warned_at + LEFT * SECOND
    assert machines.job(job_id).current_attempt.intent.at == machines.now


def test_a_message_that_comes_early_twice_or_late_stops_it_once_and_not_before(machines, warned):
    for seconds in (5, 14):
        machines.clock.advance(seconds)
        launch_attempt(warned, machines.deps)
        assert machines.tasks.stops == []
    for _ in range(3):
        machines.clock.advance(31)
        launch_attempt(warned, machines.deps)

    assert [arn for arn, _ in machines.tasks.stops] == [machines.arn(warned)]


def test_if_both_messages_are_lost_the_next_look_stops_it(machines, warned):
    machines.clock.advance(LEFT)

    machines.reconcile()

    assert machines.job(warned).current_attempt.intent.kind is IntentKind.INTERRUPTION
    assert machines.tasks.stops


def test_without_a_next_machine_it_is_stopped_at_its_last_moment_too(machines):
    job_id = machines.train()
    machines.fleet.refused = dict.fromkeys(
        (each.key for each in machines.offerings.available), (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    )
    warn(machines, job_id)

    machines.settle_all()

    assert machines.job(job_id).state is JobState.STOPPING
    assert machines.job(job_id).machine_id == ""


def test_after_a_recommendation_it_trains_on_until_the_next_machine_is_ready_however_long_that_takes(machines):
    job_id = machines.train()
    first = machines.machine(job_id)
    machines.recommend_rebalance(first.instance_id)
    machines.settle_all()
    machines.reconcile(after=timedelta(hours=1))
    machines.settle_all()

    assert machines.job(job_id).state is JobState.RUNNING
    assert machines.load(first.machine_id).reason == "EC2 recommends to rebalance"
    second = machines.machine(job_id)
    assert second.machine_id != first.machine_id

    machines.register(second)
    machines.settle_all()
    assert machines.job(job_id).state is JobState.STOPPING


def test_if_ec2_has_no_next_machine_a_job_trains_on_its_old_one_and_gets_one_later(machines):
    job_id = machines.train()
    first = machines.machine(job_id)
    machines.fleet.refused = dict.fromkeys(
        (each.key for each in machines.offerings.available), (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    )
    machines.recommend_rebalance(first.instance_id)
    machines.settle_all()

    assert machines.job(job_id).state is JobState.RUNNING
    assert (machines.job(job_id).machine_id, machines.load(first.machine_id).state) == ("", MachineState.READY)

    machines.fleet.refused = {}
    # What was refused is avoided for half an hour.
    for _ in range(4):
        machines.reconcile(after=timedelta(minutes=10))
        machines.settle_all()
    assert machines.machine(job_id).machine_id != first.machine_id
    assert machines.job(job_id).state is JobState.RUNNING


def test_a_warning_after_a_recommendation_sets_the_last_moment(machines):
    job_id = machines.train()
    machines.recommend_rebalance(machines.attempt(job_id).instance_id)
    machines.settle_all()
    second = machines.machine(job_id)
    machines.clock.advance(600)

    warn(machines, job_id)

    assert machines.machine(job_id) == second
    machines.settle_all()
    assert machines.job(job_id).state is JobState.STOPPING
    assert machines.machine(job_id).machine_id == second.machine_id


def test_a_job_that_others_save_while_the_next_machine_gets_ready_is_stopped_all_the_same(machines, warned):
    machines.register(machines.machine(warned))
    save, conflicts = machines.jobs.save_job, [True, True]

    def save_job(decision):
        if conflicts:
            conflicts.pop()
            raise StaleWriteError("saved by others")
        return save(decision)

    machines.jobs.save_job = save_job
    machines.settle_all()

    assert machines.job(warned).state is JobState.STOPPING


def test_a_machine_that_ends_before_the_last_moment_is_no_timer(machines, warned):
    machines.change_host(machines.attempt(warned).instance_id, "shutting-down")

    assert machines.attempt(warned).host_ended_at == machines.now
    assert machines.tasks.stops == []


def test_a_recommendation_that_comes_twice_or_after_the_warning_changes_nothing(machines):
    job_id = machines.train()
    instance_id = machines.attempt(job_id).instance_id
    machines.recommend_rebalance(instance_id)
    recommended = machines.attempt(job_id)
    machines.recommend_rebalance(instance_id)
    assert machines.attempt(job_id) == recommended

    warn(machines, job_id)
    warned_attempt = machines.attempt(job_id)
    machines.recommend_rebalance(instance_id)
    assert machines.attempt(job_id) == warned_attempt


def test_a_warning_that_comes_back_and_cannot_be_handled_for_now_comes_again(machines):
    job_id = machines.train()
    warn(machines, job_id)
    machines.clock.advance(LEFT)
    load = machines.jobs.load_job

    def fail_once(_job_id: str):
        machines.jobs.load_job = load
        raise TransientError("no answer")

    machines.jobs.load_job = fail_once
    with pytest.raises(TransientError):
        machines.warn(instance_of(machines))

    machines.warn(instance_of(machines))
    assert machines.tasks.stops[0][0] == machines.arn(job_id)


def instance_of(machines: MachineStory) -> str:
    """Return the first instance that EC2 launched."""
    return next(iter(machines.fleet.instances.values())).instance_id
