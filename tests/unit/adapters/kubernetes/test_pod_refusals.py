"""Pods that are refused when their Job makes them, on the local API server: what the task says, and what heals it."""

from collections.abc import Callable

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes import FakeKubernetes
from fakes.kubernetes_clusters import NAMESPACE, ServedKubernetesCluster, served_cluster
from relaunch.adapters.kubernetes.pod_refusals import report_refusal
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.ports import TransientError
from relaunch_local.kubernetes.pod_security import ENFORCE

NAME = "resnet-1f2e3d4c-1-1"
REFUSED = ReportedCause.START_REFUSED
NOWHERE = ReportedCause.STARTS_NOWHERE
Refuse = Callable[[ServedKubernetesCluster], Callable[[], object]]
"""Lets a cluster refuse pods; returns what heals that."""


def launch(served: ServedKubernetesCluster, number: int = 1) -> None:
    workload = KubernetesWorkload("image:v1", service_account="trainer")
    served.target.launch(make_launch_request(placement_number=number, workload=workload, gpu=GpuRequirement()))


def seen(served: ServedKubernetesCluster, name: str = NAME) -> TaskObservation:
    task = served.target.describe([name])[name]
    assert task is not None
    return task


def exceed_quota(served: ServedKubernetesCluster) -> Callable[[], object]:
    quota = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "1"}}}
    served.cluster.state.add("resourcequotas", NAMESPACE, quota)
    other = "resnet-1f2e3d4c-1-9"
    launch(served, 9)
    served.run(other)
    return lambda: served.finish(other, 0)


def miss_account(served: ServedKubernetesCluster) -> Callable[[], object]:
    served.cluster.admission.missing_service_accounts.add("trainer")
    return served.cluster.admission.missing_service_accounts.clear


def deny_by_webhook(served: ServedKubernetesCluster) -> Callable[[], object]:
    served.cluster.admission.webhook = "no image without a signature"
    return lambda: setattr(served.cluster.admission, "webhook", "")


def restrict(served: ServedKubernetesCluster) -> Callable[[], object]:
    labels = {ENFORCE: "restricted"}
    served.cluster.state.add("namespaces", "", {"metadata": {"name": NAMESPACE, "labels": labels}})
    return labels.clear


@pytest.mark.parametrize(
    ("refuse", "words", "cause"),
    [
        (exceed_quota, "exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvi", REFUSED),
        (miss_account, 'error looking up service account training/trainer: serviceaccount "trainer" not f', REFUSED),
        (deny_by_webhook, 'admission webhook "pods.example.com" denied the request: no image without a si', NOWHERE),
        (restrict, 'violates PodSecurity "restricted:latest": unrestricted capabilities', NOWHERE),
    ],
)
def test_a_task_without_a_pod_says_why_until_it_has_one(refuse: Refuse, words: str, cause: ReportedCause) -> None:
    with served_cluster(Target.ACK) as served:
        heal = refuse(served)
        launch(served)
        refused = seen(served)
        served.advance(60)
        again = seen(served)
        heal()
        served.advance(600)
        created = seen(served)

    assert refused.phase is TaskPhase.PENDING
    assert words in refused.waiting_for
    assert refused.report.causes == {cause}
    assert (again.waiting_for, again.report) == (refused.waiting_for, refused.report)
    assert created.report == StopReport()
    assert "FailedCreate" not in created.waiting_for


def test_a_task_that_is_refused_is_stopped_and_ends_without_having_run() -> None:
    with served_cluster(Target.ACK) as served:
        miss_account(served)
        launch(served)
        words = seen(served).waiting_for
        served.target.stop(NAME, f"Relaunch: {words}")
        served.advance(5)
        stopped = seen(served)
        served.cluster.admission.missing_service_accounts.clear()
        served.advance(3600)

        assert (stopped.phase, stopped.report.text) == (TaskPhase.STOPPED, f"Relaunch: {words}")
        assert served.cluster.state.all("pods", NAMESPACE) == []


@pytest.mark.parametrize(
    ("message", "said", "cause"),
    [
        (
            f'(combined from similar events): Error creating: pods "{NAME}-x2x4z" is forbidden: exceeded quota: a, b',
            f'FailedCreate: Error creating: pods "{NAME}" is forbidden: exceeded quota: a, b',
            REFUSED,
        ),
        ("pods is forbidden: failed quota: a: must specify limits.cpu for: main", "", NOWHERE),
        ("pods is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi", "", NOWHERE),
        ("pods is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 3", "", NOWHERE),
        ('Pod "a" is invalid: spec.containers[0].image: Required value', "", NOWHERE),
        ("pods is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: c", "", NOWHERE),
        ("pods is forbidden: no PriorityClass with name gold was found", "", REFUSED),
        ('Internal error occurred: failed calling webhook "a.b": no endpoints available', "", REFUSED),
    ],
)
def test_which_words_are_final(message: str, said: str, cause: ReportedCause) -> None:
    assert report_refusal(NAME, message) == StopReport(
        said or f"FailedCreate: {message}", frozenset({cause}), "FailedCreate"
    )


def test_events_are_read_for_tasks_without_a_pod_only_and_not_waited_for() -> None:
    kubernetes = FakeKubernetes()
    target = kubernetes_target(kubernetes, Target.ACK, "relaunch")
    target.launch(make_launch_request(workload=KubernetesWorkload("image:v1"), gpu=GpuRequirement()))
    target.describe([NAME])
    assert "list_events" not in kubernetes.calls

    kubernetes.pods.clear()
    kubernetes.events = TransientError("no answer")
    task = target.describe([NAME])[NAME]

    assert task is not None
    assert (task.phase, task.waiting_for) == (TaskPhase.PENDING, "")
