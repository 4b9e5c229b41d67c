from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure
from relaunch.core.launches.launch import Node, NodeObservation, TaskPhase, may_refute, refutes
from relaunch.core.machines.machine import Resources


def test_only_a_task_that_stops_or_has_stopped_is_ending() -> None:
    assert {phase for phase in TaskPhase if phase.is_ending} == {TaskPhase.STOPPING, TaskPhase.STOPPED}


LATE = NodeObservation(
    Node("node", "i-0aaa", "g5.xlarge"),
    is_active=True,
    registered_at=NOW + timedelta(minutes=3),
    capacity_provider="g5-spot",
)


@pytest.mark.parametrize(
    ("seen", "provider", "is_refuted"),
    [
        pytest.param(LATE, "g5-spot", True, id="arrived-late"),
        pytest.param(LATE, "g5-other", False, id="another-provider"),
        pytest.param(replace(LATE, capacity_provider=""), "", False, id="of-no-provider"),
        pytest.param(replace(LATE, node=Node("node", "i", "g6.xlarge")), "g5-spot", False, id="type"),
        pytest.param(replace(LATE, is_active=False), "g5-spot", False, id="drained"),
        pytest.param(replace(LATE, registered_at=NOW), "g5-spot", False, id="was-there-before"),
        pytest.param(replace(LATE, registered_at=None), "g5-spot", False, id="not-known-since-when"),
    ],
)
def test_a_machine_that_arrives_late_refutes_that_there_is_no_capacity(seen, provider, is_refuted):
    failure = make_capacity_failure(at=NOW, capacity_provider=provider)

    assert refutes(seen, failure) == is_refuted


@pytest.mark.parametrize(("registered", "is_refuted"), [(0, False), (3, False), (4, True), (8, True)])
def test_a_machine_without_the_gpus_that_the_launch_needed_refutes_nothing(registered, is_refuted):
    failure = make_capacity_failure(at=NOW, capacity_provider="g5-spot", gpu_count=4)

    assert refutes(replace(LATE, registered=Resources(gpus=registered)), failure) == is_refuted
    assert may_refute(LATE, failure)


@pytest.mark.parametrize(
    ("seen", "is_left_open"),
    [
        pytest.param(replace(LATE, capacity_provider=""), True, id="names-no-provider"),
        pytest.param(replace(LATE, node=Node("node", "i")), True, id="names-no-type"),
        pytest.param(replace(LATE, registered_at=None), True, id="not-known-since-when"),
        pytest.param(replace(LATE, node=Node("node", "i", "g6.xlarge")), False, id="type"),
        pytest.param(replace(LATE, registered_at=NOW), False, id="was-there-before"),
    ],
)
def test_the_event_of_a_machine_leaves_open_what_it_does_not_say(seen, is_left_open):
    failure = make_capacity_failure(at=NOW, capacity_provider="g5-spot")

    assert may_refute(seen, failure) == is_left_open


@pytest.mark.parametrize(
    ("task_count", "is_queue", "is_refuted"), [(0, True, True), (1, True, False), (0, False, False)]
)
def test_a_machine_that_runs_no_task_refutes_that_all_run_others(task_count, is_queue, is_refuted):
    failure = make_capacity_failure(capacity_provider="g5-spot", is_queue=is_queue)
    seen = replace(LATE, registered_at=failure.at - timedelta(hours=1), task_count=task_count)

    assert refutes(seen, failure) == is_refuted
    assert may_refute(seen, failure) == is_refuted
