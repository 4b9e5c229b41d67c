"""What becomes of jobs in a cluster whose container runtime, or node, is restarted under them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.cluster_gangs import DEFINITION, ClusterGang, cluster_gang
from fakes.kubernetes_clusters import NAMESPACE
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch_local.kubernetes.state import Document

ONE = replace(DEFINITION, nodes=1)
MINORS = (20, 24, 25, 26, 36)
GANG_MINORS = (24, 25, 26, 36)
Happen = Callable[[ClusterGang, str], None]


def restart_runtime(story: ClusterGang, node: str) -> None:
    story.cluster.restart_runtime(node)


def reboot(story: ClusterGang, node: str) -> None:
    story.cluster.reboot_node(node)


def pod_of(story: ClusterGang, job_id: str) -> Document:
    (pod,) = (
        each
        for each in story.cluster.state.all("pods", NAMESPACE)
        if each["metadata"]["labels"]["job-name"] == story.arn(job_id)
    )
    return pod


def kinds(story: ClusterGang, job_id: str) -> list[StopKind]:
    history = story.jobs.load_history(job_id)
    return [each.stop.kind for each in history.attempts if each.stop is not None]


@pytest.mark.parametrize("happen", [restart_runtime, reboot])
@pytest.mark.parametrize("minor", MINORS)
def test_a_training_goes_on_from_its_checkpoint_and_has_not_failed(minor: int, happen: Happen) -> None:
    with cluster_gang(minor=minor, nodes=2, definition=ONE) as story:
        job_id = story.train()
        first = story.spec(pod_of(story, job_id)).environment["RELAUNCH_CHECKPOINT_URI"]
        saved = f"{first}step-100/"
        story.checkpoints.complete[job_id] = saved

        happen(story, pod_of(story, job_id)["spec"]["nodeName"])
        for _ in range(4):
            story.look(200.0)

        assert kinds(story, job_id) == [StopKind.HOST_LOST]
        assert story.job(job_id).totals.failures == 0
        assert (story.job(job_id).state, story.attempt(job_id).number) == (JobState.RUNNING, 2)
        assert story.spec(pod_of(story, job_id)).environment["RELAUNCH_RESUME_URI"] == saved


@pytest.mark.parametrize("happen", [restart_runtime, reboot])
@pytest.mark.parametrize("minor", GANG_MINORS)
def test_the_peers_of_a_rank_that_was_lost_fail_for_it(minor: int, happen: Happen) -> None:
    with cluster_gang(minor=minor) as story:
        job_id = story.train()

        happen(story, story.pods(job_id)[2]["spec"]["nodeName"])
        story.clock.advance(5)
        for rank in sorted(story.pods(job_id)):
            if rank != 2:
                story.exit(job_id, rank, 1)
        for _ in range(4):
            story.look(200.0)

        assert set(kinds(story, job_id)) <= {StopKind.HOST_LOST, StopKind.INTERRUPTION}
        assert story.job(job_id).totals.failures == 0
        assert (story.job(job_id).state, story.attempt(job_id).number) == (JobState.RUNNING, 2)
