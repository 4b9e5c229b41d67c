"""The task of a job of several nodes by the statuses of its pods, as servers and kubelets write them."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import create_autospec

import pytest

from fakes.kubernetes import TASK_NAME, ended, waiting
from relaunch.adapters.kubernetes.api.models import Event, Job, Pod
from relaunch.adapters.kubernetes.gang_ends import RankEnds, has_late_pod, read_ends, read_replaced, reason_of_end
from relaunch.adapters.kubernetes.gang_manifest import INDEX
from relaunch.adapters.kubernetes.gang_observation import GangSigns, lacks_ranks, nodes_of, observe_ranks, rank_of
from relaunch.adapters.kubernetes.labels import NODES, OWNER, STOP_REASON, TASK
from relaunch.adapters.kubernetes.target import Cluster, kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.ports import PermanentError, TransientError

NOW = datetime(2026, 11, 2, 10, 5, tzinfo=UTC)
OWNER_OF_IT = AttemptKey("resnet-1f2e3d4c", 1)
LABELS = {TASK: TASK_NAME, NODES: "3"}
NO_CAPACITY = {"type": "ContainerInstanceCreated", "status": "False", "reason": "NoStock", "message": "out of stock"}
RUNNING = {"running": {"startedAt": "2026-11-02T09:00:30Z"}}


def job(*conditions: tuple[str, str, str], annotations: dict[str, str] | None = None, **status: Any) -> Job:
    held = [{"type": kind, "status": "True", "reason": why, "message": said} for kind, why, said in conditions]
    at = {"lastTransitionTime": "2026-11-02T10:01:00Z"}
    metadata = {"name": TASK_NAME, "uid": "uid-1", "labels": LABELS, "resourceVersion": "11"}
    metadata |= {"annotations": {OWNER: "resnet-1f2e3d4c/1", **(annotations or {})}}
    spec = {"template": {"spec": {"containers": [{"name": "main"}]}}}
    return Job.model_validate(
        {"metadata": metadata, "spec": spec, "status": {"conditions": [each | at for each in held], **status}}
    )


def pod(rank: int | None, phase: str = "Running", state: Any = RUNNING, *, node: str = "n", **members: Any) -> Pod:
    index = {} if rank is None else {INDEX: str(rank)}
    metadata: dict[str, Any] = {"name": f"{TASK_NAME}-{rank}-abcde", "labels": LABELS, "resourceVersion": "12"}
    metadata |= {"annotations": {OWNER: "resnet-1f2e3d4c/1", **index}}
    metadata |= {key: members.pop(key) for key in ("deletionTimestamp", "deletionGracePeriodSeconds") if key in members}
    statuses = [] if state is None else [{"name": "main", "state": state}]
    spec = {"nodeName": node, "containers": [{"name": "main"}]}
    status = {"phase": phase, "containerStatuses": statuses, **members}
    return Pod.model_validate({"metadata": metadata, "spec": spec, "status": status})


def by_policy(rank: int, code: int) -> tuple[str, str, str]:
    """Return the condition of a Job that failed with the exit code of a rank."""
    said = f"Container main for pod training/{TASK_NAME}-{rank}-abcde failed with exit code {code}"
    return ("Failed", "PodFailurePolicy", f"{said} matching FailJob rule at index 1")


def see(found: Job | None, *pods: Pod, now: datetime = NOW, **signs: Any) -> TaskObservation:
    return observe_ranks(found, pods, GangSigns(**signs), now)


ENDED = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-11-02T09:00:30Z", "finishedAt": "2026-11-02T10:00:30Z"}}  # fmt: skip  # noqa: E501
ALL = tuple(pod(rank) for rank in range(3))


def test_it_is_one_task_of_one_rank_for_whoever_asks():
    seen = see(job(), *ALL)

    assert (seen.task_id, seen.phase, seen.rank_count, seen.live_ranks) == (TASK_NAME, TaskPhase.RUNNING, 1, ())
    assert (str(seen.owner), seen.node, seen.held_nodes) == ("resnet-1f2e3d4c/1", "n", ())


def test_how_many_pods_there_are_is_in_the_labels_of_job_and_pods():
    assert (nodes_of(job(), ()), nodes_of(None, [pod(1)])) == (3, 3)
    assert nodes_of(Job.model_validate({"metadata": {"labels": {NODES: "x"}}}), ()) == 1
    assert (lacks_ranks(job(), ALL), lacks_ranks(job(), ALL[1:])) == (False, True)
    assert (rank_of(pod(2)), rank_of(pod(None))) == (2, 0)


def test_a_rank_that_had_finished_and_whose_pod_is_removed_is_waited_for_by_nobody():
    seen = see(job(completedIndexes="0,2-4"), pod(1))

    assert seen.phase is TaskPhase.RUNNING
    assert see(job(completedIndexes="0,2"), pod(1, "Succeeded", ENDED)).phase is TaskPhase.STOPPED
    assert see(job(completedIndexes="x,3-"), pod(0), pod(1)).phase is TaskPhase.PENDING


@pytest.mark.parametrize(
    ("ends", "causes"),
    [
        (RankEnds(is_told=True), {ReportedCause.ENDED}),
        (RankEnds(is_told=True, killed_at={2: NOW}), {ReportedCause.INTERRUPTED}),
        (RankEnds(), {ReportedCause.INTERRUPTED}),
    ],
)
def test_a_job_is_complete_by_ranks_that_finished_and_not_by_one_that_saved_when_it_was_deleted(ends, causes):
    complete = job(("Complete", "CompletionsReached", ""))
    seen = see(complete, pod(0, "Succeeded", ENDED), pod(1, "Succeeded", ENDED), ends=ends)

    assert seen.phase is TaskPhase.STOPPED
    assert seen.report.causes == causes


def test_a_deleted_job_is_known_while_its_pods_live():
    going = pod(1, deletionTimestamp="2026-11-02T10:06:30Z", deletionGracePeriodSeconds=90)
    seen = see(None, going)

    assert (seen.task_id, seen.phase) == (TASK_NAME, TaskPhase.STOPPING)
    assert seen.report.causes == {ReportedCause.STOP_CALLED}
    assert see(None, pod(None)).phase is TaskPhase.STOPPING


def test_the_failure_policy_names_the_pod_that_is_gone():
    said = (
        f"Container main for pod training/{TASK_NAME}-1-abcde failed with exit code 7 matching FailJob rule at index 1"
    )
    seen = see(job(("Failed", "PodFailurePolicy", said)))

    assert seen.containers["main"].exit_code == 7
    assert seen.report.causes == {ReportedCause.ENDED}
    assert seen.report.text.startswith("rank 1: ")


def test_a_pod_with_the_condition_that_is_gone_was_interrupted_whoever_failed_after_it():
    said = f"Pod training/{TASK_NAME}-2-abcde has condition DisruptionTarget matching FailJob rule at index 0"
    seen = see(job(("Failed", "PodFailurePolicy", said)), pod(0, "Failed", ended(1)))

    assert seen.report.causes == {ReportedCause.INTERRUPTED}
    assert seen.report.text.startswith("rank 2: its pod was deleted")


def test_nothing_is_known_of_a_job_without_pods_that_names_none():
    seen = see(job(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")))

    assert seen.phase is TaskPhase.STOPPED
    assert seen.report.causes == {ReportedCause.INTERRUPTED}


def test_what_is_deleted_before_the_job_is_known_to_have_failed_followed_the_first():
    follows = pod(0, deletionTimestamp="2026-11-02T10:02:00Z", deletionGracePeriodSeconds=90)
    soon = datetime(2026, 11, 2, 10, 1, tzinfo=UTC)
    seen = see(job(), follows, pod(1, "Failed", ended(5)), pod(2), now=soon)

    assert (seen.phase, seen.containers["main"].exit_code) == (TaskPhase.STOPPING, 5)
    assert seen.warned_at is None
    before = pod(0, deletionTimestamp="2026-11-02T10:01:00Z", deletionGracePeriodSeconds=90)
    taken = see(job(), before, pod(1, "Failed", ended(5)), pod(2), now=soon)
    assert taken.report.causes == {ReportedCause.INTERRUPTED}
    assert taken.warned_at == datetime(2026, 11, 2, 9, 59, 30, tzinfo=UTC)


def test_the_rank_that_is_furthest_behind_says_why_the_task_waits():
    seen = see(job(), pod(0), pod(1, "Pending", waiting("ContainerCreating")), pod(2, "Pending", None, node=""))

    assert (seen.phase, seen.node, seen.held_nodes) == (TaskPhase.PENDING, None, ("n",))
    pulls = see(job(), pod(0), pod(1, "Pending", waiting("ImagePullBackOff", "not found")), pod(2))
    assert (pulls.phase, pulls.node) == (TaskPhase.STARTING, "n")
    assert pulls.waiting_for == "rank 1: ImagePullBackOff: not found"


def test_one_rank_without_stock_is_the_whole_task_without_it():
    seen = see(job(), pod(0), pod(1), pod(2, "Pending", None, conditions=[NO_CAPACITY]))

    assert seen.report.causes == {ReportedCause.NO_CAPACITY}
    assert (seen.node, seen.held_nodes) == (None, ("n",))


def test_a_pod_that_is_refused_is_the_refusal_of_all():
    refusal = StopReport("exceeded quota", frozenset({ReportedCause.START_REFUSED}))
    seen = see(job(), pod(0), pod(1), refusal=refusal)

    assert (seen.report, seen.waiting_for) == (refusal, "rank 2: exceeded quota")


def test_a_stop_by_relaunch_is_the_cause_of_all_that_it_deletes():
    called = job(("Failed", "DeadlineExceeded", "longer"), annotations={STOP_REASON: "Relaunch: cancelled"})
    seen = see(called)

    assert seen.report.text == "rank 0: Relaunch: cancelled"
    assert seen.report.causes == {ReportedCause.STOP_CALLED}


def test_a_pod_that_does_not_end_in_its_time_is_on_a_lost_node_unless_relaunch_stopped_it():
    stuck = pod(2, deletionTimestamp="2026-11-02T10:02:00Z", deletionGracePeriodSeconds=90)
    others = (pod(0, "Failed", ended(1)), pod(1, "Failed", ended(1)))
    failed = (
        "Failed",
        "PodFailurePolicy",
        f"Container main for pod training/{TASK_NAME}-0-abcde failed with exit code 1",
    )
    seen = see(job(failed), *others, stuck)

    assert seen.warned_at == datetime(2026, 11, 2, 10, 0, 30, tzinfo=UTC)
    assert "rank 2, " in seen.warning
    assert see(job(failed, annotations={STOP_REASON: "Relaunch: x"}), *others, stuck).warned_at is None
    assert see(job(failed), *others, stuck, now=datetime(2026, 11, 2, 10, 2, 20, tzinfo=UTC)).warned_at is None


def test_a_pod_is_judged_by_when_it_was_read_and_not_by_when_the_last_answer_came():
    found = job(by_policy(1, 1))
    ending = pod(0, deletionTimestamp="2026-11-02T10:04:50Z", deletionGracePeriodSeconds=90)
    pods = [ending, pod(1, "Failed", ended(1)), pod(2, "Failed", ended(1))]
    times = [NOW]

    def list_pods(_selector: str) -> list[list[Pod]]:
        times.append(NOW + timedelta(minutes=1))
        return [pods]

    cluster = create_autospec(Cluster, instance=True)
    cluster.list_jobs.return_value = [[found]]
    cluster.list_pods.side_effect = list_pods
    cluster.list_events.return_value = []

    (seen,) = kubernetes_target(cluster, Target.ACK, "relaunch", now=lambda: times[-1]).find_tasks_of(OWNER_OF_IT)

    assert seen.warned_at is None


def test_a_rank_that_no_kubelet_ended_is_told_with_what_the_others_say():
    failed = (
        "Failed",
        "PodFailurePolicy",
        f"Container main for pod training/{TASK_NAME}-0-abcde failed with exit code 1",
    )
    first = pod(0, "Failed", ended(1))
    seen = see(job(failed), first, ends=RankEnds(is_told=True, killed_at={1: NOW}))

    assert seen.report.causes == {ReportedCause.ENDED, ReportedCause.PEER_LOST}
    assert seen.report.text == "rank 2 is gone, and its node said nothing of its end"
    known = see(job(failed), first, ends=RankEnds(is_told=True, killed_at={1: NOW, 2: NOW}))
    assert known.report.causes == {ReportedCause.ENDED}
    # It had exited with 0, and somebody deleted its pod since.
    cleaned = see(job(failed, completedIndexes="2"), first, ends=RankEnds(is_told=True, killed_at={1: NOW}))
    assert cleaned.report.causes == {ReportedCause.ENDED}


def event(name: str, reason: str, second: int, uid: str = "", message: str = "") -> Event:
    at = f"2026-11-02T10:00:{second:02}Z"
    involved = {"kind": "Pod", "name": name, "uid": uid}
    words = {"reason": reason, "message": message, "firstTimestamp": at, "lastTimestamp": "2026-11-02T10:30:00Z"}
    return Event.model_validate({"metadata": {}, "involvedObject": involved, **words})


def test_events_tell_of_the_pods_of_a_job_by_their_names():
    killed = [
        event(f"{TASK_NAME}-1-abcde", "Killing", 9),
        event(f"{TASK_NAME}-1-fghij", "Killing", 5),
        event(f"{TASK_NAME}-7-abcde", "Killing", 5),
        event("other-1-abcde", "Killing", 5),
        event("odd", "Killing", 5),
    ]
    ends = read_ends(job(), 3, [event(TASK_NAME, "PodFailurePolicy", 9, "uid-1")], killed)

    assert ends == RankEnds(is_told=True, killed_at={1: datetime(2026, 11, 2, 10, 0, 5, tzinfo=UTC)})
    assert read_ends(job(), 3, [event(TASK_NAME, "PodFailurePolicy", 9, "other")], []) == RankEnds()


def test_a_kubelet_that_ends_the_container_of_the_program_found_it_running():
    killed = [
        event(f"{TASK_NAME}-0-abcde", "Killing", 5, message="Stopping container main"),
        event(f"{TASK_NAME}-1-abcde", "Killing", 5, message="Stopping container metrics"),
    ]

    ends = read_ends(job(), 3, [], killed)
    assert (ends.running, set(ends.killed_at)) == ({0}, {0})
    assert read_replaced(job(), 3, [], killed).keys() == {0}
    odd = Job.model_validate({"metadata": {"name": TASK_NAME}, "spec": {"template": {"spec": {"containers": []}}}})
    assert read_ends(odd, 3, [], killed).running == frozenset()


@pytest.mark.parametrize(
    ("running", "cause"), [({1}, ReportedCause.INTERRUPTED), ({2}, ReportedCause.ENDED), ((), ReportedCause.ENDED)]
)
def test_the_pod_that_a_job_names_was_taken_away_if_its_program_ran_when_it_was_ended(running, cause):
    ends = RankEnds(is_told=True, killed_at=dict.fromkeys(range(3), NOW), running=frozenset(running))
    failed = job(by_policy(1, 1))

    assert cause in see(failed, pod(0), pod(2), ends=ends).report.causes


def test_ranks_that_ran_and_are_gone_started_with_the_one_that_tells_it():
    failed = {"terminated": {"exitCode": 1, "startedAt": "2026-11-02T09:00:30Z", "finishedAt": "2026-11-02T10:00:30Z"}}
    first = pod(0, "Failed", failed)
    ends = RankEnds(is_told=True, killed_at={1: NOW, 2: NOW}, running=frozenset({1, 2}))

    assert not see(job(by_policy(0, 1)), first, ends=ends).waited_in_vain
    part = replace(ends, running=frozenset({1}))
    assert see(job(by_policy(0, 1)), first, ends=part).waited_in_vain


def test_pods_that_kubelets_ended_and_that_are_there_no_more_were_replaced():
    killed = [
        event(f"{TASK_NAME}-0-abcde", "Killing", 9),
        event(f"{TASK_NAME}-1-older", "Killing", 9),
        event(f"{TASK_NAME}-1-first", "Killing", 5),
    ]
    replaced = read_replaced(job(), 3, ALL, killed)

    assert replaced == {1: datetime(2026, 11, 2, 10, 0, 5, tzinfo=UTC)}
    seen = see(job(), *ALL, ends=RankEnds(replaced_at=replaced))
    assert (seen.warned_at, seen.phase) == (replaced[1], TaskPhase.RUNNING)


def made(second: int, of: Pod) -> Pod:
    at = datetime(2026, 11, 2, 9, 0, second, tzinfo=UTC)
    return of.model_copy(update={"metadata": of.metadata.model_copy(update={"creation_timestamp": at})})


@pytest.mark.parametrize(
    ("phase", "error", "is_waited_for"),
    [
        ("Succeeded", TransientError("no answer"), True),
        ("Running", TransientError("no answer"), False),
        ("Succeeded", PermanentError("forbidden"), False),
    ],
)
def test_beside_a_late_pod_none_that_has_ended_is_judged_before_events_are_read(phase, error, is_waited_for):
    cluster = create_autospec(Cluster, instance=True)
    cluster.list_jobs.return_value = [[job()]]
    cluster.list_pods.return_value = [[made(0, pod(0)), made(9, pod(1)), made(0, pod(2, phase, ENDED))]]
    cluster.list_events.side_effect = error
    target = kubernetes_target(cluster, Target.ACK, "relaunch", now=lambda: NOW)

    with pytest.raises(TransientError) if is_waited_for else nullcontext():
        assert [each.warned_at for each in target.find_tasks_of(OWNER_OF_IT)] == [None]


@pytest.mark.parametrize(
    ("seconds", "is_late"), [((), False), ((0,), False), ((0, 5), False), ((0, 1, 6), True), ((9, 1), True)]
)
def test_a_pod_that_was_made_after_the_others_is_late(seconds, is_late):
    times = [f"2026-11-02T09:00:{each:02}Z" for each in seconds]
    pods = [Pod.model_validate({"metadata": {"creationTimestamp": each}}) for each in times]

    assert has_late_pod([*pods, pod(0)]) is is_late
    seen = see(job(), *(pods or ALL))
    assert (seen.newest_pod_at is None) is not bool(pods)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (job(), ""),
        (job(("Complete", "CompletionsReached", "")), "Completed"),
        (job(("Failed", "BackoffLimitExceeded", "")), "BackoffLimitExceeded"),
        (job(("Failed", "DeadlineExceeded", ""), annotations={STOP_REASON: "Relaunch: x"}), ""),
    ],
)
def test_only_what_finished_by_itself_is_asked_for(found, reason):
    assert reason_of_end(found) == reason
