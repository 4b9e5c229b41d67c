"""The behaviour of TaskTarget, for every implementation: one entry of `TARGETS` each."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fakes.builders import container_instance_arn, make_launch_request, task_id
from fakes.task_clusters import TARGETS, Cluster
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchRefused,
    LaunchRequest,
    LaunchUncertain,
    Node,
    NodeObservation,
    PlacementFailed,
    ReportedCause,
    TaskObservation,
    TaskPhase,
    TaskPlaced,
)
from relaunch.ports import PermanentError, TaskTarget


@pytest.fixture(params=TARGETS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with TARGETS[request.param]() as cluster:
        yield cluster


@pytest.fixture
def target(cluster: Cluster) -> TaskTarget:
    return cluster.target


# A target takes what it needs of it: the revision, or the workload and its GPUs.
WORKLOAD = KubernetesWorkload("registry.example.com/vision:v1", vcpus=4.0, memory_mib=16_384, gpu_model="T4")
REQUEST = make_launch_request(workload=WORKLOAD, gpu=GpuRequirement())
OTHER = replace(REQUEST, attempt=AttemptKey("bert-5a6b7c8d", 1))


def place(target: TaskTarget, request: LaunchRequest = REQUEST) -> str:
    outcome = target.launch(request)
    assert isinstance(outcome, TaskPlaced)
    return outcome.task_id


def found(target: TaskTarget, request: LaunchRequest = REQUEST) -> list[str]:
    return [task.task_id for task in target.find_tasks_of(request.attempt)]


def seen(target: TaskTarget, arn: str) -> TaskObservation:
    task = target.describe([arn])[arn]
    assert task is not None
    return task


def test_launched_task_waits_for_its_machine(target: TaskTarget) -> None:
    arn = place(target)

    task = seen(target, arn)

    assert (task.task_id, task.owner) == (arn, REQUEST.attempt)
    assert task.phase is TaskPhase.PENDING
    assert (task.node, task.started_at, task.stopped_at) == (None, None, None)
    assert task.created_at is not None


def test_same_request_sent_again_is_the_same_task(target: TaskTarget) -> None:
    first = place(target)

    assert place(target) == first
    assert found(target) == [first]


def test_two_tries_are_two_tasks(target: TaskTarget) -> None:
    first = place(target)
    second = place(target, replace(REQUEST, placement_number=2))

    assert first != second
    assert sorted(found(target)) == sorted([first, second])


def test_placement_launched_with_other_parameters_is_a_conflict_that_names_the_task(target: TaskTarget) -> None:
    arn = place(target)

    outcome = target.launch(replace(REQUEST, environment={"RELAUNCH_JOB_ID": "another"}))

    assert outcome == LaunchConflict((arn,))
    assert found(target) == [arn]


def test_launch_whose_answer_was_lost_is_found_and_not_repeated(cluster: Cluster, target: TaskTarget) -> None:
    cluster.lose_launch(takes_effect=True)

    assert isinstance(target.launch(REQUEST), LaunchUncertain)
    placed = found(target)

    assert len(placed) == 1
    assert place(target) == placed[0]
    assert found(target) == placed


def test_launch_that_was_lost_on_its_way_has_no_task_until_it_is_sent_again(
    cluster: Cluster, target: TaskTarget
) -> None:
    cluster.lose_launch(takes_effect=False)

    assert isinstance(target.launch(REQUEST), LaunchUncertain)
    assert found(target) == []
    assert [place(target)] == found(target)


def test_throttled_launch_has_no_task_and_goes_through_later(cluster: Cluster, target: TaskTarget) -> None:
    cluster.throttle_launch()

    assert isinstance(target.launch(REQUEST), LaunchDeferred)
    assert found(target) == []
    assert [place(target)] == found(target)


def test_refused_launch_says_why_and_has_no_task(cluster: Cluster, target: TaskTarget) -> None:
    cluster.refuse_launch()

    outcome = target.launch(REQUEST)

    assert isinstance(outcome, LaunchRefused)
    assert outcome.reason
    assert outcome.is_about_revision
    assert found(target) == []


def test_launch_without_room_is_a_failed_placement_with_reasons(cluster: Cluster, target: TaskTarget) -> None:
    request = cluster.without_room(REQUEST)
    if request is None:
        pytest.skip("tasks wait for room")
    outcome = target.launch(request)

    assert isinstance(outcome, PlacementFailed)
    assert outcome.reasons
    assert all(outcome.reasons)
    assert outcome.shortages
    assert found(target) == []


def own_machine(cluster: Cluster, target: TaskTarget) -> Node:
    """Return a node that takes tasks and has none."""
    if not cluster.kind.capabilities.runs_on_ec2:
        pytest.skip("the target cannot keep a task to one machine")
    arn = place(target, OTHER)
    machine = cluster.start(arn)
    cluster.finish(arn, 0)
    return machine


def test_task_for_a_machine_of_our_own_runs_there_and_needs_no_capacity_provider(
    cluster: Cluster, target: TaskTarget
) -> None:
    machine = own_machine(cluster, target)
    arn = place(target, replace(REQUEST, capacity_provider="", instance_id=machine.instance_id))

    assert cluster.start(arn) == machine
    assert place(target, replace(REQUEST, capacity_provider="", instance_id=machine.instance_id)) == arn


def test_task_for_a_machine_of_our_own_that_is_taken_or_not_there_runs_nowhere_else(
    cluster: Cluster, target: TaskTarget
) -> None:
    machine = own_machine(cluster, target)
    cluster.start(place(target, replace(REQUEST, capacity_provider="", instance_id=machine.instance_id)))

    for number, instance_id in enumerate((machine.instance_id, "i-0fffffffffffffff0"), 2):
        late = replace(REQUEST, capacity_provider="", instance_id=instance_id, placement_number=number)
        assert isinstance(target.launch(late), PlacementFailed)
    assert len(found(target)) == 1


def test_request_beyond_a_documented_limit_is_not_sent(cluster: Cluster, target: TaskTarget) -> None:
    request, word = cluster.beyond_limit(REQUEST)

    with pytest.raises(PermanentError, match=word):
        target.launch(request)

    assert found(target) == []


def test_running_task_tells_its_machine(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    machine = cluster.start(arn)

    task = seen(target, arn)

    assert task.phase is TaskPhase.RUNNING
    assert task.node == machine.name
    assert task.started_at is not None
    assert task.waiting_for == ""
    found = target.find_node(machine.name)
    assert found is not None
    assert found.node == machine
    assert found.is_active
    assert found.registered_at is not None
    assert machine.instance_type
    assert machine.zone


def ec2(cluster: Cluster) -> Cluster:
    """Return the cluster if its nodes are EC2 instances."""
    if not cluster.kind.capabilities.runs_on_ec2:
        pytest.skip("the nodes of the target are not EC2's")
    return cluster


def test_task_on_an_ec2_instance_tells_zone_and_instance(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    machine = ec2(cluster).start(arn)

    assert seen(target, arn).zone == machine.zone
    assert machine.instance_type == "g5.xlarge"
    assert machine.instance_id.startswith("i-")


def test_task_whose_container_ended_tells_its_exit_code(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    cluster.start(arn)
    cluster.finish(arn, 3)

    task = seen(target, arn)

    assert task.phase is TaskPhase.STOPPED
    assert task.report.causes == {ReportedCause.ENDED}
    assert {name: each.exit_code for name, each in task.containers.items()} == {"main": 3}
    assert task.stopped_at is not None
    assert found(target) == [arn]


def test_every_change_of_a_task_has_a_higher_version(cluster: Cluster, target: TaskTarget) -> None:
    versions = []
    arn = place(target)
    for change in (lambda: None, lambda: cluster.start(arn), lambda: cluster.finish(arn, 0)):
        change()
        versions.append(seen(target, arn).version)

    assert versions == sorted(set(versions))


def test_stopped_task_carries_our_reason(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    cluster.start(arn)

    target.stop(arn, "spot interruption warning")

    task = seen(target, arn)
    assert task.phase is TaskPhase.STOPPING
    assert task.report.causes == {ReportedCause.STOP_CALLED}
    assert task.report.text == "spot interruption warning"


def test_task_can_be_stopped_before_it_has_a_machine(target: TaskTarget) -> None:
    arn = place(target)

    target.stop(arn, "PROVISIONING for too long")

    task = seen(target, arn)
    assert task.phase.is_ending
    assert task.report.causes == {ReportedCause.STOP_CALLED}
    assert found(target) == [arn]


@pytest.mark.parametrize("has_stopped", [False, True], ids=["second stop", "task that has stopped"])
def test_stop_of_what_stops_already_changes_nothing(cluster: Cluster, target: TaskTarget, *, has_stopped: bool) -> None:
    arn = place(target)
    cluster.start(arn)
    if has_stopped:
        cluster.finish(arn, 0)
    else:
        target.stop(arn, "cancelled")
    before = target.describe([arn])

    target.stop(arn, "time-out")

    assert target.describe([arn]) == before


def test_stopping_a_task_that_was_never_there_is_fine(target: TaskTarget) -> None:
    target.stop(task_id(99), "cancelled")

    assert target.describe([task_id(99)]) == {task_id(99): None}


def test_task_that_stopped_long_ago_is_not_known_any_more(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    cluster.start(arn)
    cluster.finish(arn, 0)
    cluster.forget(arn)

    assert target.describe([arn]) == {arn: None}
    assert found(target) == []


def test_tasks_are_described_in_the_order_they_were_asked_for(target: TaskTarget) -> None:
    first, second = place(target), place(target, OTHER)
    asked = [second, task_id(99), first]

    observed = target.describe(asked)

    assert list(observed) == asked
    assert [task is None for task in observed.values()] == [False, True, False]


def test_describing_nothing_is_nothing(target: TaskTarget) -> None:
    assert target.describe([]) == {}


def test_every_task_that_is_to_run_is_listed_whoever_started_it(cluster: Cluster, target: TaskTarget) -> None:
    waiting, running, stopping, over = (
        place(target, replace(REQUEST, attempt=AttemptKey(name, 1))) for name in ("a", "b", "c", "d")
    )
    for arn in (running, over):
        cluster.start(arn)
    target.stop(stopping, "cancelled")
    cluster.finish(over, 0)

    listed = [task for page in target.list_tasks() for task in page]

    assert next(task for task in listed if task.task_id == running).phase is TaskPhase.RUNNING
    assert {task.task_id: str(task.owner) for task in listed} == {waiting: "a/1", running: "b/1"}
    assert all(task.created_at is not None for task in listed)


def test_an_empty_cluster_lists_nothing(target: TaskTarget) -> None:
    assert [task for page in target.list_tasks() for task in page] == []
    assert [machine for page in target.list_nodes() for machine in page] == []
    assert target.find_daemon_services() == set()


def test_machines_are_listed_with_how_many_tasks_they_have(cluster: Cluster, target: TaskTarget) -> None:
    arn = place(target)
    machine = cluster.start(arn)

    def seen() -> NodeObservation:
        return next(each for page in target.list_nodes() for each in page if each.node.name == machine.name)

    busy = seen()
    cluster.finish(arn, 0)

    assert (busy.node, busy.task_count) == (machine, 1)
    assert busy.is_active
    assert busy.registered_at is not None
    assert seen().task_count == 0


def test_tasks_are_found_by_exactly_their_attempt(target: TaskTarget) -> None:
    arn = place(target)
    place(target, OTHER)

    assert found(target) == [arn]
    assert target.find_tasks_of(replace(REQUEST.attempt, attempt_number=11)) == []
    assert target.find_tasks_of(replace(REQUEST.attempt, job_id="resnet-1f2e3d4")) == []


def test_running_and_stopping_tasks_are_found_on_their_machine_and_stopped_ones_are_not(
    cluster: Cluster, target: TaskTarget
) -> None:
    ec2(cluster)
    arn, other = place(target), place(target, OTHER)
    machine, other_machine = cluster.start(arn), cluster.start(other)
    assert machine != other_machine

    assert [task.task_id for task in target.find_tasks_on(machine.instance_id)] == [arn]
    target.stop(arn, "cancelled")
    assert [task.phase for task in target.find_tasks_on(machine.instance_id)] == [TaskPhase.STOPPING]
    cluster.finish(arn, 143)
    assert target.find_tasks_on(machine.instance_id) == []
    assert [task.task_id for task in target.find_tasks_on(other_machine.instance_id)] == [other]


def test_instance_outside_the_cluster_has_no_tasks(target: TaskTarget) -> None:
    assert target.find_tasks_on("i-0fffffffffffffff0") == []
    target.drain("i-0fffffffffffffff0")


def test_drained_machine_keeps_its_task_and_takes_no_other(cluster: Cluster, target: TaskTarget) -> None:
    ec2(cluster)
    arn = place(target)
    machine = cluster.start(arn)

    for _ in range(2):
        target.drain(machine.instance_id)

    assert [task.task_id for task in target.find_tasks_on(machine.instance_id)] == [arn]
    assert cluster.start(place(target, OTHER)) != machine


def test_node_that_is_not_there_is_none(target: TaskTarget) -> None:
    assert target.find_node(container_instance_arn(99)) is None
