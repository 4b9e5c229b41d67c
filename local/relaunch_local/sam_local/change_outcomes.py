"""What must come of the samples of launches, machines, tasks, warnings and schedules."""

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.offerings.spot_runs import REBALANCE_WEIGHT
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from relaunch_local.ecs import Purchase
from relaunch_local.sam_local.request_outcomes import JOB
from relaunch_local.sam_local.samples import Names
from relaunch_local.sam_local.scene import (
    Outcome,
    Scene,
    expect,
    expect_handled,
    expect_launch_requested,
    expect_machine_requested,
)
from relaunch_local.sam_local.stage import Stage
from relaunch_local.stack.training_cluster import INSTANCE_TYPES, ZONES, price_of

_TASK = "5f1c0e9a7b3d4c21a8e6f0d2b4c69713"
_NODE = "0c9f3a6e2d7b4418b5a1e8c7f6d30219"
_INSTANCE = "i-0a1b2c3d4e5f60718"
_MACHINE = "m-2b8f04c7d95e4a6f1c3b7e90"
_MACHINE_NODE = "7d1e4b9a3c5f4e2680b7a1d9c3f5e846"
_MACHINE_INSTANCE = "i-0f1e2d3c4b5a69788"


def _asks_for_machine(stage: Stage) -> tuple[Job, Machine]:
    """Return a job that waits for a machine which EC2 was not asked for yet."""
    job_id = stage.submit().job_id
    launch_attempt(job_id, stage.deps)
    stage.receive("Attempts")
    stage.receive("Machines")
    job = stage.job(job_id)
    return job, stage.machine(job.machine_id)


def _has_registered(stage: Stage) -> tuple[Job, Machine, str]:
    """Return a job that waits for a machine which has registered as the node returned, which nobody was told yet."""
    job, machine = _asks_for_machine(stage)
    make_ec2_calls(machine.machine_id, stage.deps)
    node = stage.settle("the machine registers", lambda: stage.node_of(machine), queues=())
    return job, stage.machine(machine.machine_id), _last(node["containerInstanceArn"])


def _is_ready(stage: Stage) -> tuple[Job, Machine, str]:
    """Return a job whose machine is ready, that machine, and its node."""
    job, machine, node = _has_registered(stage)

    def is_ready() -> bool | None:
        return stage.machine(machine.machine_id).state is MachineState.READY or None

    stage.settle("the machine is ready", is_ready, queues=("TaskChanges",))
    stage.receive("Attempts")
    return job, machine, node


def _last(arn: str | None) -> str:
    return (arn or "").rpartition("/")[2]


def _task_names(stage: Stage, job: Job) -> Names:
    task = stage.task_of(job)
    return {JOB: job.job_id, _TASK: _last(task["taskArn"]), _NODE: _last(task["containerInstanceArn"])}


def machine_asked_for(stage: Stage) -> Scene:
    """No machine has room: one is saved, and EC2 is to be asked for it."""
    job = stage.submit()
    stage.receive("Attempts")
    answer = yield {JOB: job.job_id}
    expect_handled(answer)
    job = stage.job(job.job_id)
    expect("what it waits for", job.waiting and job.waiting.reason, WaitReason.MACHINE)
    machine = stage.machine(job.machine_id)
    expect("the machine", (machine.state, machine.claims[0].job_id), (MachineState.REQUESTED, job.job_id))
    expect_machine_requested(stage, machine.machine_id)
    return f"{job.job_id} waits for {machine.machine_id}: {job.reason}"


def launched(stage: Stage) -> Scene:
    """The machine of the job is ready: ECS has its task there."""
    job, machine, node = _is_ready(stage)
    answer = yield {JOB: job.job_id}
    expect_handled(answer)
    job, task = stage.job(job.job_id), stage.task_of(stage.job(job.job_id))
    expect("the state", job.state, JobState.LAUNCHING)
    expect("the task", job.current_attempt.task_id, task["taskArn"])
    expect("the node of the task", _last(task["containerInstanceArn"]), node)
    return f"ECS has the task of {job.job_id} on {machine.machine_id}"


def machine_launched(stage: Stage) -> Scene:
    """EC2 has the instance of the machine."""
    _, machine = _asks_for_machine(stage)
    expect("the instances before", stage.instances_of(machine), [])
    answer = yield {_MACHINE: machine.machine_id}
    expect_handled(answer)
    machine = stage.machine(machine.machine_id)
    expect("the state", machine.state, MachineState.STARTING)
    expect("EC2's instances of the machine", stage.instances_of(machine), [machine.instance_id])
    return f"EC2 has launched {machine.instance_id} for {machine.machine_id}"


def machine_registered(stage: Stage) -> Scene:
    """The machine is ready, and the job that waits for it is to be launched."""
    job, machine, node = _has_registered(stage)
    names = {_MACHINE: machine.machine_id, _MACHINE_INSTANCE: machine.instance_id or "", _MACHINE_NODE: node}
    answer = yield names
    expect_handled(answer)
    machine = stage.machine(machine.machine_id)
    expect("the machine", (machine.state, _last(machine.node)), (MachineState.READY, node))
    expect_launch_requested(stage, job.job_id)
    return f"{machine.machine_id} is READY, and the launch of {job.job_id} requested"


