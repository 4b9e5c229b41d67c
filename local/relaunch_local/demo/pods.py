"""What the stories on clusters share: Jobs and pods of attempts, as the API server has them, and tables of them."""

from collections.abc import Callable
from typing import Any

from rich.text import Text

from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.demo import drawings
from relaunch_local.demo.interruption import newest_step
from relaunch_local.demo.session import Session
from relaunch_local.kubernetes.requests import Request, answer
from relaunch_local.kubernetes.resources import RESOURCES
from relaunch_local.kubernetes.scheduler import cards_of
from relaunch_local.stack.alibaba_cluster import NAMESPACE, AlibabaCluster

Document = dict[str, Any]
_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def cluster_of(session: Session) -> AlibabaCluster:
    """Return the cluster of the local world, which has one."""
    if session.local.alibaba is None:
        raise LookupError("the local world was opened without a cluster of Alibaba Cloud")
    return session.local.alibaba


def show_objects(session: Session, resource: str, selector: str = "") -> None:
    """Show the table that the API server answers to `kubectl get`."""
    about = RESOURCES[resource]
    where = f"/namespaces/{NAMESPACE}" if about.is_namespaced else ""
    path = f"/{'apis' if about.group else 'api'}/{about.api_version}{where}/{resource}"
    request = Request("GET", path, {"labelSelector": selector}, accept=_TABLE)
    _, table, _ = answer(cluster_of(session).cluster, request)
    chosen = f" -l {selector}" if selector else ""
    session.screen.line(Text(f"$ kubectl get {about.kind.lower()}{chosen}", style="bold"))
    session.screen.show(*(Text(line, no_wrap=True) for line in table_lines(table)))


def table_lines(table: Document) -> list[str]:
    """Return the lines of a table as kubectl prints them: the columns that are not for `-o wide` alone."""
    definitions = table["columnDefinitions"]
    shown = [number for number, each in enumerate(definitions) if not each["priority"]]
    names = [definitions[number]["name"].upper() for number in shown]
    lines = [names, *([str(row["cells"][number]) for number in shown] for row in table["rows"])]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    return ["   ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def tell_what_needs_a_card(session: Session, what: str) -> None:
    """Say that a step of a document is not shown."""
    session.screen.note(f"not shown: {what}, which needs a card")


def wait_for_job(session: Session, job_id: str, attempt: int) -> Document:
    """Wait until the Job of an attempt is created; return it."""
    return session.expect(
        f"the Job of attempt {attempt} is created", lambda: _find(session, "jobs", job_id, attempt, lambda _job: True)
    )


def wait_for_running(session: Session, job_id: str, attempt: int) -> Document:
    """Wait until the pod of an attempt is Running; return it."""
    pod = session.expect(
        f"the pod of attempt {attempt} is Running",
        lambda: _find(session, "pods", job_id, attempt, lambda pod: pod["status"].get("phase") == "Running"),
    )
    card = ", ".join(cards_of(pod))
    on = f"{pod['spec']['nodeName']}{f', GPU {card}' if card else ''}"
    session.screen.line(f"attempt {attempt} is Running on {on}")
    return pod


def _find(
    session: Session, resource: str, job_id: str, attempt: int, is_wanted: Callable[[Document], bool]
) -> Document | None:
    cluster = cluster_of(session).cluster
    with cluster.clock.lock:
        found = cluster.state.all(resource, NAMESPACE)
        owned = [
            each for each in found if each["metadata"]["annotations"].get("relaunch/owner") == f"{job_id}/{attempt}"
        ]
        return next((each for each in owned if is_wanted(each)), None)


def show_job(session: Session, job: Document) -> None:
    """Show the fields of a Job that decide what runs where."""
    template = job["spec"]["template"]
    container = template["spec"]["containers"][0]
    limits = [(name, value) for name, value in container["resources"]["limits"].items() if "/" in name]
    labels = [each for each in template["metadata"]["labels"].items() if each[0].startswith("alibabacloud.com/")]
    facts = [
        ("name", job["metadata"]["name"]),
        ("image", container["image"]),
        *limits,
        *labels,
        *(template["spec"].get("nodeSelector") or {}).items(),
        ("backoffLimit", str(job["spec"]["backoffLimit"])),
    ]
    session.screen.show(drawings.draw_facts(facts, session.screen.table_width))


def wait_for_running_job(session: Session, job_id: str) -> None:
    """Wait until the application knows that the pod runs: it counts no attempt of which it saw nothing but the end."""
    session.expect_job(job_id, "the job is RUNNING", lambda history: _running(history.job))


def _running(job: Job) -> Job | None:
    return job if job.state is JobState.RUNNING else None


def require_running(session: Session, name: str) -> None:
    """Check that a pod still runs, whose training would otherwise have ended before anything happened to it.

    Raises:
        UnmetExpectationError: it has ended.
    """
    found = cluster_of(session).cluster.state.find("pods", NAMESPACE, name)
    phase = "gone" if found is None else found["status"]["phase"]
    session.require(phase == "Running", f"{name} runs until something happens to it, but it is {phase} before")


def evict(session: Session, job_id: str, pod: Document) -> int:
    """Evict a pod; wait until its training has saved and its stop is classified; return the saved step."""
    name = pod["metadata"]["name"]
    cluster = cluster_of(session).cluster
    with cluster.clock.lock:
        require_running(session, name)
        cluster.evict_pod(NAMESPACE, name)
    session.local.release_trainings()
    session.recorder.record_action("eviction", pod=name, job_id=job_id)
    session.screen.line(Text(f"{name} is evicted: SIGTERM", style="bold yellow"))
    return tell_save(session, job_id, wait_for_interruption(session, job_id, "the eviction is noticed"))


def wait_for_interruption(session: Session, job_id: str, what: str) -> Stop:
    """Wait until the stop of the first attempt is classified, which must be an interruption; return it."""
    stop = session.expect_job(job_id, what, lambda history: history.attempts[0].stop)
    session.require(stop.kind is StopKind.INTERRUPTION, f"the stop is an interruption, not {stop.kind}")
    return stop


def tell_save(session: Session, job_id: str, stop: Stop) -> int:
    """Show which step was saved, and how the stop was classified; return the step."""
    saved = newest_step(session, job_id)
    session.screen.line(f"it saved step {saved}; “{stop.stopped_reason}”: {stop.kind}")
    return saved
