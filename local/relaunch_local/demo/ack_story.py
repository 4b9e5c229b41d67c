"""The two stories on ACK: a push whose pod is evicted, and an upload whose node is gone."""

from typing import Any

from rich.text import Text

from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.demo import drawings, steps
from relaunch_local.demo.interruption import newest_step
from relaunch_local.demo.news import show_news
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.demo.session import Session
from relaunch_local.demo.story import UPLOAD, finish, send_push, show_states, show_timeline
from relaunch_local.kubernetes.scheduler import cards_of
from relaunch_local.stack.account import DATASETS
from relaunch_local.stack.ack_cluster import NAMESPACE, AckCluster
from relaunch_local.stack.training_cluster import Training

Document = dict[str, Any]


def run_eviction_story(session: Session, training: Training) -> JobResult:
    """Run the story of the push: its pod is evicted, saves on SIGTERM, and another Job goes on from there."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("A push to GitHub")
    send_push(session)
    job_id = steps.wait_for_acceptance(session, "push")
    with running_schedule(session.local):
        screen.heading("A Job on ACK, as the API server stored it")
        show_job(session, wait_for_job(session, job_id, 1))
        screen.heading("It trains on a share of a GPU")
        pod = wait_for_running(session, job_id, 1)
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        wait_for_running_job(session, job_id)
        show_news(session)
        screen.heading("Its pod is evicted")
        saved = evict(session, job_id, pod)
        show_news(session)
        screen.heading("It resumes in another Job")
        wait_for_running(session, job_id, 2)
        result = finish(session, job_id, training, "push", expected_step=saved)
    show_timeline(session, job_id)
    return result


def run_node_loss_story(session: Session, training: Training) -> JobResult:
    """Run the story of the upload: the node of its pod is gone, and another one goes on from the newest checkpoint."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("An upload to S3")
    session.recorder.record_action("upload", bucket=DATASETS, key=UPLOAD)
    session.local.client("s3").put_object(Bucket=DATASETS, Key=UPLOAD, Body=b"cat-0001.png\ncat-0002.png\n")
    screen.line(f"PutObject s3://{DATASETS}/{UPLOAD}")
    job_id = steps.wait_for_acceptance(session, "upload")
    with running_schedule(session.local):
        pod = wait_for_running(session, job_id, 1)
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        wait_for_running_job(session, job_id)
        screen.heading("Its node is gone")
        saved = lose_node(session, job_id, pod)
        show_news(session)
        other = wait_for_running(session, job_id, 2)
        session.require(other["spec"]["nodeName"] != pod["spec"]["nodeName"], "the second Job runs on another node")
        result = finish(session, job_id, training, "upload", expected_step=saved)
    show_states(session, job_id)
    return result


def ack_of(session: Session) -> AckCluster:
    """Return the cluster of the local world, which has one."""
    if session.local.ack is None:
        raise LookupError("the local world was opened without ACK")
    return session.local.ack


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
    node = pod["spec"]["nodeName"]
    card = ", ".join(cards_of(pod))
    session.screen.line(f"attempt {attempt} is Running on {node}, GPU {card}")
    return pod


def _find(session: Session, resource: str, job_id: str, attempt: int, is_wanted: Any) -> Document | None:
    cluster = ack_of(session).cluster
    with cluster.clock.lock:
        found = cluster.state.all(resource, NAMESPACE)
        owned = [
            each for each in found if each["metadata"]["annotations"].get("relaunch/owner") == f"{job_id}/{attempt}"
        ]
        return next((each for each in owned if is_wanted(each)), None)


def show_job(session: Session, job: Document) -> None:
    """Show the fields of a Job that decide what runs where."""
    pod = job["spec"]["template"]["spec"]
    container = pod["containers"][0]
    limits = [(name, value) for name, value in container["resources"]["limits"].items() if "/" in name]
    facts = [
        ("name", job["metadata"]["name"]),
        ("image", container["image"]),
        *limits,
        *(pod.get("nodeSelector") or {}).items(),
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
    found = ack_of(session).cluster.state.find("pods", NAMESPACE, name)
    phase = "gone" if found is None else found["status"]["phase"]
    session.require(phase == "Running", f"{name} runs until something happens to it, but it is {phase} before")


def evict(session: Session, job_id: str, pod: Document) -> int:
    """Evict a pod; wait until its training has saved and its stop is classified; return the saved step."""
    name = pod["metadata"]["name"]
    cluster = ack_of(session).cluster
    with cluster.clock.lock:
        require_running(session, name)
        cluster.evict_pod(NAMESPACE, name)
    session.local.release_trainings()
    session.recorder.record_action("eviction", pod=name, job_id=job_id)
    session.screen.line(Text(f"{name} is evicted: SIGTERM", style="bold yellow"))
    stop = session.expect_job(job_id, "the eviction is noticed", lambda history: history.attempts[0].stop)
    session.require(stop.kind is StopKind.INTERRUPTION, f"the stop is an interruption, not {stop.kind}")
    saved = newest_step(session, job_id)
    session.screen.line(f"it saved step {saved}; Kubernetes: “{stop.stopped_reason}”: {stop.kind}")
    return saved


def lose_node(session: Session, job_id: str, pod: Document) -> int:
    """Remove the node of a pod; return the step of the newest complete checkpoint."""
    node = pod["spec"]["nodeName"]
    cluster = ack_of(session).cluster
    with cluster.clock.lock:
        require_running(session, pod["metadata"]["name"])
        cluster.remove_node(node)
    session.recorder.record_action("node removed", node=node, job_id=job_id)
    session.screen.line(Text(f"{node} is gone: no warning, no SIGTERM", style="bold yellow"))
    stop = session.expect_job(job_id, "the loss of the node is noticed", lambda history: history.attempts[0].stop)
    session.local.release_trainings()
    is_loss = stop.kind in {StopKind.HOST_LOST, StopKind.INTERRUPTION}
    session.require(is_loss, f"the stop is a lost host or an interruption, not {stop.kind}")
    session.screen.line(f"Kubernetes: “{stop.stopped_reason}”: {stop.kind}")
    return newest_step(session, job_id)
