"""The story of a push that starts a training over several machines, one of which is interrupted with a warning."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.text import Text

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.attempt import StopKind
from relaunch_local.demo import interruption, steps
from relaunch_local.demo.gang import drawings, ranks
from relaunch_local.demo.gang.logs import RankLogs, find_result
from relaunch_local.demo.gang.training import task_definition, train_uninterrupted
from relaunch_local.demo.news import show_news, wait_for_end
from relaunch_local.demo.outcome import GangResult, RankResult
from relaunch_local.demo.session import Session
from relaunch_local.demo.story import send_push, show_timeline, steps_taken_twice, succeeded
from relaunch_local.stack.training_cluster import Training


def register_task_definition(session: Session, training: Training) -> None:
    """Register the task definition of the ranks, as `aws ecs register-task-definition` does."""
    made = session.local.client("ecs").register_task_definition(**task_definition(training))["taskDefinition"]
    name = f"{made['family']}:{made['revision']}"
    session.screen.line(f"register-task-definition examples/ddp/task-definition.json: {name}, networkMode host")


def run_gang_story(session: Session, training: Training) -> GangResult:
    """Run the story: all machines or none, one stop for all, and the next generation with one other machine."""
    screen = session.screen
    screen.heading("A push to GitHub")
    send_push(session)
    job_id = steps.wait_for_acceptance(session, "push")
    definition = session.expect_job(job_id, "the job is in the table", lambda history: history.job.definition)
    nodes = definition.nodes
    log = RankLogs(session, job_id, nodes)
    session.write_rank_logs = log.write
    screen.heading(f"Which machines: the selection, for {nodes} of them")
    steps.show_selection(session, job_id, 1)
    screen.heading(f"{nodes} machines or none: one CreateFleet, as EC2 received it")
    instances = ranks.wait_for_machines(session, job_id, 1, nodes)
    show_news(session)
    screen.heading(f"{nodes} tasks are placed: RunTask, as ECS received it")
    requests = ranks.wait_for_tasks(session, job_id, 1, nodes)
    ranks.show_tasks(session, requests)
    screen.heading("It trains: torchrun, one worker on each machine")
    ranks.wait_for_running(session, job_id, 1, instances)
    ranks.show_meeting(session, requests, instances, log)
    steps.watch_training(session, job_id, 1, training, until=training.hold_at_step)
    show_news(session)
    screen.heading("A spot warning for one of the machines")
    interrupt(session, log, instances, nodes)
    saved = wait_for_stop(session, log, nodes)
    show_news(session)
    screen.heading("The next generation resumes")
    relaunch(session, log, instances, nodes, saved)
    return finish(session, log, training, definition, saved)


def interrupt(session: Session, log: RankLogs, instances: ranks.Instances, nodes: int) -> None:
    """Interrupt the machine of the last rank with a warning, and watch Relaunch stop the tasks of all."""
    job_id = log.job_id
    for rank in range(nodes):
        log.wait_for(1, rank, "held", "all ranks are at the step at which the warning comes")
    instance = instances[-1]["InstanceId"]
    simulator = session.local.simulator
    with simulator.clock.lock:
        simulator.clock.synchronize()
        interruption.require_running(session, job_id)
        simulator.interrupt(instance)
    session.recorder.record_action("warning", instance_id=instance, job_id=job_id)
    session.screen.line(Text(f"EC2: {instance} of rank {nodes - 1} goes in two minutes", style="bold yellow"))
    tasks = session.expect_job(job_id, "its tasks are known", lambda history: history.attempts[0].task_ids or None)
    stops = [session.expect_request("StopTask", "StopTask for all tasks", partial(is_stop_of, each)) for each in tasks]
    for task in tasks:
        require_intent(session, job_id, task)
    session.screen.line(f"the intent is stored; then StopTask for all {len(stops)} tasks:")
    session.screen.note(f"“{stops[0].parameters['reason']}”")


def require_intent(session: Session, job_id: str, task: str) -> None:
    """Check that the intent was in the table before a task was stopped.

    Raises:
        UnmetExpectationError: it was not.
    """
    what = "the table was read when the task was stopped"
    rows = session.expect(what, lambda: session.recorder.stored_at_stop.get(task))
    (attempt,) = (row for row in rows if row["sk"] == "ATTEMPT#0001" and row["pk"].endswith(job_id))
    intent = attempt["body"]["intent"] or {}
    session.require(intent.get("kind") == "interruption", "the intent is in the table before StopTask is sent")


def is_stop_of(task: str, request: Mapping[str, Any]) -> bool:
    """Return whether a StopTask request is for this task."""
    return bool(request["task"] == task)


def wait_for_stop(session: Session, log: RankLogs, nodes: int) -> int:
    """Wait until all ranks have saved and stopped; return the saved step."""
    job_id = log.job_id
    tasks = session.expect_job(job_id, "its tasks are known", lambda history: history.attempts[0].task_ids or None)
    codes = session.expect("all ranks save and stop", lambda: ranks.find_exit_codes(session, tasks))
    step = interruption.newest_step(session, job_id)
    session.screen.line("SIGTERM to each; the ranks agree on a step, save it together, and end:")
    session.screen.show(drawings.draw_ends(codes, nodes - 1, step))
    interruption.show_checkpoint(session, job_id, 1, step)
    stop = session.expect_job(job_id, "the stop is classified", lambda history: history.attempts[0].stop)
    session.require(stop.kind is StopKind.INTERRUPTION, f"the stop is an interruption, not {stop.kind}")
    text = f"judged once all have stopped: an {stop.kind}, whatever the exit codes are"
    session.screen.line(Text(text, style="bold"))
    return step


def relaunch(session: Session, log: RankLogs, before: ranks.Instances, nodes: int, saved: int) -> None:
    """Wait until the second attempt has resumed, on another machine for the one that is lost, from the saved step."""
    job_id = log.job_id
    *living, last = (each["InstanceId"] for each in before)
    instances = ranks.wait_for_machines(session, job_id, 2, nodes, lost=[last])
    kept = {each["InstanceId"] for each in instances} & {*living, last}
    session.require(kept == set(living), f"the machines of the ranks that live are kept: {' and '.join(living)}")
    session.screen.line(f"{' and '.join(living)} were kept: only the one that EC2 takes is replaced")
    requests = ranks.wait_for_tasks(session, job_id, 2, nodes)
    ranks.wait_for_running(session, job_id, 2, instances)
    ranks.show_meeting(session, requests, instances, log)
    resumed = [log.wait_for(2, rank, "resumed", "all ranks resume")["step"] for rank in range(nodes)]
    session.require(resumed == [saved] * nodes, f"all resume from step {saved}, not from {resumed}")
    session.screen.line(
        Text(f"all {nodes} ranks resumed from step {saved}", style="bold green").append(", none is lost")
    )
    show_news(session)


def finish(session: Session, log: RankLogs, training: Training, definition: JobDefinition, saved: int) -> GangResult:
    """Watch the second attempt to its end, and compare it with a training that nobody interrupts."""
    job_id = log.job_id
    steps.watch_training(session, job_id, 2, training, until=training.steps)
    results = [log.wait_for_result(rank) for rank in range(definition.nodes)]
    session.expect_job(job_id, "the job has SUCCEEDED", succeeded)
    session.screen.line(Text(f"{job_id} has SUCCEEDED", style="bold green"))
    wait_for_end(session, job_id, "push")
    session.screen.heading("Its machines end with it")
    ranks.wait_for_ends(session, job_id)
    show_timeline(session, job_id)
    session.screen.heading("The same training, without Relaunch, and nobody interrupts it")
    others = train_alone(session, training, definition)
    session.screen.show(drawings.draw_comparison(results, others, saved))
    (first, *_) = others
    wanted = [(each.rank, first.loss, first.weights_sha256) for each in others]
    found = [(each.rank, each.loss, each.weights_sha256) for each in results]
    session.require(
        found == wanted == [(each.rank, each.loss, each.weights_sha256) for each in others],
        f"all ranks of {job_id} end with the loss {first.loss} of an uninterrupted training, and its weights",
    )
    session.screen.line(Text("the same bits", style="bold green").append(": the interruption left no trace in them"))
    again = steps_taken_twice(session, job_id, saved)
    loss = float.fromhex(first.loss)
    return GangResult("push", job_id, saved, again, loss, first.weights_sha256, results, others)


def train_alone(session: Session, training: Training, definition: JobDefinition) -> list[RankResult]:
    """Train from the first step to the last on as many addresses of loopback; return what the ranks end with."""
    what = f"{definition.nodes} agents of torchrun at other addresses of loopback"
    with session.screen.status_line(what):
        lines = train_uninterrupted(training, definition)
    session.screen.line(f"{what}: {training.steps} steps")
    found = [find_result(rank, each) for rank, each in enumerate(lines)]
    session.require(None not in found, "each rank says what it ends with")
    return [each for each in found if each is not None]
