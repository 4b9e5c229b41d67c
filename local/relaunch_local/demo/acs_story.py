"""The two stories on ACS: a push whose capacity is released, and an upload in a cluster with a default driver.

They take the steps of ACS's document on models and drivers of GPUs: the labels of a pod, and the cluster's profile.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.text import Text

from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.kubernetes import acs_profile
from relaunch.core.kubernetes.acs import GPU_DRIVER
from relaunch_local.demo import pods, steps
from relaunch_local.demo.news import show_news
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.schedule import running_schedule
from relaunch_local.demo.session import Session
from relaunch_local.demo.story import finish, send_push, send_upload, show_states, show_timeline
from relaunch_local.stack.alibaba_cluster import NAMESPACE
from relaunch_local.stack.training_cluster import Training

RELEASE = "BestEffortToBeReleased"
DRIVER = "1.5.0"
_PARTS = ("objectSelector", "effect")
SET_DRIVER = ("acs-profile", "--driver", DRIVER, "--compute-class", "gpu-hpn", "--yes")


def run_release_story(session: Session, training: Training) -> JobResult:
    """Run the story of the push: its best-effort capacity is released, and it saves in the time of the notice."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("A push to GitHub")
    send_push(session)
    job_id = steps.wait_for_acceptance(session, "push")
    with running_schedule(session.local):
        screen.heading("A Job on ACS, as the API server stored it: model and driver are labels of its pod")
        pods.show_job(session, pods.wait_for_job(session, job_id, 1))
        screen.heading("It trains on a GPU of this model")
        pod = pods.wait_for_running(session, job_id, 1)
        pods.show_objects(session, "pods", "app=demo")
        pods.tell_what_needs_a_card(session, "nvidia-smi in the pod, with the model and the driver of the labels")
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        pods.wait_for_running_job(session, job_id)
        show_news(session)
        screen.heading("ACS takes its best-effort capacity back")
        saved = release(session, job_id, pod)
        show_news(session)
        screen.heading("It resumes in another Job")
        pods.wait_for_running(session, job_id, 2)
        result = finish(session, job_id, training, "push", expected_step=saved)
        pods.show_objects(session, "jobs", "app=demo")
    show_timeline(session, job_id)
    return result


def run_default_driver_story(session: Session, training: Training) -> JobResult:
    """Run the story of the upload: the cluster gets a default driver before, and the pod is evicted."""
    screen = session.screen
    session.local.hold_trainings()
    screen.heading("The driver of pods that name none: the cluster's profile")
    set_default_driver(session)
    screen.heading("An upload to S3")
    send_upload(session)
    job_id = steps.wait_for_acceptance(session, "upload")
    with running_schedule(session.local):
        pod = pods.wait_for_running(session, job_id, 1)
        steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
        pods.wait_for_running_job(session, job_id)
        screen.heading("Its pod is evicted")
        saved = pods.evict(session, job_id, pod)
        show_news(session)
        pods.wait_for_running(session, job_id, 2)
        result = finish(session, job_id, training, "upload", expected_step=saved)
    show_states(session, job_id)
    return result


def release(session: Session, job_id: str, pod: pods.Document) -> int:
    """Let ACS announce that a pod is released; return the step that its training saved in that time."""
    name = pod["metadata"]["name"]
    cluster = pods.cluster_of(session).cluster
    with cluster.clock.lock:
        pods.require_running(session, name)
        cluster.release_best_effort(NAMESPACE, name)
        events = [each for each in cluster.state.all("events", NAMESPACE) if each["reason"] == RELEASE]
    session.recorder.record_action("release", pod=name, job_id=job_id)
    session.screen.line(Text(f"event {RELEASE}: {events[-1]['message']}", style="bold yellow"))
    intent = session.expect_job(job_id, "the notice is noticed", lambda history: history.attempts[0].intent)
    session.require(
        intent.kind is IntentKind.INTERRUPTION, f"the task is stopped for an interruption, not {intent.kind}"
    )
    session.local.release_trainings()
    return pods.tell_save(session, job_id, pods.wait_for_interruption(session, job_id, "the training has saved"))


def set_default_driver(session: Session) -> None:
    """Set the default driver of the document with `relaunch acs-profile`; show the ConfigMap as it is stored then."""
    command = [str(Path(sys.executable).with_name("relaunch")), *SET_DRIVER]
    session.screen.line(Text(f"$ relaunch {' '.join(SET_DRIVER)}", style="bold"))
    environment = {**os.environ, **session.local.environment(), "NO_COLOR": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    session.screen.show(*(Text(line) for line in f"{done.stderr}{done.stdout}".splitlines()))
    session.require(done.returncode == 0, f"the driver is set, but the exit code is {done.returncode}")
    cluster = pods.cluster_of(session).cluster
    with cluster.clock.lock:
        stored = cluster.state.get("configmaps", acs_profile.NAMESPACE, acs_profile.NAME)["data"][acs_profile.KEY]
    session.recorder.record_action("acs-profile", selectors=stored)
    (selector,) = json.loads(stored)
    labels = [f"{key}={value}" for part in _PARTS for key, value in _labels_of(selector, part)]
    where = f"{acs_profile.NAMESPACE}/{acs_profile.NAME}, key {acs_profile.KEY}"
    session.screen.line(f"stored in {where}: pods with {labels[0]} get {', '.join(labels[1:])}")
    session.require(labels[1:] == [f"{GPU_DRIVER}={DRIVER}"], f"pods of class gpu-hpn get driver {DRIVER}")
    session.screen.note("new pods of this class do, once ACS reads it; those of this job name their own")


def _labels_of(selector: pods.Document, part: str) -> list[tuple[str, str]]:
    found = selector[part]
    return list((found.get("matchLabels") or found.get("labels") or {}).items())
