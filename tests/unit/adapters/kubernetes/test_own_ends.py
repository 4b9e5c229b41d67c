"""Complete Jobs whose pods are gone, by the events of the cluster."""

from typing import Any

import pytest

from fakes.kubernetes import TASK_NAME, read_job
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.api.models import Event, Job
from relaunch.adapters.kubernetes.labels import STOP_REASON
from relaunch.adapters.kubernetes.own_ends import find_finished, lacks_end
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import ReportedCause
from relaunch.ports import TransientError

COMPLETE = ("Complete", "CompletionsReached", "")
LONG = "a-very-long-name-of-a-training-that-somebody-has-chosen-so-that-1-1"


def event(uid: str = "", name: str = "", message: str = "") -> Event:
    involved = {"uid": uid, "name": name}
    return Event.model_validate({"metadata": {"name": "e"}, "involvedObject": involved, "message": message})


def job(name: str = TASK_NAME, labels: dict[str, str] | None = None, **metadata: Any) -> Job:
    read = read_job(COMPLETE, name=name, uid="uid-1", **metadata)
    init = [{"name": "code"}, {"name": "metrics", "restartPolicy": "Always"}]
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"containers": [{"name": "main"}], "initContainers": init},
    }
    return Job.model_validate(read.model_dump(by_alias=True) | {"spec": {"template": template}})


@pytest.mark.parametrize("name", [TASK_NAME, LONG])
def test_a_program_finished_that_no_kubelet_ended(name: str) -> None:
    completed = [event(uid="uid-1")]
    others = [event(name="other-1-1-d222p"), event(name=name)]

    assert find_finished([job(name)], completed, others) == {name}
    assert find_finished([job(name)], completed, [event(name=f"{name[:58]}-d222p")]) == frozenset()
    assert find_finished([job(name)], [event(uid="uid-2")], others) == frozenset()


@pytest.mark.parametrize(
    ("message", "is_finished"),
    [
        ("Stopping container main", False),
        ("Stopping container code", False),
        ("Stopping container metrics", True),
        # What a webhook has added to the pod is in no Job.
        ("Stopping container istio-proxy", True),
        ("Container main failed liveness probe, will be restarted", False),
        ("", False),
    ],
)
def test_a_kubelet_that_ends_a_container_beside_the_program_has_not_ended_it(
    message: str, *, is_finished: bool
) -> None:
    killed = [event(name=f"{TASK_NAME}-d222p", message=message)]

    found = find_finished([job()], [event(uid="uid-1")], killed)

    assert found == ({TASK_NAME} if is_finished else set())


@pytest.mark.parametrize(("made_at", "is_finished"), [("10:00:06", True), ("10:00:05", False)])
def test_an_event_from_before_a_job_was_made_is_of_one_that_was_deleted(made_at: str, *, is_finished: bool) -> None:
    killed = Event.model_validate(
        {
            "metadata": {"name": "e"},
            "involvedObject": {"name": f"{TASK_NAME}-d222p"},
            "firstTimestamp": "2026-11-02T10:00:05Z",
        }
    )
    made_again = job(creationTimestamp=f"2026-11-02T{made_at}Z")

    assert bool(find_finished([made_again], [event(uid="uid-1")], [killed])) is is_finished


def test_a_job_that_names_no_container_was_ended_by_any_event() -> None:
    odd = Job.model_validate({"metadata": {"name": TASK_NAME, "uid": "uid-1"}, "spec": {}})
    killed = [event(name=f"{TASK_NAME}-d222p", message="Container main is ended")]

    assert find_finished([odd], [event(uid="uid-1")], killed) == frozenset()


def test_only_jobs_that_ended_by_themselves_on_nodes_with_a_kubelet_are_asked_for() -> None:
    assert lacks_end(job())
    assert not lacks_end(read_job())
    assert not lacks_end(job(annotations={STOP_REASON: "cancelled"}))
    assert not lacks_end(job(deletionTimestamp="2026-11-02T10:00:00Z"))
    assert not lacks_end(job(labels={"alibabacloud.com/acs": "true"}))


@pytest.mark.parametrize("error", [ForbiddenError("no", 403, "Forbidden"), TransientError("no answer")])
def test_events_that_cannot_be_read_now_are_read_again_and_others_do_without(error: Exception) -> None:
    class Answers:
        identity = "a1b2c3/training"

        def list_jobs(self, _selector: str) -> list[list[Job]]:
            return [[job()]]

        def list_pods(self, _selector: str) -> list[Any]:
            return []

        def list_events(self, **_fields: str) -> list[Event]:
            raise error

    answers: Any = Answers()
    target = kubernetes_target(answers, Target.ACK, "relaunch")
    if isinstance(error, TransientError):
        with pytest.raises(TransientError):
            target.describe([TASK_NAME])
        return
    task = target.describe([TASK_NAME])[TASK_NAME]
    assert task is not None
    assert task.report.causes == {ReportedCause.INTERRUPTED}
