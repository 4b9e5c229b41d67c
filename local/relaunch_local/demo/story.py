"""The two stories: a push whose machine is interrupted with a warning, and an upload whose machine is terminated.

A job whose program ended succeeds once EC2 would have said that it was taking the machine away. That takes ten seconds,
in which the second story goes on; its upload comes when the first job resumes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.text import Text

from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.machines.machine import Machine
from relaunch.ports import JobHistory
from relaunch_cli.views.jobs import render_timeline
from relaunch_local.demo import drawings, interruption, machines, steps
from relaunch_local.demo.delivery import send, sign_push
from relaunch_local.demo.news import show_news, wait_for_end
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.reference_run import train_uninterrupted
from relaunch_local.demo.session import Session
from relaunch_local.stack.account import DATASETS
from relaunch_local.stack.training_cluster import Training

ACCEPTED = 202
UNAUTHORIZED = 401
UPLOAD = "images/batch 7.manifest"
UPLOAD_HEADING = "An upload to S3"
PUSH_END_HEADING = "How the push ends"


@dataclass(frozen=True)
class Trained:
    """A job whose second attempt has trained to the end, and the step that it resumed from."""

    kind: str
    job_id: str
    resumed_step: int


def run_both_stories(session: Session, training: Training) -> Iterator[JobResult]:
    """Run both stories, the second one beside the end of the first."""
    push = run_push_story(session, training)
    wait = f"{NOTICE_LEAD.total_seconds():g} s"
    session.screen.line(
        f"whether EC2 was taking its machine away is known after {wait}; something else meanwhile", "dim"
    )
    upload = run_upload_story(session, training)
    session.screen.heading(PUSH_END_HEADING)
    yield end(session, training, push)
    session.screen.heading("Its machines end with it")
    machines.wait_for_end(session, push.job_id)
    show_timeline(session, push.job_id)
    session.screen.heading("How the upload ends")
    yield end(session, training, upload)
    machines.wait_for_end(session, upload.job_id)
    show_states(session, upload.job_id)


def run_push_story(session: Session, training: Training) -> Trained:
    """Run the story of the push in detail: after a spot warning the training saves on SIGTERM and is relaunched."""
    screen = session.screen
    session.local.hold_trainings()
    interruption.warn_of_foreign_instance(session)
    machines.make_scarce(session)
    screen.heading("A push to GitHub")
    send_push(session)
    job_id = steps.wait_for_acceptance(session, "push")
    screen.heading("Which code: the newest ACTIVE revision")
    steps.show_revision(session, job_id)
    show_news(session)
    machine = show_launch(session, job_id)
    show_news(session)
    screen.heading("It trains")
    host = steps.wait_for_running(session, job_id, 1, machine)
    steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
    show_news(session)
    screen.heading("A spot warning")
    interruption.interrupt(session, job_id, host.instance_id)
    interruption.wait_for_handover(session, job_id)
    saved = interruption.wait_for_save(session, job_id)
    show_news(session)
    screen.heading("It resumes on another machine")
    # What resumes is past the step at which trainings are held from now on.
    session.local.hold_trainings()
    send_upload(session)
    screen.note("this begins another job meanwhile, which is shown afterwards")
    steps.wait_for_relaunch(session, job_id, host)
    show_news(session)
    return watch_second_attempt(session, job_id, training, "push", expected_step=saved)


def show_launch(session: Session, job_id: str) -> Machine:
    """Show how the first attempt is launched: selection, machine, task; return the machine."""
    screen = session.screen
    screen.heading("Which machine: the selection")
    steps.show_selection(session, job_id, 1)
    screen.heading("A machine is requested: CreateFleet, as EC2 received it")
    machines.show_request(session, machines.wait_for_request(session, job_id, 1))
    machine = steps.wait_for_machine(session, job_id, 1)
    screen.heading("The task is placed on it: RunTask, as ECS received it")
    request = steps.wait_for_launch(session, job_id, 1)
    screen.show(drawings.draw_run_task(request.parameters, screen.table_width))
    steps.show_origin(session, request)
    return machine


def send_push(session: Session) -> None:
    """Send a forged delivery, which must be refused, and a signed one."""
    url = session.local.deployment.webhook_url
    forged = sign_push("not the secret")
    status = send(url, forged)
    session.recorder.record_action("forged push", status=status, delivery=forged.headers["X-GitHub-Delivery"])
    session.require(status == UNAUTHORIZED, f"a forged push is refused with 401, not {status}")
    session.screen.line("a forged push: 401, refused", "dim")
    delivery = sign_push(session.local.deployment.webhook_secret)
    status = send(url, delivery)
    session.recorder.record_action("push", status=status, delivery=delivery.headers["X-GitHub-Delivery"])
    session.require(status == ACCEPTED, f"a signed push is accepted with 202, not {status}")
    signature = delivery.headers["X-Hub-Signature-256"]
    session.screen.line(f"a push with X-Hub-Signature-256: {signature[:19]}…: 202, queued")


def send_upload(session: Session) -> None:
    """Upload the file that the definition waits for."""
    session.recorder.record_action("upload", bucket=DATASETS, key=UPLOAD)
    session.local.client("s3").put_object(Bucket=DATASETS, Key=UPLOAD, Body=b"cat-0001.png\ncat-0002.png\n")
    session.screen.line(f"PutObject s3://{DATASETS}/{UPLOAD}")


def run_upload_story(session: Session, training: Training) -> Trained:
    """Run the story of the upload: its machine is terminated, and it is relaunched from the newest checkpoint."""
    screen = session.screen
    screen.heading(UPLOAD_HEADING)
    job_id = steps.wait_for_acceptance(session, "upload")
    machine = steps.wait_for_machine(session, job_id, 1)
    steps.wait_for_launch(session, job_id, 1)
    steps.show_choice(session, job_id, 1)
    host = steps.wait_for_running(session, job_id, 1, machine)
    steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
    screen.heading("The machine is terminated without a warning")
    saved = interruption.terminate(session, job_id, host.instance_id)
    show_news(session)
    steps.wait_for_relaunch(session, job_id, host)
    return watch_second_attempt(session, job_id, training, "upload", expected_step=saved)


def finish(session: Session, job_id: str, training: Training, kind: str, *, expected_step: int) -> JobResult:
    """Watch the second attempt and the job to their ends, and compare the result with an uninterrupted training."""
    return end(session, training, watch_second_attempt(session, job_id, training, kind, expected_step=expected_step))


def watch_second_attempt(
    session: Session, job_id: str, training: Training, kind: str, *, expected_step: int
) -> Trained:
    """Watch the second attempt to its last step."""
    resumed = steps.wait_for_resume(session, job_id, expected_step)
    show_news(session)
    steps.watch_training(session, job_id, 2, training, until=training.steps)
    show_news(session)
    return Trained(kind, job_id, resumed)


def end(session: Session, training: Training, trained: Trained) -> JobResult:
    """Wait for the end of a job, and compare the result with an uninterrupted training."""
    job_id = trained.job_id
    resumed = trained.resumed_step
    finished = session.expect(
        "the training says that it has finished", lambda: session.read_log(job_id).find(2, "finished")
    )
    session.expect_job(job_id, "the job has SUCCEEDED", succeeded)
    session.screen.line(Text(f"{job_id} has SUCCEEDED", style="bold green"))
    twice = steps_taken_twice(session, job_id, resumed)
    result = JobResult(trained.kind, job_id, resumed, twice, finished["loss"], finished["weights_sha256"])
    compare(session, result, train_uninterrupted(training))
    wait_for_end(session, job_id, trained.kind)
    return result


def show_timeline(session: Session, job_id: str) -> None:
    """Show the timeline of a job."""
    history = session.expect_job(job_id, "the job is in the table", lambda history: history)
    session.screen.heading(f"The timeline of {job_id}")
    session.screen.show(render_timeline(history.timeline, session.deps.clock.now()))


def show_states(session: Session, job_id: str) -> None:
    """Show the states of a job in one line."""
    history = session.expect_job(job_id, "the job is in the table", lambda history: history)
    states = [state for state, _ in groupby(entry.state.value for entry in history.timeline)]
    session.screen.line(" → ".join(states))


def succeeded(history: JobHistory) -> JobHistory | None:
    """Return the history if the job has succeeded."""
    return history if history.job.state is JobState.SUCCEEDED else None


def steps_taken_twice(session: Session, job_id: str, resumed_step: int) -> int:
    """Return how many steps of the first attempt the second one repeated."""
    return max(session.read_log(job_id).last_step(1) - resumed_step, 0)


def compare(session: Session, result: JobResult, uninterrupted: Mapping[str, Any]) -> None:
    """Check that the result has the loss and the weights of an uninterrupted training, bit for bit."""
    session.require(
        (result.loss, result.weights_sha256) == (uninterrupted["loss"], uninterrupted["weights_sha256"]),
        f"{result.job_id} ends as an uninterrupted training: loss {uninterrupted['loss']}, not {result.loss}",
    )
    session.screen.line(f"loss {result.loss:.6f}, weights {result.weights_sha256[:8]}…: the same bits as uninterrupted")
