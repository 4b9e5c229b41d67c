"""What becomes of jobs of several nodes in a cluster when a pod goes between two looks, and nothing of it is left."""

from dataclasses import replace

import pytest

from fakes.cluster_gangs import DEFINITION, NODES, WORKLOAD, ClusterGang, cluster_gang
from fakes.kubernetes_clusters import NAMESPACE
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.state import JobState
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.server import Fault

OLD = (24,)
MINUTES = 300.0


def kinds(story: ClusterGang, job_id: str) -> list[StopKind]:
    history = story.jobs.load_history(job_id)
    return [each.stop.kind for each in history.attempts if each.stop is not None]


def name_of(story: ClusterGang, job_id: str, rank: int) -> str:
    return str(story.pods(job_id)[rank]["metadata"]["name"])


@pytest.mark.parametrize("minor", [24, 25, 26, 36])
def test_a_rank_that_fails_after_minutes_is_a_failure_though_the_pods_of_the_others_are_gone(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        story.look(MINUTES)

        story.exit(job_id, 2, 3)
        story.exit(job_id, 0, 1)
        story.exit(job_id, 1, 1)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.USER_ERROR]
        assert story.job(job_id).totals.failures == 1


@pytest.mark.parametrize("minor", [24, 36])
def test_a_rank_that_fails_before_anybody_has_looked_is_a_failure_if_the_others_ran(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.submit_and_deliver()
        story.clock.advance(MINUTES)

        story.exit(job_id, 0, 1)
        for rank in sorted(story.pods(job_id))[1:]:
            story.exit(job_id, rank, 1)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.USER_ERROR]


def test_a_rank_that_has_waited_for_one_that_never_started_is_no_failure():
    with cluster_gang(Target.KUBERNETES, nodes=NODES - 1) as story:
        job_id = story.submit_and_deliver()
        story.clock.advance(2 * MINUTES)

        story.exit(job_id, 0, 1)
        story.exit(job_id, 1, 1)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.NOT_STARTED]


@pytest.mark.parametrize("rank", [0, 2])
@pytest.mark.parametrize("minor", [25, 26, 36])
def test_a_pod_that_is_deleted_by_hand_is_no_failure_whatever_its_program_ends_with(minor, rank):
    """The failure policy names it: torchrun ends with 1 on SIGTERM."""
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        story.look(MINUTES)

        story.cluster.delete_pod(NAMESPACE, name_of(story, job_id, rank))
        story.clock.advance(5)
        story.exit(job_id, rank, 1)
        story.clock.advance(1)
        for other in list(story.pods(job_id)):
            story.exit(job_id, other, 1)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.INTERRUPTION]
        assert story.job(job_id).totals.failures == 0


def test_a_container_beside_the_program_that_is_ended_after_it_says_nothing():
    with cluster_gang() as story:
        job_id = story.train()
        story.look(MINUTES)
        failed = story.pods(job_id)[1]

        story.exit(job_id, 1, 1)
        with story.cluster.clock.lock:
            story.cluster.record_event(failed, "Normal", "Killing", "Stopping container metrics")
            story.cluster.end_pod(failed)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.USER_ERROR]


def test_ranks_that_finished_beside_sidecars_have_succeeded_though_their_pods_are_removed():
    metrics = {"name": "metrics", "image": "otel:1", "restartPolicy": "Always"}
    workload = replace(WORKLOAD, pod={"spec": {"initContainers": [metrics]}})
    with cluster_gang(definition=replace(DEFINITION, kubernetes=workload)) as story:
        job_id = story.train()
        story.look(MINUTES)

        for rank, pod in sorted(story.pods(job_id).items()):
            story.exit(job_id, rank, 0)
            story.cluster.delete_pod(NAMESPACE, pod["metadata"]["name"])
        story.look()

        assert story.objects("pods") == []
        assert story.job(job_id).state is JobState.SUCCEEDED


@pytest.mark.parametrize("minor", OLD)
def test_a_pod_that_was_evicted_and_replaced_between_two_looks_interrupts_all(minor):
    with cluster_gang(minor=minor, nodes=NODES + 1) as story:
        job_id = story.train()
        story.look(MINUTES)

        evicted = story.pods(job_id)[0]
        story.cluster.evict_pod(NAMESPACE, evicted["metadata"]["name"], "policy/v1")
        with story.cluster.clock.lock:
            story.processes.of_task[evicted["metadata"]["uid"]].exit(1)
        # They have saved too, and their agents had no signal.
        story.exit(job_id, 1, 0)
        story.exit(job_id, 2, 0)
        story.look()

        job = story.job(job_id)
        assert job.state is JobState.STOPPING
        assert job.current_attempt.intent is not None
        assert job.current_attempt.intent.kind is IntentKind.INTERRUPTION
        story.save(job_id, 143)
        story.look()
        assert kinds(story, job_id) == [StopKind.INTERRUPTION]


@pytest.mark.parametrize("minor", OLD)
def test_a_pod_in_the_place_of_one_that_went_with_its_node_lets_the_others_not_hang(minor):
    with cluster_gang(Target.KUBERNETES, minor=minor) as story:
        job_id = story.train()
        story.look(MINUTES)
        node = story.pods(job_id)[2]["spec"]["nodeName"]

        story.cluster.lose_node(node)
        story.cluster.remove_node(node)
        story.look()

        assert "a pod of it was taken away, and the cluster made another one" in story.timeline(job_id)
        story.save(job_id, 1, 1)
        story.look()
        assert kinds(story, job_id) == [StopKind.INTERRUPTION]
        assert story.job(job_id).totals.failures == 0


def test_events_of_pods_that_were_replaced_may_be_unreadable():
    with cluster_gang(minor=24, nodes=NODES + 1) as story:
        job_id = story.submit_and_deliver()
        story.clock.advance(30)
        story.cluster.delete_pod(NAMESPACE, name_of(story, job_id, 1), 0)
        story.server.forbidden.add(("list", "events"))

        story.look()

        assert story.job(job_id).state is JobState.RUNNING


def test_ranks_that_gave_up_before_the_first_had_its_name_are_no_failure():
    with cluster_gang() as story:
        # The version, the trial of the Service, the Job; then the Service is not made for longer than torchrun waits.
        story.server.faults.extend([None, None, None, Fault(ApiError(500, "InternalError", "etcd is away"))])
        job_id = story.submit_and_deliver()
        assert story.objects("services") == []
        story.clock.advance(2 * MINUTES)
        (job,) = story.objects("jobs")
        pods = story.cluster.state.all("pods", NAMESPACE)
        with story.cluster.clock.lock:
            for each in pods:
                story.processes.of_task[each["metadata"]["uid"]].exit(1)

        story.settle()
        assert story.arn(job_id) == job
        story.look()

        assert kinds(story, job_id) == [StopKind.NOT_STARTED]
        assert story.job(job_id).totals.failures == 0
