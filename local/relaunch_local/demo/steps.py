"""The steps that both stories share: each waits for something and shows it."""

from typing import Any

from rich.text import Text

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.state import JobSummary
from relaunch.core.launches.derived_revision import DERIVED_FROM
from relaunch.core.machines.machine import Machine
from relaunch.ports import JobHistory
from relaunch_local.demo import drawings, machines
from relaunch_local.demo.session import Session
from relaunch_local.ecs import RecordedRequest
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.stack.training_cluster import Training

PLAIN_STEPS = 20
"""Without a terminal, a line is printed every so many steps."""


def wait_for_acceptance(session: Session, kind: str) -> str:
    """Wait for a new job; return its id."""

    def poll() -> JobSummary | None:
        summaries, _ = session.deps.jobs.list_jobs(len(session.jobs) + 1)
        return next((each for each in summaries if each.job_id not in session.jobs.values()), None)

    job = session.expect(f"the {kind} starts a job", poll)
    session.jobs[kind] = job.job_id
    session.screen.line(Text("job ").append(job.job_id, style="bold").append(f" accepted: {job.trigger}"))
    return job.job_id


def show_revision(session: Session, job_id: str) -> None:
    """Show the revisions of the family, and the one that the job is pinned to."""
    ecs = session.local.client("ecs")
    job = session.expect_job(job_id, "the job is in the table", lambda history: history.job)
    family = job.revision.family
    pages = ecs.get_paginator("list_task_definition_families").paginate(familyPrefix=family)
    families = [name for page in pages for name in page["families"]]
    revisions: dict[str, str] = {}
    for name in families:
        for status in ("INACTIVE", "ACTIVE"):
            arns = ecs.list_task_definitions(familyPrefix=name, status=status, sort="DESC")["taskDefinitionArns"]
            revisions |= {arn.rsplit("/", 1)[1]: status for arn in arns}
    pinned = f"{family}:{job.revision.revision}"
    session.recorder.record_action("revisions", pinned=pinned, revisions=revisions)
    own = {name: status for name, status in revisions.items() if name.startswith(f"{family}:")}
    newest_active = max((int(name.rsplit(":", 1)[1]) for name, status in own.items() if status == "ACTIVE"), default=0)
    session.require(
        job.revision.revision == newest_active, f"the job is pinned to {family}:{newest_active}, not {pinned}"
    )
    session.screen.line(Text(pinned, style="bold").append(f" is pinned, the newest ACTIVE of {len(own)}"))
    for name in (each for each, status in own.items() if status == "INACTIVE"):
        session.screen.note(f"{name} is newer, but INACTIVE")
    for name in (each for each in revisions if each not in own):
        session.screen.note(f"{name} is of another family")


def wait_for_launch(session: Session, job_id: str, attempt: int) -> RecordedRequest:
    """Wait for the successful RunTask request of an attempt."""
    started_by = f"{job_id}/{attempt}"
    what = f"RunTask of attempt {attempt}"
    return session.expect_request("RunTask", what, lambda request: request.get("startedBy") == started_by)


def show_selection(session: Session, job_id: str, attempt: int) -> None:
    """Show the table of offerings that an attempt was selected from."""
    selection = session.expect_job(job_id, "its selection is stored", lambda history: selection_of(history, attempt))
    session.screen.show(Text(), drawings.draw_selection(selection))


def wait_for_machine(session: Session, job_id: str, number: int) -> Machine:
    """Wait until a machine is requested for a job, counted from 1, and launched; show it."""
    machine = machines.wait_for_machine(session, machines.wait_for_request(session, job_id, number))
    machines.show_registration(session, machine)
    return machine


def selection_of(history: JobHistory, attempt: int) -> Any:
    """Return the stored selection of an attempt, if any."""
    return next((each for each in history.selections if each.attempt_number == attempt), None)


