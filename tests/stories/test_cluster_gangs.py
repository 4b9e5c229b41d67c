"""Jobs of several nodes in a cluster: one Job whose pods train together, are stopped together, and judged as one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.cluster_gangs import DEFINITION, NODES, cluster_gang
from fakes.kubernetes_clusters import NAMESPACE
from fakes.story import MINUTE
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.state import JobState
from relaunch.usecases.cancel_job import cancel_job

MINORS = (24, 25, 26, 36)


def kinds(story, job_id):
    """Return how the attempts of a job ended."""
    history = story.jobs.load_history(job_id)
    return [each.stop.kind for each in history.attempts if each.stop is not None]


@pytest.mark.parametrize("minor", MINORS)
def test_a_job_that_all_ranks_finish_has_succeeded(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()

        for rank in range(NODES):
            story.exit(job_id, rank, 0)
            story.look()

        assert story.job(job_id).state is JobState.SUCCEEDED


@pytest.mark.parametrize("minor", MINORS)
def test_the_rank_that_fails_first_ends_all_and_decides(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        uris = [story.spec(each).environment["RELAUNCH_CHECKPOINT_URI"] for each in story.pods(job_id).values()]

        story.exit(job_id, 2, 3)
        story.clock.advance(2)
        # Torchrun ends with 1 when it has lost a peer, and what the Job deletes with whatever it likes.
        story.exit(job_id, 0, 1)
        story.exit(job_id, 1, 0)
        story.look()
        story.look()

        (stop,) = [each.stop for each in story.jobs.load_history(job_id).attempts if each.stop is not None]
        assert (stop.kind, stop.exit_code) == (StopKind.USER_ERROR, 3)
        assert story.job(job_id).totals.failures == 1
        # Launched again, all of them, as the next attempt.
        story.look()
        assert story.attempt(job_id).number == 2
        assert sorted(story.pods(job_id)) == [0, 1, 2]
        assert len(set(uris)) == 1
        assert uris[0].endswith("/attempt-1/")


@pytest.mark.parametrize("minor", MINORS)
def test_a_pod_that_is_evicted_interrupts_all(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        evicted = story.pods(job_id)[1]["metadata"]["name"]

        story.cluster.evict_pod(NAMESPACE, evicted)
        story.look()

        job = story.job(job_id)
        assert job.state is JobState.STOPPING
        # That of 1.25 fails its Job as soon as the deletion begins.
        expected = IntentKind.RANK_ENDED if minor == 25 else IntentKind.INTERRUPTION
        assert job.current_attempt.intent.kind is expected
        # All are to stop, and save.
        assert all("deletionTimestamp" in each["metadata"] for each in story.pods(job_id).values())
        story.save(job_id)
        story.look()
        assert kinds(story, job_id) == [StopKind.INTERRUPTION]
        assert story.job(job_id).totals.failures == 0


@pytest.mark.parametrize("minor", MINORS)
def test_peers_that_fail_before_a_pod_that_is_evicted_are_its_consequence(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()

        story.cluster.evict_pod(NAMESPACE, story.pods(job_id)[2]["metadata"]["name"])
        story.clock.advance(3)
        story.exit(job_id, 0, 1)
        story.clock.advance(2)
        for rank in list(story.pods(job_id)):
            story.exit(job_id, rank, 1)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.INTERRUPTION]
        assert story.job(job_id).totals.failures == 0


@pytest.mark.parametrize("minor", [25, 26, 36])
@pytest.mark.parametrize("first_look", [30.0, 400.0])
def test_peers_of_a_lost_node_fail_for_it(minor, first_look):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        node = story.pods(job_id)[2]["spec"]["nodeName"]

        story.cluster.lose_node(node)
        story.clock.advance(10)
        story.exit(job_id, 0, 1)
        story.exit(job_id, 1, 1)
        story.clock.advance(50)
        story.cluster.remove_node(node)
        story.look(first_look)
        for _ in range(3):
            story.look()

        assert kinds(story, job_id)[0] in {StopKind.HOST_LOST, StopKind.INTERRUPTION}
        assert story.job(job_id).totals.failures == 0


def test_a_pod_that_stays_on_a_node_out_of_reach_tells_why_the_others_failed():
    with cluster_gang() as story:
        job_id = story.train()
        node = story.pods(job_id)[2]["spec"]["nodeName"]

        story.cluster.lose_node(node)
        story.clock.advance(10)
        story.exit(job_id, 0, 1)
        story.exit(job_id, 1, 1)
        story.look(200.0)

        job = story.job(job_id)
        assert job.state is JobState.STOPPING
        assert job.current_attempt.warned_at is not None
        # An hour later no event is left, and the node is removed.
        story.look(2 * 3600.0)
        story.cluster.remove_node(node)
        story.look(120.0)
        story.look()
        assert kinds(story, job_id) == [StopKind.INTERRUPTION]
        assert story.job(job_id).totals.failures == 0


def test_a_taint_that_karpenter_takes_back_stops_nobody():
    with cluster_gang(Target.KUBERNETES) as story:
        job_id = story.train()
        node = story.pods(job_id)[0]["spec"]["nodeName"]

        # It waits for another node, which may be long in coming, and does not come.
        story.cluster.taint_node(node, "karpenter.sh/disrupted")
        for _ in range(5):
            story.look()
        story.cluster.untaint_node(node, "karpenter.sh/disrupted")
        story.look()

        assert story.job(job_id).state is JobState.RUNNING
        attempt = story.attempt(job_id)
        assert (attempt.number, attempt.warned_at, attempt.intent) == (1, None, None)


def test_a_node_that_karpenter_deletes_stops_all_and_they_save():
    with cluster_gang(Target.KUBERNETES) as story:
        job_id = story.train()
        node = story.pods(job_id)[0]["spec"]["nodeName"]

        story.cluster.taint_node(node, "karpenter.sh/disrupted")
        story.look()
        assert story.job(job_id).current_attempt.intent is None
        # Pods that Karpenter may not evict tell nothing of it.
        story.cluster.delete_node(node)
        story.look()

        assert story.job(job_id).current_attempt.intent.kind is IntentKind.INTERRUPTION
        assert all("deletionTimestamp" in each["metadata"] for each in story.pods(job_id).values())
        story.save(job_id)
        story.look()
        assert kinds(story, job_id) == [StopKind.INTERRUPTION]


def test_a_rank_without_memory_decides_though_the_others_abort():
    with cluster_gang() as story:
        job_id = story.train()
        killed = story.pods(job_id)[1]["metadata"]["uid"]

        with story.cluster.clock.lock:
            story.processes.specs[killed].on_exit(137, "OutOfMemoryError: Container killed due to memory usage")
        story.clock.advance(1)
        for rank, code in ((0, 134), (2, 1)):
            story.exit(job_id, rank, code)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.OUT_OF_MEMORY]


def test_ranks_that_do_not_end_with_the_others_are_stopped_and_it_is_a_failure():
    with cluster_gang() as story:
        job_id = story.train()
        story.exit(job_id, 0, 0)
        story.look(200.0)
        assert story.job(job_id).state is JobState.RUNNING
        story.exit(job_id, 1, 0)

        story.look(120.0)

        assert story.job(job_id).current_attempt.intent.kind is IntentKind.RANK_ENDED
        assert "rank 2 did not end with it" in story.timeline(job_id)
        story.exit(job_id, 2, 143)
        story.look()
        assert kinds(story, job_id) == [StopKind.USER_ERROR]


@pytest.mark.parametrize("minor", [24, 36])
def test_a_cancelled_job_leaves_nothing_but_its_ended_job_and_nothing_after_that(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.train()
        assert len(story.objects("services")) == 1

        cancel_job(job_id, "by ada", story.deps)
        story.look()
        assert all("deletionTimestamp" in each["metadata"] for each in story.pods(job_id).values())
        story.save(job_id, 0, 143, 1)
        story.look()

        assert story.job(job_id).state is JobState.CANCELLED
        assert story.objects("pods") == []
        # As the cluster does three days later.
        (name,) = story.objects("jobs")
        story.cluster.delete_job(NAMESPACE, name)
        assert [story.objects(kind) for kind in ("jobs", "pods", "services")] == [[], [], []]


def test_a_job_that_runs_too_long_is_stopped_whole():
    definition = replace(DEFINITION, max_runtime=timedelta(hours=2))
    with cluster_gang(definition=definition) as story:
        job_id = story.train()

        story.look(2 * 3600.0 + 60)
        story.save(job_id, 143, 143, 143)
        story.look()

        assert kinds(story, job_id) == [StopKind.TIME_OUT]
        assert story.objects("pods") == []


def test_pods_that_do_not_all_find_a_node_are_withdrawn_in_time():
    with cluster_gang(Target.KUBERNETES, nodes=NODES - 1) as story:
        job_id = story.submit_and_deliver()
        story.look()
        waiting = story.job(job_id)
        assert waiting.state is JobState.LAUNCHING
        assert waiting.current_attempt.node is None
        assert waiting.reason.startswith("rank 2: Unschedulable: 0/2 nodes are available")

        for _ in range(15):
            story.look()
        assert "start deadline: not started within 0:15:00; the cluster says 2 of 3 RUNNING" in story.timeline(job_id)
        story.save(job_id, 143, 143)
        story.look()

        # None of them holds a node, until all are tried again.
        assert kinds(story, job_id) == [StopKind.NO_CAPACITY]
        assert story.job(job_id).totals.failures == 0


def test_acks_scheduler_places_all_of_them_or_none():
    with cluster_gang(Target.ACK, nodes=NODES - 1) as story:
        job_id = story.submit_and_deliver()
        for _ in range(20):
            story.look()

        # It holds nothing, and so it waits on.
        assert [each["spec"].get("nodeName") for each in story.pods(job_id).values()] == [None] * NODES
        assert "2 Insufficient nvidia.com/gpu" in story.job(job_id).reason
        story.add_nodes(1)
        story.look()
        assert story.job(job_id).state is JobState.RUNNING


def test_a_queue_that_takes_its_place_interrupts_all_ranks():
    definition = replace(DEFINITION, kubernetes=replace(DEFINITION.kubernetes, queue="research"))
    with cluster_gang(definition=definition) as story:
        job_id = story.submit_and_deliver()
        story.look()
        assert story.job(job_id).state is JobState.LAUNCHING
        assert story.job(job_id).reason == "suspended, queue research"
        name = story.arn(job_id)
        story.cluster.patch_job(NAMESPACE, name, {"spec": {"suspend": False}})
        story.look()
        assert story.job(job_id).state is JobState.RUNNING

        story.cluster.patch_job(NAMESPACE, name, {"spec": {"suspend": True}})
        story.look()
        story.save(job_id)
        story.look()
        story.look()

        assert kinds(story, job_id) == [StopKind.INTERRUPTION]


def test_a_quota_for_some_of_its_pods_holds_all_of_them_back():
    with cluster_gang() as story:
        quota = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.nvidia.com/gpu": "16"}}}
        story.cluster.state.add("resourcequotas", NAMESPACE, {"kind": "ResourceQuota", **quota})
        job_id = story.submit_and_deliver()
        story.look()

        assert sorted(story.pods(job_id)) == [0, 1]
        assert "exceeded quota: team" in story.job(job_id).reason
        for _ in range(8):
            story.look()
        assert story.objects("pods") == []


@pytest.mark.parametrize("minor", [20, 23])
def test_an_older_cluster_is_refused_before_anything_runs(minor):
    with cluster_gang(minor=minor) as story:
        job_id = story.submit_and_deliver()

        job = story.job(job_id)
        assert job.state is JobState.FAILED
        assert "a job with `nodes` needs Kubernetes 1.24" in job.reason
        assert f"the cluster has v1.{minor}.2" in job.reason
        assert [story.objects(kind) for kind in ("jobs", "pods", "services")] == [[], [], []]


def test_without_the_right_to_make_services_the_job_waits_and_nothing_runs():
    with cluster_gang() as story:
        story.server.forbidden.add(("create", "services"))
        job_id = story.submit_and_deliver()

        assert story.job(job_id).state is JobState.WAITING
        assert 'cannot create resource "services"' in story.job(job_id).reason
        assert story.objects("jobs") == []
        story.server.forbidden.clear()
        story.look(16 * 60)
        story.look()
        assert story.job(job_id).state is JobState.RUNNING
        assert story.now - story.job(job_id).accepted_at > MINUTE
