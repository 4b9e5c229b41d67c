"""Takes a job's machine away, with a warning or without, and shows what Relaunch does."""

import json

from rich.text import Text

from relaunch.core.jobs.attempt import StopKind
from relaunch_local.demo import drawings, machines
from relaunch_local.demo.evidence import read_checkpoints
from relaunch_local.demo.session import Session
from relaunch_local.repository import REPOSITORY

WARNING = REPOSITORY / "events" / "aws.ec2.spot-interruption-warning.json"


def warn_of_foreign_instance(session: Session) -> None:
    """Publish a warning of an instance of another owner in the account, which Relaunch must ignore.

    It also starts the function that has to handle the later warning within seconds.
    """
    event = json.loads(WARNING.read_text())
    instance = event["detail"]["instance-id"]
    session.local.publish(event)
    session.recorder.record_action("another's warning", instance_id=instance)
    session.expect_request(
        "ListContainerInstances",
        "ECS is asked whether the machine is ours",
        lambda request: instance in request.get("filter", ""),
    )
    session.screen.line(f"EC2 warns of {instance}: not one of Relaunch's, ignored", "dim")


def interrupt(session: Session, job_id: str, instance: str) -> None:
    """Interrupt a job's machine with a warning, and watch Relaunch save the intent and stop the task."""
    simulator = session.local.simulator
    with simulator.clock.lock:
        simulator.clock.synchronize()
        require_running(session, job_id)
        simulator.interrupt(instance)
    session.recorder.record_action("warning", instance_id=instance, job_id=job_id)
    session.screen.line(Text(f"EC2: {instance} goes in two minutes", style="bold yellow"))
    task = session.expect_job(job_id, "its task is known", lambda history: history.attempts[0].task_id)
    stop = session.expect_request("StopTask", "StopTask for its task", lambda request: request["task"] == task)
    stored = session.expect(
        "the table was read when the task was stopped", lambda: session.recorder.stored_at_stop.get(task)
    )
    intent = next(row["body"]["intent"] for row in stored if row["sk"] == "ATTEMPT#0001" and row["pk"].endswith(job_id))
    session.require(intent is not None, "the intent is in the table before StopTask is sent")
    session.screen.line(f"the intent is stored: {intent['kind']}; then StopTask: “{stop.parameters['reason']}”")
    why = "by default it trains on until the next machine is ready; this training would be over"
    session.screen.line(f"at once, by MachineTaskStop=at-warning: {why}", "dim")


def require_running(session: Session, job_id: str) -> None:
    """Check that the first task still runs, whose training would otherwise have ended before anything happened to it.

    Raises:
        UnmetExpectationError: it has ended.
    """
    status = session.statuses_of(job_id, 1)[-1]
    session.require(status == "RUNNING", f"{job_id} runs until something happens to it, but it is {status} before")


def wait_for_handover(session: Session, job_id: str) -> None:
    """Wait until the next machine is requested, which must be while the task still runs on the old one.

    The training takes its time to save until then.
    """
    machines.wait_for_request(session, job_id, 2)
    session.expect("the training is told to stop", lambda: "STOPPING" in session.statuses_of(job_id, 1) or None)
    is_stopped = "STOPPED" in session.statuses_of(job_id, 1)
    session.require(not is_stopped, "the next machine is requested before the task has ended on the old one")
    session.local.release_trainings()
    session.screen.line(Text("the next machine is requested while the training saves", style="bold"))


def wait_for_save(session: Session, job_id: str) -> int:
    """Wait until the training has saved on SIGTERM and its stop is classified; return the saved step."""
    stopped = session.expect("the training has saved and stopped", lambda: session.read_log(job_id).find(1, "stopped"))
    step = int(stopped["step"])
    session.screen.line(f"{stopped['signal']}: the training saves step {step} and exits")
    show_checkpoint(session, job_id, 1, step)
    stop = session.expect_job(job_id, "the stop is classified", lambda history: history.attempts[0].stop)
    session.require(stop.kind is StopKind.INTERRUPTION, f"the stop is an interruption, not {stop.kind}")
    session.screen.line(f"STOPPED with exit code {stop.exit_code}: an {stop.kind}, neither success nor failure")
    return step


def show_checkpoint(session: Session, job_id: str, attempt: int, step: int) -> None:
    """Show the objects of a checkpoint, which must be complete."""
    job = session.expect_job(job_id, "the job is in the table", lambda history: history.job)
    checkpoints = str(job.definition.checkpoint_uri)
    prefix = checkpoints.removeprefix("s3://").partition("/")[2]
    rows = read_checkpoints(session.local, f"{prefix}{job_id}/attempt-{attempt}/step-{step:07d}/")
    written = sorted(rows, key=lambda row: row["last_modified"])
    session.require(bool(rows) and "manifest" in written[-1], f"the manifest of step {step} was written last")
    session.screen.line(f"complete in {checkpoints}, the manifest last:")
    session.screen.show(drawings.draw_objects(written, prefix))


def terminate(session: Session, job_id: str, instance: str) -> int:
    """Terminate a job's machine without a warning; return the step of the newest complete checkpoint."""
    simulator = session.local.simulator
    with simulator.clock.lock:
        simulator.clock.synchronize()
        require_running(session, job_id)
        simulator.terminate(instance)
    session.recorder.record_action("termination", instance_id=instance, job_id=job_id)
    session.screen.line(Text(f"{instance} is terminated: no warning, no SIGTERM", style="bold yellow"))
    stop = session.expect_job(job_id, "the loss of the machine is noticed", lambda history: history.attempts[0].stop)
    session.local.release_trainings()
    session.require(stop.kind is StopKind.HOST_LOST, f"the stop is a lost host, not {stop.kind}")
    session.screen.line(f"ECS: “{stop.stopped_reason}”: {stop.kind}")
    return newest_step(session, job_id)


def newest_step(session: Session, job_id: str) -> int:
    """Return the step of a job's newest checkpoint with a manifest; a lost machine may not have logged it."""
    rows = read_checkpoints(session.local)
    manifests = [row["manifest"] for row in rows if "manifest" in row]
    return max((each["step"] for each in manifests if each["job_id"] == job_id), default=0)