def show_origin(session: Session, request: RecordedRequest) -> None:
    """Show the origin of a derived revision, which pins the image so that attempt 2 runs the code of attempt 1."""
    family, _, revision = request.parameters["taskDefinition"].rpartition("/")[2].partition(":")
    with session.local.simulator.clock.lock:
        made = [each for each in session.local.simulator.requests if each.action == "RegisterTaskDefinition"]
    for registered in (each.parameters for each in made if each.parameters["family"] == family):
        origin = next(tag["value"] for tag in registered["tags"] if tag["key"] == DERIVED_FROM).rpartition("/")[2]
        image = registered["containerDefinitions"][0]["image"].rpartition("/")[2]
        session.screen.line(f"{family}:{revision} is {origin} with its image by digest: {drawings.elide(image, 30)}")


def attempt_of(history: JobHistory, number: int) -> Attempt | None:
    """Return an attempt by its number, if any."""
    return next((each for each in history.attempts if each.number == number), None)


def show_choice(session: Session, job_id: str, number: int) -> None:
    """Show the offering that an attempt was launched on."""
    attempt = session.expect_job(
        job_id, f"attempt {number} has a placement try", lambda history: attempt_of(history, number)
    )
    selection = session.expect_job(job_id, "its selection is stored", lambda history: selection_of(history, number))
    kept = sum(row["verdict"] == "kept" for row in selection.rows)
    chosen = Text(f"attempt {number} on ").append(drawings.describe_choice(attempt), style="bold")
    session.screen.line(chosen.append(f"; {kept} fit, {len(selection.rows) - kept} do not"))


def wait_for_running(session: Session, job_id: str, number: int, machine: Machine) -> Instance:
    """Wait until the task of an attempt is RUNNING, which must be on its machine; return the instance."""
    instance = session.expect_running(job_id, number)
    session.require(
        instance.instance_id == machine.instance_id,
        f"attempt {number} runs on {machine.instance_id}, not on {instance.instance_id}",
    )
    session.screen.line(f"attempt {number} is RUNNING on {instance.instance_id} in {instance.zone}")
    return instance


def watch_training(session: Session, job_id: str, attempt: int, training: Training, *, until: int) -> None:
    """Show the loss until this step is reached."""
    shown = session.read_log(job_id).first_step(attempt)
    with session.screen.status_line("the first step") as update:

        def poll() -> bool | None:
            nonlocal shown
            log = session.read_log(job_id)
            last = log.last_step(attempt)
            if last:
                start = f"step {last:>3}/{training.steps}  "
                curve = drawings.draw_loss_curve(log.loss_curve(), session.screen.line_width - len(start))
                update(Text(start).append(curve))
            if not session.screen.is_live and last // PLAIN_STEPS > shown // PLAIN_STEPS:
                shown = last
                session.screen.line(f"step {last:>3}/{training.steps}  loss {log.losses(attempt)[last]:.4f}")
            return True if last >= until else None

        session.expect(f"step {until} of attempt {attempt}", poll, is_silent=True)
    session.screen.line(drawings.draw_loss_curve(session.read_log(job_id).loss_curve(), session.screen.line_width))


def wait_for_relaunch(session: Session, job_id: str, lost: Instance) -> None:
    """Wait until the second attempt runs, which must be on another machine."""
    machine = wait_for_machine(session, job_id, 2)
    wait_for_launch(session, job_id, 2)
    show_choice(session, job_id, 2)
    instance = wait_for_running(session, job_id, 2, machine)
    session.require(instance.instance_id != lost.instance_id, "the second attempt runs on another machine")


def wait_for_resume(session: Session, job_id: str, expected_step: int) -> int:
    """Wait until the second attempt has resumed; return the step it resumed from."""
    resumed = session.expect("the training has resumed", lambda: session.read_log(job_id).find(2, "resumed"))
    session.require(resumed["step"] == expected_step, f"resumed from step {expected_step}, not {resumed['step']}")
    last = session.read_log(job_id).last_step(1)
    again = f"; the steps up to {last} are repeated" if last > expected_step else ", nothing is lost"
    session.screen.line(Text(f"resumed from step {expected_step}", style="bold green").append(again))
    return expected_step
