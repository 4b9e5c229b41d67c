"""While a task saves on a machine that EC2 takes away, the next machine starts."""

import pytest

from fakes.machine_story import G6_DEMAND, MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import MachineState
from relaunch.usecases.cancel_job import cancel_job


@pytest.fixture
def warned(machines) -> tuple[str, str]:
    """Return the ID of a job whose task saves, and that of the machine it does so on."""
    job_id = machines.train()
    machine = machines.machine(job_id)
    machines.warn(machine.instance_id)
    return job_id, machine.machine_id


def end_task(machines: MachineStory, job_id: str) -> None:
    """Let the task be stopped after it has saved."""
    machines.end(job_id, 143, stop_code="UserInitiated")


def test_the_next_machine_is_ready_when_the_task_has_saved(machines, warned):
    job_id, first = warned
    machines.settle_all()
    second = machines.machine(job_id)
    assert (second.state, second.machine_id != first) == (MachineState.STARTING, True)
    machines.register(second)
    machines.settle_all()
    assert machines.job(job_id).state is JobState.STOPPING, "it waits for the task"
    assert len(machines.tasks.requests) == 1

    end_task(machines, job_id)
    machines.settle_all()

    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.tasks.requests[-1].instance_id == second.instance_id
    assert machines.load(first).state is MachineState.ENDING


def test_a_task_that_has_saved_first_waits_for_the_machine(machines, warned):
    job_id, _ = warned
    machines.settle_all()

    end_task(machines, job_id)
    machines.settle_all()
    assert machines.job(job_id).state is JobState.WAITING
    machines.register(machines.machine(job_id))
    machines.settle_all()

    assert machines.job(job_id).state is JobState.LAUNCHING


@pytest.mark.usefixtures("warned")
def test_a_request_that_comes_twice_gets_one_machine(machines):
    machines.launches.requested *= 3

    machines.settle_all()

    assert machines.count == 2


def test_if_ec2_refuses_the_next_machine_another_tier_is_asked_for_while_the_task_saves(machines, warned):
    job_id, _ = warned
    for each in machines.offerings.available:
        if each.key != G6_DEMAND:
            machines.fleet.refused[each.key] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")

    machines.settle_all()

    assert machines.job(job_id).state is JobState.STOPPING
    assert machines.machine(job_id).offering == G6_DEMAND


def test_if_every_request_would_be_refused_nothing_more_is_asked_for_until_the_task_has_stopped(machines, warned):
    job_id, _ = warned
    machines.fleet.refused = dict.fromkeys(
        (each.key for each in machines.offerings.available), (RefusalKind.NOT_PERMITTED, "UnauthorizedOperation")
    )
    asked = len(machines.fleet.requests)

    machines.settle_all()

    assert len(machines.fleet.requests) == asked + 1
    assert machines.job(job_id).machine_id == ""
    assert machines.job(job_id).state is JobState.STOPPING


def test_the_next_machine_uses_the_reserve_of_the_limits():
    machines = MachineStory(max_machines=2, handover_reserve=0.5)
    job_id = machines.train()
    machines.warn(machines.machine(job_id).instance_id)

    machines.settle_all()

    assert machines.count == 2


def test_beyond_the_limits_the_next_machine_waits_for_the_end_of_the_first():
    machines = MachineStory(max_machines=1)
    job_id = machines.train()
    machines.warn(machines.machine(job_id).instance_id)
    machines.settle_all()
    assert machines.count == 1

    end_task(machines, job_id)
    for _ in range(5):
        machines.settle_all()
        machines.look(after=MINUTE)
    machines.settle_all()

    assert machines.machine(job_id).state is MachineState.STARTING


def test_a_cancelled_job_needs_no_next_machine(machines, warned):
    job_id, _ = warned
    machines.settle_all()
    second = machines.machine(job_id).machine_id

    cancel_job(job_id, "enough", machines.deps)

    assert machines.job(job_id).state is JobState.STOPPING
    assert machines.load(second).state is MachineState.ENDING


def test_a_job_that_was_cancelled_before_gets_no_next_machine(machines):
    job_id = machines.train()
    cancel_job(job_id, "enough", machines.deps)

    machines.warn(machines.machine(job_id).instance_id)
    machines.settle_all()

    assert machines.count == 1


def test_a_job_that_is_cancelled_while_it_saves_leaves_no_machine(machines, warned):
    job_id, first = warned
    machines.settle_all()
    second = machines.machine(job_id).machine_id
    cancel_job(job_id, "enough", machines.deps)
    end_task(machines, job_id)

    for _ in range(5):
        machines.settle_all()
        machines.look(after=MINUTE)

    assert machines.job(job_id).state is JobState.CANCELLED
    machines.assert_over(first)
    machines.assert_over(second)