def machine_drained(stage: Stage) -> Scene:
    """A machine that takes no more tasks is left to the events of its instance and of its tasks."""
    job = stage.job(stage.running[0])
    machine = stage.machine_of(job)
    node = _last(stage.task_of(job)["containerInstanceArn"])
    answer = yield {_MACHINE: machine.machine_id, _MACHINE_INSTANCE: machine.instance_id or "", _MACHINE_NODE: node}
    expect_handled(answer)
    return f"{machine.machine_id} stays READY: its instance and its tasks have events of their own"


def other_machine(_stage: Stage) -> Scene:
    """A container instance that is no machine of the stack's, and for which no job waits."""
    answer = yield {}
    expect_handled(answer)
    return f"{_INSTANCE} is no machine of the stack's, and no job waits for it"


def running(stage: Stage) -> Scene:
    """The job runs since its task started."""
    job, _, _ = _is_ready(stage)
    launch_attempt(job.job_id, stage.deps)
    job = stage.job(job.job_id)
    expect("the state before", job.state, JobState.LAUNCHING)
    answer = yield _task_names(stage, job)
    expect_handled(answer)
    job = stage.job(job.job_id)
    attempt = job.current_attempt
    expect("the state", (job.state, attempt.task_status), (JobState.RUNNING, "RUNNING"))
    expect("its node", attempt.node, stage.task_of(job)["containerInstanceArn"])
    return f"{job.job_id} is RUNNING since {attempt.started_at:%H:%M:%S}"


def succeeded(stage: Stage) -> Scene:
    """The job has ended, and its machine is to be ended."""
    job = stage.take_running()
    machine = stage.machine_of(job)
    answer = yield _task_names(stage, job)
    expect_handled(answer)
    job = stage.job(job.job_id)
    machine = stage.machine(machine.machine_id)
    expect("the state", job.state, JobState.SUCCEEDED)
    expect("its slot", job.has_slot, expected=False)
    expect("the claims on its machine", (machine.state, machine.claims), (MachineState.ENDING, ()))
    expect_machine_requested(stage, machine.machine_id)
    return f"{job.job_id} has SUCCEEDED, and {machine.machine_id} is to be ended"


def relaunched(stage: Stage) -> Scene:
    """The job that lost its machine is to be launched again."""
    job = stage.take_running()
    answer = yield {**_task_names(stage, job), _INSTANCE: stage.machine_of(job).instance_id or ""}
    expect_handled(answer)
    job = stage.job(job.job_id)
    stop = job.current_attempt.stop
    expect("the stop", stop and stop.kind, StopKind.HOST_LOST)
    expect("the state", (job.state, job.waiting and job.waiting.reason), (JobState.WAITING, WaitReason.LAUNCH))
    expect_launch_requested(stage, job.job_id)
    return f"{job.job_id} lost its machine, and its launch is requested again"


def retired(stage: Stage) -> Scene:
    """The same, with what AWS Health announced in the place of the spot market."""
    return (yield from warned(stage, r"retirement by AWS, to be left by [0-9: -]+ UTC,"))


def warned(stage: Stage, notice: str = "spot interruption warning") -> Scene:
    """ECS was told to stop the task, and takes no other one on the machine."""
    job = stage.take_running()
    machine = stage.machine_of(job)
    answer = yield {_INSTANCE: machine.instance_id or ""}
    expect_handled(answer)
    stored = stage.job(job.job_id)
    task = stage.task_of(job)
    node = stage.node_of(machine)
    expect("the state", stored.state, JobState.STOPPING)
    reason = str(task.get("stoppedReason"))
    is_told = re.fullmatch(f"Relaunch: {notice} for {machine.instance_id}", reason) is not None
    expect(f"the task, with {reason!r}", (task["desiredStatus"], is_told), ("STOPPED", True))
    expect("the node", node and node["status"], "DRAINING")
    expect_launch_requested(stage, job.job_id)
    return f"{job.job_id} is STOPPING, ECS stops its task, and {machine.machine_id} is drained"


def rebalanced(stage: Stage) -> Scene:
    """The elevated risk counts for the offering, and the task runs on."""
    job = stage.job(stage.running[0])
    before = _interruptions(stage)
    answer = yield {_INSTANCE: stage.machine_of(job).instance_id or ""}
    expect_handled(answer)
    expect("the interruptions that were counted", _interruptions(stage) - before, REBALANCE_WEIGHT)
    expect("the state", stage.job(job.job_id).state, JobState.RUNNING)
    expect("the task", stage.task_of(job)["desiredStatus"], "RUNNING")
    return f"{job.job_id} runs on, and the risk of {job.current_attempt.placement.offering} is counted"


