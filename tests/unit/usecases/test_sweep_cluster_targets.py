"""Each target is swept by itself; the nodes of a Kubernetes cluster are none of Relaunch's expenses."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.story import Story
from fakes.tasks import FakeTasks
from relaunch.core.definitions.targets import Target
from relaunch.ports import PermanentError, Targets, TransientError
from relaunch.usecases.sweep_cluster import GRACE, sweep_cluster


@pytest.fixture
def ack():
    return FakeTasks()


@pytest.fixture
def story(ack):
    story = Story(make_definition())
    ecs = story.tasks
    story.deps = replace(story.deps, targets=Targets({Target.ECS: lambda: ecs, Target.ACK: lambda: ack}))
    return story


def test_tasks_of_every_target_are_looked_at_and_the_nodes_of_ecs_only(story, ack):
    ack.list_nodes = Mock(side_effect=AssertionError("nobody needs them"))
    job_id = story.launch()
    stray = ack.say("train-x-1-1", "RUNNING", started_by=f"{job_id}/1", version=3, created_at=story.now)
    story.clock.advance(GRACE.total_seconds())

    sweep = sweep_cluster(story.deps)

    assert (sweep.tasks, sweep.orphans, sweep.is_complete) == (2, {stray.task_id}, True)


@pytest.mark.parametrize("error", [TransientError("no answer"), PermanentError("forbidden")])
def test_a_target_that_does_not_answer_does_not_keep_another_from_its_sweep(story, ack, error):
    ecs = story.tasks
    story.deps = replace(story.deps, targets=Targets({Target.ACK: lambda: ack, Target.ECS: lambda: ecs}))
    ack.list_tasks = Mock(side_effect=error)
    ecs.list_tasks = Mock(side_effect=ecs.list_tasks)

    if isinstance(error, PermanentError):
        with pytest.raises(PermanentError, match="forbidden"):
            sweep_cluster(story.deps)
    else:
        assert not sweep_cluster(story.deps).is_complete

    assert ecs.list_tasks.call_count == 1
