"""Instances in the groups of capacity providers that are no nodes."""

from datetime import timedelta

import pytest

from fakes.builders import make_offering_key
from fakes.story import Story, machine
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.machines.events import InstanceObservation, InstanceState
from relaunch.ports import PermanentError
from relaunch.usecases.sweep_cluster import sweep_cluster


def let_run(story: Story, minutes: int, instance_type: str = "g5.xlarge") -> str:
    """Let an instance of a group run for so long."""
    seen = InstanceObservation(
        machine(7).instance_id,
        InstanceState.RUNNING,
        offering=make_offering_key(instance_type=instance_type),
        launched_at=story.now - timedelta(minutes=minutes),
    )
    story.hosts.in_groups.append(seen)
    return seen.instance_id


@pytest.mark.parametrize(
    ("minutes", "instance_type", "alerts"),
    [(9, "g5.xlarge", 0), (10, "g5.xlarge", 1), (14, "p5.48xlarge", 0), (15, "p5.48xlarge", 1)],
)
def test_an_instance_that_is_no_node_in_its_time_is_an_alert(story, minutes, instance_type, alerts):
    instance_id = let_run(story, minutes, instance_type)

    sweep_cluster(story.deps)

    assert story.metrics.values(Metric.MACHINE_ALERTS) == [1] * alerts
    assert story.log.lines.count(("not registered", {"instance_id": instance_id, "is_alert": True})) == alerts


def test_a_node_is_none_whatever_its_state(story):
    let_run(story, 60)
    node = machine(7)
    story.tasks.instances[node.name] = node
    story.tasks.closed_machines.add(node.name)

    sweep_cluster(story.deps)

    assert story.metrics.values(Metric.MACHINE_ALERTS) == []


def test_what_ec2_does_not_answer_keeps_the_sweep_from_nothing(story, running_id):
    story.hosts.failure = PermanentError("UnauthorizedOperation")

    sweep = sweep_cluster(story.deps)

    assert sweep.is_complete
    assert sweep.tasks == 1
    assert story.log.lines[-2][1]["reason"].endswith("not registered: UnauthorizedOperation")
