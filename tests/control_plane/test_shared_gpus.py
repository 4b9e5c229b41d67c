"""Shared GPUs of ACK: the Jobs of Alibaba Cloud's documents, and which card pods get.

kube-scheduler is real; the cards are an extender's and the rules an admission webhook's, after ACK's documentation.
"""

from collections.abc import Iterator

import pytest

from control_plane.jobs import Document, make_job
from control_plane.namespaces import Namespace
from control_plane.waiting import wait_for
from fakes.alibaba_documents import ACK_DEFINITION, ACS_DEFINITION, job_of
from relaunch.adapters.kubernetes.api.errors import ApiRefusedError
from relaunch_local.kubernetes.ack_rules import COMPUTE, COUNT, MEMORY
from relaunch_local.kubernetes.scheduler import CARD, OTHER_KIND

pytestmark = pytest.mark.kubernetes

# Four V100 of 15 GiB, as in the document on ACK.
NODE = {COUNT: "4", MEMORY: "60", COMPUTE: "400"}


@pytest.fixture
def node(namespace: Namespace) -> Iterator[str]:
    name = f"{namespace.name}-gpu"
    labels = {"ack.node.gpu.schedule": "core_mem", "ack.node.gpu.placement": "binpack"}
    namespace.kubelets.add_node(name, NODE, labels)
    yield name
    namespace.kubelets.remove_node(name)


def card_of(namespace: Namespace, job: str, limits: Document) -> str:
    """Create a Job with these limits; return the card that its pod got once it runs."""
    namespace.create("jobs", make_job(job, limits=limits))
    return str(namespace.running(job)["metadata"]["annotations"][CARD])


def why_waiting(namespace: Namespace, job: str) -> str:
    def said() -> str:
        conditions = namespace.pod(job)["status"].get("conditions") or ()
        return next((each["message"] for each in conditions if each.get("reason") == "Unschedulable"), "")

    return wait_for("reason", said)


def test_the_job_of_the_document_on_ack_is_scheduled_and_completes(namespace: Namespace, node: str) -> None:
    manifest = job_of(ACK_DEFINITION)
    with namespace.client() as client:
        client.create_job(manifest)
    name = manifest["metadata"]["name"]
    pod = namespace.running(name)
    namespace.kubelets.exit(pod["metadata"]["uid"], 0)

    assert pod["spec"]["nodeName"] == node
    assert pod["metadata"]["labels"]["app"] == "cuda-sample"
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {MEMORY: "2", COMPUTE: "30"}
    assert namespace.finished(name)["type"] == "Complete"


def test_the_pod_of_the_document_on_acs_is_scheduled_and_completes(namespace: Namespace) -> None:
    name = f"{namespace.name}-acs"
    namespace.kubelets.add_node(name, {"nvidia.com/gpu": "1"}, {"type": "virtual-kubelet"})
    manifest = job_of(ACS_DEFINITION)
    with namespace.client() as client:
        client.create_job(manifest)
    job = manifest["metadata"]["name"]
    pod = namespace.running(job)
    namespace.kubelets.exit(pod["metadata"]["uid"], 0)

    assert pod["spec"]["nodeName"] == name
    assert pod["metadata"]["labels"]["alibabacloud.com/gpu-driver-version"] == "535.161.08"
    assert namespace.finished(job)["type"] == "Complete"
    namespace.kubelets.remove_node(name)


def test_three_shares_of_30_percent_are_on_one_card_and_the_fourth_on_the_next(namespace: Namespace, node: str) -> None:
    shares = {MEMORY: 2, COMPUTE: 30}
    cards = [card_of(namespace, f"share-{number}", shares) for number in range(4)]
    whole = card_of(namespace, "whole", {MEMORY: 15, COMPUTE: 100})

    assert cards == ["0", "0", "0", "1"]
    assert whole == "2"


def test_what_ended_gives_its_card_back(namespace: Namespace, node: str) -> None:
    whole = {MEMORY: 15, COMPUTE: 100}
    cards = [card_of(namespace, f"whole-{number}", whole) for number in range(4)]
    namespace.create("jobs", make_job("whole-4", limits=whole))
    waiting = why_waiting(namespace, "whole-4")
    namespace.kubelets.exit(namespace.pod("whole-2")["metadata"]["uid"], 0)

    assert cards == ["0", "1", "2", "3"]
    assert f"Insufficient {COMPUTE}" in waiting
    assert f"Insufficient {MEMORY}" in waiting
    assert namespace.running("whole-4")["metadata"]["annotations"][CARD] == "2"


def test_what_is_free_on_no_single_card_waits(namespace: Namespace, node: str) -> None:
    for number in range(4):
        card_of(namespace, f"share-{number}", {MEMORY: 10, COMPUTE: 50})
    namespace.create("jobs", make_job("large", limits={MEMORY: 6, COMPUTE: 50}))

    assert "on one GPU" in why_waiting(namespace, "large")


def test_memory_alone_waits_beside_memory_with_compute(namespace: Namespace, node: str) -> None:
    card_of(namespace, "both", {MEMORY: 2, COMPUTE: 30})
    namespace.create("jobs", make_job("memory-only", limits={MEMORY: 2}))

    assert OTHER_KIND in why_waiting(namespace, "memory-only")


def test_memory_is_split_over_several_cards(namespace: Namespace, node: str) -> None:
    job = make_job("split", limits={MEMORY: 8})
    job["spec"]["template"]["metadata"]["labels"][COUNT] = "2"
    namespace.create("jobs", job)

    assert namespace.running("split")["metadata"]["annotations"][CARD] == "0,1"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({MEMORY: 2, COMPUTE: 7}, "must be a multiple of 5"),
        ({MEMORY: 2, COMPUTE: 105}, "must be a multiple of 5"),
        ({COMPUTE: 30}, "gpu-core.percentage needs gpu-mem"),
    ],
)
def test_what_no_card_gives_is_refused(namespace: Namespace, limits: Document, message: str) -> None:
    with namespace.client() as client, pytest.raises(ApiRefusedError, match=message) as caught:
        client.create_job(make_job(limits=limits))

    assert caught.value.status == 422
    assert "admission webhook" in str(caught.value)
