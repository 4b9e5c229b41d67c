"""What follows a saved decision about a job: stored with it until it is done, and done again if nobody knows."""

from datetime import datetime
from typing import Literal

from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.spot_runs import SpotRun
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class StopTask:
    """Stop a task; `reason` is for people."""

    task_id: str
    reason: str
    kind: Literal["stop-task"] = "stop-task"


@dataclass(frozen=True, slots=True)
class RequestLaunch:
    """Send the job's id to the attempts queue, delayed by 0 to 900 seconds."""

    delay_seconds: int = 0
    kind: Literal["request-launch"] = "request-launch"


@dataclass(frozen=True, slots=True)
class RememberCapacity:
    """Let all jobs avoid an offering until `until`: at `at` a launch by `capacity_provider` found no capacity.

    `gpu_count` is the number of whole GPUs that the launch needed. `is_taken`: it asked only the machines that are
    there, and what they have is taken, as without managed scaling. `machine_id` is the machine of our own that was of
    no use for tasks of the job's family, if that is what the offering stands for.
    """

    offering: OfferingKey
    reason: str
    at: datetime
    until: datetime
    capacity_provider: str = ""
    gpu_count: int = 0
    machine_id: str = ""
    is_taken: bool = False
    kind: Literal["remember-capacity"] = "remember-capacity"


@dataclass(frozen=True, slots=True)
class CountRun:
    """Count the start or the end of a run on spot for its offering (core.offerings.spot_runs)."""

    run: SpotRun
    kind: Literal["count-run"] = "count-run"


@dataclass(frozen=True, slots=True)
class AdmitWaiting:
    """Request the launch of the job that has waited longest for a slot of the definition, and of the stack.

    The other jobs of its concurrency group look at the group: they leave it for the new job, or are next.
    """

    kind: Literal["admit-waiting"] = "admit-waiting"


@dataclass(frozen=True, slots=True)
class LookForWarning:
    """Apply a spot interruption warning of the instance that arrived before its task was known."""

    instance_id: str
    kind: Literal["look-for-warning"] = "look-for-warning"


@dataclass(frozen=True, slots=True)
class RequestMachine:
    """Let EC2 be asked for a new machine of our own."""

    machine_id: str
    kind: Literal["request-machine"] = "request-machine"


@dataclass(frozen=True, slots=True)
class ReleaseMachine:
    """Release the claim on a machine of our own; `is_unusable`: the task could not start there, or EC2 takes it.

    `is_unused`: no task of the job was placed there. What such a machine cost is added to the job's cost with the save
    that this is done.
    """

    machine_id: str
    reason: str
    is_unusable: bool = False
    is_unused: bool = False
    kind: Literal["release-machine"] = "release-machine"


@dataclass(frozen=True, slots=True)
class AbandonMachine:
    """Let a machine of our own end although it has a task of the job, whose stop its host does not confirm."""

    machine_id: str
    reason: str
    kind: Literal["abandon-machine"] = "abandon-machine"


Effect = (
    StopTask
    | RequestLaunch
    | RememberCapacity
    | CountRun
    | AdmitWaiting
    | LookForWarning
    | RequestMachine
    | ReleaseMachine
    | AbandonMachine
)
"""What to do after a save; all may be repeated. `kind` is the discriminator in stored jobs."""
