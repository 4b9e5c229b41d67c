"""A job of several nodes, and observations of its ranks."""

from dataclasses import replace

from fakes.builders import INSTANCE_ID, NOW, container_instance_arn, make_definition, make_observation, task_id
from relaunch.core.jobs.attempt import Rank
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.core.lifecycle.gangs import observe_gang
from unit.core.lifecycle.steps import SOON, decided
from unit.core.lifecycle.table_matrix import SITUATIONS

DEFINITION = make_definition(nodes=3)
FOLLOWERS = (Rank("m-0-n1", "i-1", task_id(2)), Rank("m-0-n2", "i-2", task_id(3)))
BY_RELAUNCH = {"stop_code": "UserInitiated", "stopped_reason": "Relaunch: rank 1 ended"}


def gang(situation: str = "ro", **fields: object) -> Job:
    """Return the job of a situation on three machines."""
    job = replace(SITUATIONS[situation], definition=DEFINITION)
    attempt = job.current_attempt
    first = replace(attempt.placement, machine_id="m-0", instance_id=INSTANCE_ID, capacity_provider="")
    placed = replace(first, followers=FOLLOWERS, master_address="10.0.0.7")
    return replace(job, attempt=replace(attempt, placement=placed, instance_id=INSTANCE_ID, **fields))


def pending() -> Job:
    """Return a job whose three tasks were not launched yet."""
    job = gang("fz")
    placement = job.current_attempt.placement
    unknown = tuple(replace(each, task_id="") for each in FOLLOWERS)
    return replace(job, attempt=replace(job.current_attempt, placement=replace(placement, followers=unknown)))


def rank(number: int, status: str = "RUNNING", **words: object) -> TaskObservation:
    """Return an observation of the task of a rank."""
    started = {} if status in {"PENDING", "PROVISIONING"} else {"started_at": NOW}
    node = {"node": container_instance_arn(number)} if status != "PROVISIONING" else {}
    return make_observation(status, **{"task_id": task_id(number + 1), "version": 3, **started, **node, **words})


def ended(number: int, code: int | None, at=SOON, **words: object) -> TaskObservation:
    """Return an observation of the task of a rank whose container has exited."""
    exited = {
        "stop_code": "EssentialContainerExited",
        "stopped_reason": "Essential container in task exited",
        "container_exit_codes": {"main": code},
        "stopped_at": at,
        "execution_stopped_at": at,
        "desired_status": "STOPPED",
    }
    return rank(number, "STOPPED", **{"version": 9, **exited, **words})


def together(job: Job, *ranks: TaskObservation | None, now=SOON) -> TaskObservation:
    """Return three observations as one."""
    known = dict(zip((task_id(1), task_id(2), task_id(3)), ranks, strict=True))
    found = observe_gang(job, known, now)
    assert found is not None
    return found


def tell(job: Job, *ranks: TaskObservation | None, now=SOON) -> Job:
    """Return the job after an observation of its three tasks."""
    return decided(job, TaskSeen(together(job, *ranks, now=now)), now).job


def stopped_tasks(job: Job) -> set[str]:
    return {each.task_id for each in job.pending if isinstance(each, StopTask)}


EVERY = {task_id(1), task_id(2), task_id(3)}
