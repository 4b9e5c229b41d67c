"""The story: a push whose machine is taken away with a warning, and an upload whose machine is lost without one."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rich.text import Text

from relaunch.core.jobs.job import JobState
from relaunch.ports import JobHistory
from relaunch_cli.views.jobs import render_timeline
from relaunch_local.demo import drawings, interruption
from relaunch_local.demo import steps as episode
from relaunch_local.demo.delivery import deliver_push, send
from relaunch_local.demo.outcome import Ending
from relaunch_local.demo.reference_run import train_uninterrupted
from relaunch_local.demo.session import Stage
from relaunch_local.stack.account import DATASETS
from relaunch_local.stack.training_cluster import Training

ACCEPTED, UNAUTHORIZED = 202, 401
UPLOAD = "images/batch 7.manifest"

WARNED_AFTER, LOST_AFTER = 1.75, 2.5
"""When the machine is taken away, in intervals between checkpoints: early, so that enough is left to be stopped in."""


def tell_push(stage: Stage, training: Training) -> Ending:
    """A push: everything in detail; the machine is warned of, and the training saves on SIGTERM."""
    screen = stage.screen
    interruption.warn_of_another(stage)
    screen.chapter("A push to GitHub")
    send_push(stage)
    job_id = episode.await_acceptance(stage, "push")
    screen.chapter("Which code: the newest ACTIVE revision")
    episode.show_revision(stage, job_id)
    screen.chapter("Which machine: the selection")
    request = episode.await_launch(stage, job_id, 1)
    episode.show_selection(stage, job_id, 1)
    screen.chapter("RunTask, as ECS received it")
    screen.show(drawings.draw_run_task(request.parameters, screen.table_width))
    episode.show_origin(stage, request)
    screen.chapter("It trains")
    host = episode.await_running(stage, job_id, 1)
    episode.watch_training(stage, job_id, 1, training, until=round(WARNED_AFTER * training.checkpoint_every))
    screen.chapter("A spot warning")
    interruption.warn(stage, job_id, host.instance_id)
    saved = interruption.await_saved(stage, job_id)
    screen.chapter("It goes on elsewhere")
    episode.await_relaunch(stage, job_id, request)
    episode.show_rejected_now(stage, job_id)
    ending = finish(stage, job_id, training, "push", expected_step=saved)
    show_timeline(stage, job_id)
    return ending


def send_push(stage: Stage) -> None:
    """Send a forged delivery, which is refused, and a signed one."""
    url = stage.local.deployment.webhook_url
    forged = deliver_push("not the secret")
    status = send(url, forged)
    stage.witness.note("forged push", status=status, delivery=forged.headers["X-GitHub-Delivery"])
    stage.require(status == UNAUTHORIZED, f"a forged push is refused with 401, not {status}")
    stage.screen.line("a forged push: 401, refused", "dim")
    delivery = deliver_push(stage.local.deployment.webhook_secret)
    status = send(url, delivery)
    stage.witness.note("push", status=status, delivery=delivery.headers["X-GitHub-Delivery"])
    stage.require(status == ACCEPTED, f"a signed push is accepted with 202, not {status}")
    signature = delivery.headers["X-Hub-Signature-256"]
    stage.screen.line(f"a push with X-Hub-Signature-256: {signature[:19]}…: 202, queued")


def tell_upload(stage: Stage, training: Training) -> Ending:
    """An upload, in short; its machine is gone at once, and the training resumes from its last checkpoint."""
    screen = stage.screen
    screen.chapter("An upload to S3")
    stage.witness.note("upload", bucket=DATASETS, key=UPLOAD)
    stage.local.client("s3").put_object(Bucket=DATASETS, Key=UPLOAD, Body=b"cat-0001.png\ncat-0002.png\n")
    screen.line(f"PutObject s3://{DATASETS}/{UPLOAD}")
    job_id = episode.await_acceptance(stage, "upload")
    request = episode.await_launch(stage, job_id, 1)
    episode.show_choice(stage, job_id, 1)
    host = episode.await_running(stage, job_id, 1)
    episode.watch_training(stage, job_id, 1, training, until=round(LOST_AFTER * training.checkpoint_every))
    screen.chapter("The machine is gone, without a warning")
    saved = interruption.terminate(stage, job_id, host.instance_id)
    episode.await_relaunch(stage, job_id, request)
    ending = finish(stage, job_id, training, "upload", expected_step=saved)
    show_states(stage, job_id)
    return ending


def finish(stage: Stage, job_id: str, training: Training, kind: str, *, expected_step: int) -> Ending:
    """Watch the second attempt to the end, and compare it with the same training left alone."""
    episode.await_running(stage, job_id, 2)
    resumed = episode.await_resumed(stage, job_id, expected_step)
    episode.watch_training(stage, job_id, 2, training, until=training.steps)
    finished = stage.expect(
        "the training says that it has finished", lambda: stage.read_log(job_id).find(2, "finished")
    )
    stage.expect_job(job_id, "the job has SUCCEEDED", succeeded)
    stage.screen.line(Text(f"{job_id} has SUCCEEDED", style="bold green"))
    ending = Ending(
        kind, job_id, resumed, steps_taken_twice(stage, job_id, resumed), finished["loss"], finished["weights_sha256"]
    )
    compare(stage, ending, train_uninterrupted(training))
    return ending


def show_timeline(stage: Stage, job_id: str) -> None:
    """Show every transition of a job."""
    history = stage.expect_job(job_id, "the job is in the table", lambda history: history)
    stage.screen.chapter(f"The timeline of {job_id}")
    stage.screen.show(render_timeline(history.timeline, stage.deps.clock.now()))


def show_states(stage: Stage, job_id: str) -> None:
    """Show the states a job went through, in one line."""
    history = stage.expect_job(job_id, "the job is in the table", lambda history: history)
    states = [state for state, _ in groupby(entry.state.value for entry in history.timeline)]
    stage.screen.line(" → ".join(states))


def succeeded(history: JobHistory) -> JobHistory | None:
    """The history of a job that has succeeded."""
    return history if history.job.state is JobState.SUCCEEDED else None


def steps_taken_twice(stage: Stage, job_id: str, resumed_step: int) -> int:
    """How many steps of the first attempt were taken once more."""
    return max(stage.read_log(job_id).last_step(1) - resumed_step, 0)


def compare(stage: Stage, ending: Ending, alone: Mapping[str, Any]) -> None:
    """Insist that the interruption has changed nothing: the same loss and the same weights, to the last bit."""
    stage.require(
        (ending.loss, ending.weights_sha256) == (alone["loss"], alone["weights_sha256"]),
        f"{ending.job_id} ends as an uninterrupted training: loss {alone['loss']}, not {ending.loss}",
    )
    stage.screen.line(f"loss {ending.loss:.6f}, weights {ending.weights_sha256[:8]}…: the same bits as uninterrupted")
