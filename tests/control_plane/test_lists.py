"""Lists in pages, tokens that expire, and events, on a real server."""

from typing import Any

import pytest

from control_plane.jobs import make_job
from control_plane.namespaces import Namespace
from control_plane.waiting import wait_for
from relaunch.adapters.kubernetes.api.errors import GoneError
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.targets import Target

pytestmark = pytest.mark.kubernetes

NAMES = [f"job-{number}" for number in range(7)]


@pytest.fixture
def jobs(namespace: Namespace) -> list[str]:
    for name in NAMES:
        namespace.create("jobs", make_job(name))
    return NAMES


def test_a_list_comes_in_pages_with_every_job_once(namespace: Namespace, jobs: list[str]) -> None:
    with namespace.client() as client:
        pages = [[each.metadata.name for each in page] for page in client.list_jobs("app=cuda-sample", limit=3)]

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [name for page in pages for name in page] == jobs


def test_a_list_whose_token_expires_is_begun_anew(namespace: Namespace, jobs: list[str]) -> None:
    found: list[str] = []
    with namespace.client() as client:
        for number, page in enumerate(client.list_jobs("app=cuda-sample", limit=3)):
            found += [each.metadata.name for each in page]
            if number == 0:
                expire(namespace)

    assert set(found) == set(jobs)
    # Its first page came twice.
    assert len(found) == len(jobs) + 3


def test_an_expired_token_is_answered_with_410(namespace: Namespace, jobs: list[str]) -> None:
    with namespace.client() as client:
        first = client._json("GET", namespace.path("jobs"), "listing", params={"limit": "3"})
        expire(namespace)

        token = {"limit": "3", "continue": first["metadata"]["continue"]}
        with pytest.raises(GoneError, match="too old"):
            client._json("GET", namespace.path("jobs"), "listing", params=token)


def expire(namespace: Namespace) -> None:
    """Let the lists that were begun expire: what was listed is changed, and the history forgotten."""
    namespace.create("configmaps", {"metadata": {"generateName": "change-"}})
    namespace.plane.compact()


def test_versions_of_jobs_and_pods_grow_together(namespace: Namespace, jobs: list[str]) -> None:
    wait_for("pods", lambda: all(namespace.pods(name) for name in jobs))
    versions = [int(namespace.get("jobs", name)["metadata"]["resourceVersion"]) for name in jobs]
    later = int(namespace.create("configmaps", {"metadata": {"name": "later"}})["metadata"]["resourceVersion"])

    assert later > max(versions)


def test_the_events_of_a_pod_are_found_and_tell_why_it_waits(namespace: Namespace) -> None:
    namespace.create("jobs", make_job())
    uid = namespace.pod("cuda-sample")["metadata"]["uid"]
    with namespace.client() as client:
        (event, *_) = wait_for("event", lambda: [*client.list_events(uid)])
        by_reason = client.list_events(reason="FailedScheduling")
        target = kubernetes_target(client, Target.ACK, "relaunch")
        assert target.find_node("nobody") is None

    assert event.reason == "FailedScheduling"
    assert event.at is not None
    assert uid in {each.involved_object.uid for each in by_reason}


def test_the_spot_warning_of_a_pod_is_read_from_its_event(namespace: Namespace) -> None:
    namespace.create("jobs", make_job())
    pod = namespace.pod("cuda-sample")["metadata"]
    involved: dict[str, Any] = {"kind": "Pod", "namespace": namespace.name, "name": pod["name"], "uid": pod["uid"]}
    at = "2026-11-02T09:00:00Z"
    event = {"metadata": {"name": "warning"}, "involvedObject": involved, "reason": "SpotToBeReleased"}
    namespace.create(
        "events", event | {"type": "Warning", "message": "soon", "firstTimestamp": at, "lastTimestamp": at}
    )
    with namespace.client() as client:
        (found,) = client.list_events(reason="SpotToBeReleased")

    assert found.involved_object.uid == pod["uid"]
    assert found.at is not None
    assert found.at.isoformat() == "2026-11-02T09:00:00+00:00"