def _interruptions(stage: Stage) -> float:
    _, runs, _ = stage.deps.capacity.load_capacity(stage.deps.clock.now())
    return sum(each.interruptions for each in runs)


def host_ended(stage: Stage, instance: str, state: MachineState) -> Scene:
    """The machine is not used any more, and its job waits for what ECS says of the task."""
    job = stage.take_running()
    machine = stage.machine_of(job)
    answer = yield {instance: machine.instance_id or ""}
    expect_handled(answer)
    job = stage.job(job.job_id)
    machine = stage.machine(machine.machine_id)
    expect("the machine", machine.state, state)
    expect("the end of the host is noted", job.current_attempt.host_ended_at is not None, expected=True)
    return f"{machine.machine_id} is {machine.state}: {machine.reason}"


def block_ends(_stage: Stage) -> Scene:
    """The Capacity Block has no machine of the stack."""
    answer = yield {}
    expect_handled(answer)
    return "no machine of the stack is in the Capacity Block"


def nobody_hears(_stage: Stage) -> Scene:
    """The local world has no receivers of notices."""
    answer = yield {}
    expect_handled(answer)
    return "nobody is to be sent a notice"


def reconciled(stage: Stage) -> Scene:
    """The launch of a job whose message was lost an hour ago is requested again."""
    job = stage.submit(ago=timedelta(hours=1))
    stage.receive("Attempts")
    answer = yield {}
    expect("that a due job was looked at", answer.get("looked_at", 0) > 0, expected=True)
    expect_launch_requested(stage, job.job_id)
    wake_at = stage.job(job.job_id).wake_at
    expect("the job is due later", wake_at is not None and wake_at > stage.deps.clock.now(), expected=True)
    return f"the launch of {job.job_id}, whose message was lost, is requested again"


def refreshed(stage: Stage) -> Scene:
    """What EC2 answers is saved; the local world has no Price List and no Service Quotas, whose parts are kept."""
    world = stage.world
    answer = yield {}
    expect("the answer", {part: words.partition(":")[0] for part, words in answer.items()}, _REFRESHED)
    snapshot = DynamoDbSnapshots(world.client("dynamodb"), world.deployment.outputs["TableName"]).load_snapshot()
    charged = {name: {zone: price_of(name, zone, Purchase.SPOT) for zone in ZONES} for name in INSTANCE_TYPES}
    expect("the saved spot prices", snapshot and snapshot.spot_usd_per_hour, charged)
    return f"the spot prices of {len(charged)} instance types are saved as EC2 has them"


_REFRESHED = {
    "instance types": "refreshed",
    "zones": "fresh",
    "on-demand prices": "kept",
    "disk price": "kept",
    "spot prices": "refreshed",
    "quotas": "kept",
    "placement scores": "refreshed",
}


_NOTHING_TO_MACHINE = "NodeSeen means nothing to a machine that is READY"
_NO_INSTANCES = '"reservation_id":"cr-0b10c0b10c0b10c00","instance_ids":[]'

CHANGES: Mapping[str, tuple[Outcome, ...]] = {
    "sqs.attempts.launch-request": (
        Outcome("machine asked for", machine_asked_for),
        Outcome("launched", launched),
    ),
    "sqs.machines.machine-request": (Outcome("machine launched", machine_launched),),
    "sqs.task-changes.machine-registered": (Outcome("machine ready", machine_registered),),
    "sqs.task-changes.machine-draining": (
        Outcome("ignored", machine_drained, changes_nothing=True, logged=_NOTHING_TO_MACHINE),
    ),
    "sqs.task-changes.container-instance": (Outcome("ignored", other_machine, changes_nothing=True),),
    "sqs.task-changes.running": (Outcome("saved", running),),
    # For ten seconds after the end of a program EC2 may tell that it ended the instance.
    "sqs.task-changes.stopped-exit-0": (Outcome("succeeded", succeeded, age=2 * NOTICE_LEAD),),
    "sqs.task-changes.stopped-spot": (Outcome("relaunched", relaunched),),
    "sqs.warnings.spot-interruption-warning": (Outcome("stopped", warned),),
    "sqs.warnings.instance-retirement": (Outcome("stopped", retired),),
    "sqs.warnings.rebalance-recommendation": (Outcome("counted", rebalanced),),
    "sqs.warnings.instance-state-change": (
        Outcome("machine ending", partial(host_ended, instance=_INSTANCE, state=MachineState.ENDING)),
    ),
    "sqs.warnings.instance-terminated": (
        Outcome("machine gone", partial(host_ended, instance=_MACHINE_INSTANCE, state=MachineState.GONE)),
    ),
    "sqs.warnings.capacity-block-expiration-warning": (
        Outcome("ignored", block_ends, changes_nothing=True, logged=_NO_INSTANCES),
    ),
    "sqs.notices.job-state-change": (Outcome("ignored", nobody_hears, changes_nothing=True, logged="no receivers"),),
    "schedule.reconcile": (Outcome("launch requested", reconciled),),
    "schedule.refresh-offerings": (Outcome("saved", refreshed),),
}
