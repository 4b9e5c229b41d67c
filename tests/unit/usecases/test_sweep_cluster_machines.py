"""What a sweep finds of machines: those that arrive late, that nobody needs, or whose agent is away."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_capacity_failure, task_id
from fakes.machine_story import MachineStory
from fakes.story import MINUTE, Story, machine
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import NodeObservation
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.machines.machine import Resources
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.sweep_cluster import IDLE_GRACE, sweep_cluster


def test_machines_without_tasks_are_named_once_they_should_be_gone(story):
    busy = story.launch()
    idle, fresh, draining = machine(11), machine(12), machine(13)
    for each in (idle, fresh, draining):
        story.tasks.instances[each.name] = each
    story.tasks.closed_machines.add(draining.name)
    story.clock.advance(IDLE_GRACE)
    story.tasks.registered_at[fresh.name] = story.now

    sweep = sweep_cluster(story.deps)

    assert sweep.idle_machines == [idle.instance_id]
    assert story.metrics.values(Metric.IDLE_MACHINES) == [1]
    assert story.log.lines[-1][1]["idle_machines"] == [idle.instance_id]
    assert story.job(busy).state is JobState.RUNNING


@pytest.mark.parametrize(
    ("tasks", "daemons", "is_idle"),
    [
        pytest.param({1: "service:datadog"}, {"datadog"}, True, id="one daemon"),
        pytest.param({1: "service:datadog", 2: "service:cwagent"}, {"datadog", "cwagent"}, True, id="two daemons"),
        pytest.param({1: "service:web"}, {"datadog"}, False, id="a service that the machine is for"),
        pytest.param({1: "service:datadog", 2: "service:web"}, {"datadog"}, False, id="both"),
        pytest.param({1: "service:datadog", 2: "family:train"}, {"datadog"}, False, id="a task of somebody"),
        pytest.param({1: "service:datadog"}, PermanentError("AccessDeniedException"), False, id="may not be read"),
    ],
)
def test_a_daemon_service_keeps_no_machine_busy(story, tasks, daemons, is_idle):
    served = machine(11)
    idle = machine(12)
    for each in (served, idle):
        story.tasks.instances[each.name] = each
    for number, group in tasks.items():
        story.tasks.say(task_id(number), "RUNNING", started_by="ecs-svc/1", group=group, node=served.name)
    story.tasks.daemon_services = daemons
    story.clock.advance(IDLE_GRACE)

    sweep = sweep_cluster(story.deps)

    assert sweep.is_complete
    assert sweep.idle_machines == [idle.instance_id, *([served.instance_id] if is_idle else [])]


def test_a_provider_whose_machine_runs_a_daemon_alone_is_free_again(story):
    failure = make_capacity_failure(
        at=story.now, until=story.now + timedelta(hours=1), capacity_provider="g5-xlarge-spot", is_queue=True
    )
    story.deps.capacity.remember(failure)
    story.tasks.say(task_id(1), "RUNNING", started_by="ecs-svc/1", group="service:datadog", node=machine().name)
    served = NodeObservation(
        machine(),
        is_active=True,
        task_count=1,
        registered_at=story.now - timedelta(hours=1),
        capacity_provider="g5-xlarge-spot",
        registered=Resources(gpus=1.0),
    )
    story.tasks.list_nodes = lambda: iter([[served]])
    sweep_cluster(story.deps)
    assert story.deps.capacity.load_capacity_memory(story.now)

    story.tasks.daemon_services = {"datadog"}
    sweep_cluster(story.deps)

    assert story.deps.capacity.load_capacity_memory(story.now) == {}


def test_services_are_not_asked_for_where_none_runs_alone(story, running_id):
    story.tasks.find_daemon_services = Mock()

    sweep_cluster(story.deps)

    story.tasks.find_daemon_services.assert_not_called()
    assert story.job(running_id).state is JobState.RUNNING


def let_no_capacity_be_known(story: Story) -> None:
    """Let a launch by the capacity provider of g5.xlarge on spot be withdrawn now."""
    failure = make_capacity_failure(
        at=story.now, until=story.now + timedelta(hours=1), capacity_provider="g5-xlarge-spot"
    )
    story.deps.capacity.remember(failure)


def let_arrive(story: Story) -> None:
    """Let a machine of that capacity provider register in a minute."""
    story.clock.advance(MINUTE)
    seen = NodeObservation(machine(), "ACTIVE", registered_at=story.now, capacity_provider="g5-xlarge-spot")
    story.tasks.list_nodes = lambda: iter([[seen]])


def test_an_offering_is_avoided_no_more_once_a_machine_of_it_arrives_late(story):
    let_no_capacity_be_known(story)
    sweep_cluster(story.deps)
    assert len(story.deps.capacity.load_capacity_memory(story.now)) == 1

    let_arrive(story)
    sweep_cluster(story.deps)

    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    job_id = story.launch()
    assert story.attempt(job_id).placement.capacity_provider == "g5-xlarge-spot"


@pytest.mark.parametrize("call", ["load_capacity_memory", "reopen"])
def test_a_capacity_memory_that_is_out_of_reach_stops_no_sweep_and_the_next_one_reopens(story, call):
    let_no_capacity_be_known(story)
    let_arrive(story)
    works = getattr(story.deps.capacity, call)
    setattr(story.deps.capacity, call, Mock(side_effect=TransientError("throttled")))
    assert sweep_cluster(story.deps).is_complete

    setattr(story.deps.capacity, call, works)
    assert len(story.deps.capacity.load_capacity_memory(story.now)) == 1
    sweep_cluster(story.deps)

    assert story.deps.capacity.load_capacity_memory(story.now) == {}


WARM_TIME = timedelta(hours=2)


@pytest.fixture
def warm():
    """Return a story in which a machine of our own is kept after its job, and has registered long ago."""
    story = MachineStory(warm_time=WARM_TIME)
    story.end(story.train())
    story.settle_all()
    story.clock.advance(IDLE_GRACE)
    return story


def test_a_machine_that_is_kept_warm_is_not_idle_until_its_time_is_over(warm):
    (instance_id,) = warm.running_instances

    assert sweep_cluster(warm.deps).idle_machines == []
    warm.clock.advance(WARM_TIME - IDLE_GRACE)
    assert sweep_cluster(warm.deps).idle_machines == [instance_id]

    assert warm.metrics.values(Metric.IDLE_MACHINES) == [0, 1]


def test_an_instance_beside_warm_ones_that_no_machine_has_is_idle(warm):
    stranger = machine(11)
    warm.tasks.instances[stranger.name] = stranger
    warm.clock.advance(IDLE_GRACE)

    assert sweep_cluster(warm.deps).idle_machines == [stranger.instance_id]


def test_a_machine_that_cannot_be_read_counts_as_idle_and_keeps_the_sweep_from_nothing(warm):
    (instance_id,) = warm.running_instances
    warm.deps.machines.find_by_instance = Mock(side_effect=TransientError("throttled"))

    sweep = sweep_cluster(warm.deps)

    assert (sweep.idle_machines, sweep.is_complete) == ([instance_id], True)
    assert ("postponed", {"instance_id": instance_id, "reason": "loading its machine: throttled"}) in warm.log.lines


def test_a_task_on_a_host_of_others_whose_agent_is_away_is_told_with_where_it_runs(story, running_id):
    node = machine(1)
    assert sweep_cluster(story.deps).unreachable == []
    story.tasks.disconnected.add(node.name)

    sweep = sweep_cluster(story.deps)

    assert sweep.unreachable == [f"{running_id}: {story.arn(running_id)} on {node.instance_id}"]
    assert story.metrics.values(Metric.TASKS_UNREACHABLE) == [1]
    assert story.job(running_id).state is JobState.RUNNING


def test_a_machine_of_our_own_whose_agent_is_away_is_not_told_so_because_it_is_ended():
    story = MachineStory()
    job_id = story.train()
    story.tasks.disconnected.add(str(story.machine(job_id).node))

    assert sweep_cluster(story.deps).unreachable == []
    assert story.machine(job_id).away_since == story.now
