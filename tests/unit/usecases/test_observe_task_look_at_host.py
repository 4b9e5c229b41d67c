"""What is known of the instance of a stopped task."""

from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import INSTANCE_ID, NOW, make_running_attempt, make_running_job
from fakes.dependencies import make_dependencies
from fakes.machines import machine as make_machine
from fakes.sources import FakeHosts
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import HostObservation
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import Dependencies, PermanentError, PortError, TransientError
from relaunch.usecases.observe_task import look_at_host

SECOND = timedelta(seconds=1)


class OneMachine:
    """A store of machines with one of them."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def load_machine(self, machine_id: str) -> Machine | None:
        return self._machine if machine_id == self._machine.machine_id else None


@pytest.fixture
def hosts() -> FakeHosts:
    return FakeHosts()


@pytest.fixture
def deps(hosts: FakeHosts) -> Dependencies:
    return make_dependencies(hosts=hosts)


def test_an_instance_of_which_nothing_is_said_runs(deps: Dependencies) -> None:
    assert look_at_host(make_running_job(), deps) == HostObservation()


def test_a_warning_counts_though_the_job_was_not_linked_to_its_instance(deps: Dependencies, hosts: FakeHosts) -> None:
    hosts.seen[INSTANCE_ID] = HostObservation(warnings=frozenset({NOW + SECOND}))
    deps.jobs.save_warning(INSTANCE_ID, NOW)

    assert look_at_host(make_running_job(), deps) == HostObservation(warnings=frozenset({NOW, NOW + SECOND}))


@pytest.mark.parametrize(
    ("instance_id", "ended_at", "expected"),
    [(INSTANCE_ID, NOW, NOW), (INSTANCE_ID, None, None), ("i-00000000000000009", NOW, None)],
)
def test_an_end_that_ec2_told_the_machine_of_is_known_after_ec2_forgot_the_instance(
    deps: Dependencies, instance_id: str, ended_at: datetime | None, expected: datetime | None
) -> None:
    machine = make_machine(MachineState.GONE, instance_id=instance_id, ended_at=ended_at)
    job = on_machine(machine.machine_id)
    found = look_at_host(job, replace(deps, machines=OneMachine(machine)))  # type: ignore[arg-type]

    assert found == HostObservation(has_ended=expected is not None, ended_at=expected)


def on_machine(machine_id: str) -> Job:
    attempt = make_running_attempt()
    placement = replace(attempt.placement, machine_id=machine_id, instance_id=INSTANCE_ID)
    return make_running_job(attempt=replace(attempt, placement=placement, instance_id=None))


ERRORS = [TransientError("throttled"), PermanentError("denied")]


@pytest.mark.parametrize("error", ERRORS)
def test_without_an_answer_of_ec2_what_it_told_before_counts(
    deps: Dependencies, hosts: FakeHosts, error: PortError
) -> None:
    hosts.failure = error
    deps.jobs.save_warning(INSTANCE_ID, NOW)
    machine = make_machine(MachineState.GONE, instance_id=INSTANCE_ID, ended_at=NOW + SECOND)
    deps = replace(deps, machines=OneMachine(machine))  # type: ignore[arg-type]

    found = look_at_host(on_machine(machine.machine_id), deps)

    assert found == HostObservation(has_ended=True, ended_at=NOW + SECOND, warnings=frozenset({NOW}), is_answered=False)


@pytest.mark.parametrize("error", ERRORS)
def test_what_is_stored_and_cannot_be_read_is_not_known(deps: Dependencies, hosts: FakeHosts, error: PortError) -> None:
    hosts.seen[INSTANCE_ID] = HostObservation(has_ended=True, ended_at=NOW)
    deps.jobs.load_warning = Mock(side_effect=error)  # type: ignore[method-assign]

    assert look_at_host(make_running_job(), deps) == replace(hosts.seen[INSTANCE_ID], is_answered=False)


def test_without_an_instance_nobody_is_asked(deps: Dependencies, hosts: FakeHosts) -> None:
    job = make_running_job(attempt=make_running_attempt(instance_id=None))

    assert look_at_host(job, deps) is None
    assert hosts.asked == []
