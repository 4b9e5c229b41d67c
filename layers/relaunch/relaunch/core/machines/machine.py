"""A machine of our own, as stored in the jobs table: an EC2 instance from its request until it is gone.

Its resources are what it offers to tasks, and what a task takes of it.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.reservations import Reservation
from relaunch.core.records import dataclass

# Shares of a GPU are sums of fractions.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Resources:
    """CPU units (1,024 per vCPU), memory in MiB, GPUs (a fraction for a share of one) and Neuron devices."""

    cpu_units: int = 0
    memory_mib: int = 0
    gpus: float = 0.0
    neuron_devices: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        """Return the sum."""
        return Resources(
            self.cpu_units + other.cpu_units,
            self.memory_mib + other.memory_mib,
            self.gpus + other.gpus,
            self.neuron_devices + other.neuron_devices,
        )

    def less(self, other: "Resources") -> "Resources":
        """Return the difference, of which no part is negative."""
        return Resources(
            max(self.cpu_units - other.cpu_units, 0),
            max(self.memory_mib - other.memory_mib, 0),
            max(self.gpus - other.gpus, 0.0),
            max(self.neuron_devices - other.neuron_devices, 0),
        )

    def holds(self, other: "Resources") -> bool:
        """Return whether there is room for the other resources."""
        return (
            other.cpu_units <= self.cpu_units
            and other.memory_mib <= self.memory_mib
            and other.gpus <= self.gpus + _TOLERANCE
            and other.neuron_devices <= self.neuron_devices
        )

    @staticmethod
    def least(several: Iterable["Resources"]) -> "Resources":
        """Return the least of each resource.

        Raises:
            ValueError: there are none.
        """
        return _of_each(min, several)

    @staticmethod
    def most(several: Iterable["Resources"]) -> "Resources":
        """Return the most of each resource.

        Raises:
            ValueError: there are none.
        """
        return _of_each(max, several)


def _of_each(choose: Callable[[Iterable[Any]], Any], several: Iterable[Resources]) -> Resources:
    known = tuple(several)
    return Resources(
        choose(each.cpu_units for each in known),
        choose(each.memory_mib for each in known),
        choose(each.gpus for each in known),
        choose(each.neuron_devices for each in known),
    )


NOTHING = Resources()


class MachineState(StrEnum):
    """The state of a machine; GONE is final."""

    REQUESTED = "REQUESTED"  # saved; EC2 may or may not have been asked, and may or may not have launched it
    STARTING = "STARTING"  # EC2 launched the instance; it has not registered with all its accelerators
    READY = "READY"  # registered with all its accelerators, its agent connected: tasks can be placed on it
    ENDING = "ENDING"  # its termination was requested, or EC2 ends it; it still counts
    GONE = "GONE"  # EC2 confirmed that there is no instance

    @property
    def is_usable(self) -> bool:
        """Return whether a job can still claim it."""
        return self in (MachineState.REQUESTED, MachineState.STARTING, MachineState.READY)


class Consequence(StrEnum):
    """What a job whose request was refused does; it is never ended for that."""

    NEXT = "next"  # select again at once: what was refused is avoided now
    AGAIN = "again"  # select again after some seconds: EC2 takes fewer requests per second
    PAUSE = "pause"  # select again after a back-off: every request would be refused


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a job on a machine: while there is one, Relaunch does not end the machine.

    A job has at most one claim on a machine; `attempt_number` is the attempt that is to run there.
    """

    job_id: str
    attempt_number: int
    resources: Resources
    since: datetime


@dataclass(frozen=True, slots=True)
class Holding:
    """Which part of a machine each job pays from `since` on, until the next holding (core.machines.charges)."""

    since: datetime
    shares: Mapping[str, float] = field(hash=False)


@dataclass(frozen=True, slots=True)
class FleetOverride:
    """One instance type in one zone that CreateFleet may launch; EC2 takes each pair only once in a request.

    `usd_per_hour` is the price as far as known, else the upper limit. `capacity` is what the ECS agent registers.
    """

    offering: OfferingKey
    subnet_id: str
    usd_per_hour: float
    capacity: Resources
    priority: int = 0


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """The parameters of CreateFleet (type instant) or RunInstances, which are never changed once they are saved.

    `launch_template_version` is a number: a stack update does not change the default version. `tags` are those of the
    instance and its volumes; they contain the ID of the machine, to find it after an unknown outcome.
    `reservation` is what the instance is to be launched into, as it was then; None for spot and on-demand.
    `size` is the number of instances, all or none (core.machines.groups), and `place` which of them the machine is.
    """

    client_token: str
    purchase: PurchaseOption
    launch_template_id: str
    launch_template_version: str
    overrides: tuple[FleetOverride, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    reservation: Reservation | None = None
    size: int = 1
    place: int = 0

    @property
    def reservation_id(self) -> str:
        """Return the ID of the reservation, empty without one."""
        return self.reservation.reservation_id if self.reservation else ""

    @property
    def usd_per_hour(self) -> float:
        """Return the price of the most expensive override, which counts until EC2 has chosen one."""
        return max(each.usd_per_hour for each in self.overrides)

    def override_of(self, offering: OfferingKey) -> FleetOverride | None:
        """Return the override of an offering, None if the request does not have it."""
        return next((each for each in self.overrides if each.offering == offering), None)


@dataclass(frozen=True, slots=True)
class AskFleet:
    """Call CreateFleet, or RunInstances, after a delay of 0 to 900 seconds."""

    delay_seconds: int = 0
    kind: Literal["ask-fleet"] = "ask-fleet"


@dataclass(frozen=True, slots=True)
class TellJobs:
    """Request the launch of these jobs, which wait for the machine: it is ready, or will not be."""

    job_ids: tuple[str, ...]
    kind: Literal["tell-jobs"] = "tell-jobs"


@dataclass(frozen=True, slots=True)
class AdmitJobs:
    """Request the launch of the jobs that have waited longest for a place in the counters of machines."""

    kind: Literal["admit-jobs"] = "admit-jobs"


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    """Call TerminateInstances."""

    instance_id: str
    kind: Literal["terminate-instance"] = "terminate-instance"


@dataclass(frozen=True, slots=True)
class DeregisterNode:
    """Deregister the container instance of a machine that is gone.

    ECS keeps the registration of an instance that was stopped or disconnected before its end
    ("DeregisterContainerInstance", Amazon ECS API Reference).
    """

    node: str
    kind: Literal["deregister-node"] = "deregister-node"


@dataclass(frozen=True, slots=True)
class ChargeJobs:
    """Charge the machine, which is gone, to the jobs that it was there for (core.machines.charges)."""

    kind: Literal["charge-jobs"] = "charge-jobs"


@dataclass(frozen=True, slots=True)
class RememberFailures:
    """Let all jobs avoid the offerings of these failures (core.offerings.capacity_memory)."""

    failures: tuple[CapacityFailure, ...]
    kind: Literal["remember-failures"] = "remember-failures"


@dataclass(frozen=True, slots=True)
class RememberLaunch:
    """Let the record of a spot pool say that EC2 had capacity there (core.offerings.spot_runs)."""

    offering: OfferingKey
    at: datetime
    kind: Literal["remember-launch"] = "remember-launch"


@dataclass(frozen=True, slots=True)
class ForgetUnready:
    """Forget the machines of these offerings and images that did not become ready: this one did."""

    offerings: tuple[OfferingKey, ...]
    at: datetime
    kind: Literal["forget-unready"] = "forget-unready"


Ec2Effect = AskFleet | TerminateInstance | DeregisterNode | ChargeJobs
"""Effects that need the permissions of the consumer of the `machines` queue."""
MachineEffect = Ec2Effect | TellJobs | AdmitJobs | RememberFailures | RememberLaunch | ForgetUnready
"""What to do after a save; all may be repeated. `kind` is the discriminator in stored machines."""


@dataclass(frozen=True, slots=True)
class MachineTimelineEntry:
    """One entry of the timeline of a machine."""

    at: datetime
    state: MachineState
    event: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine of our own: one request to EC2 Fleet, and the instance that came of it.

    `offering` is the one that EC2 chose. `usd_per_hour` counts against the cap of the stack: until EC2 has chosen, the
    price of the most expensive override. `node` is the name of the machine in the cluster (the ARN of its container
    instance). `warned_at` is when EC2 announced its interruption, `left_until` until when
    EC2 is left to end the instance, which it does not bill then. `idle_since` is when its last claim was released.
    `asked_at` is when EC2 was last asked for it, `uncertain_since` since when it is unknown whether it had an effect.
    `unseen_since` is when EC2 first did not know the instance, `ended_at` when EC2 said that it shuts down, and
    `end_reason` its StateReason then: EC2 describes an instance that is gone for an hour only.
    `is_unusable`: a task could not start on it. `lacks_reason`: it ended before it was ready, and EC2 has not said why.
    `leave_by` is when it is ended although jobs claim it, because it does not confirm the stop of a task or its agent
    stays away. `away_since` is since when its agent has not been connected at any look, or event of ECS;
    `is_away_with_most`: at the last look most of the cluster were away with it, and `with_most_until` is when that
    was over. `refusal` is what a job does whose request EC2 refused; `is_alert`: somebody has to do something about it.
    `family` is the task definition family of the tasks that it was requested for. `boot` is what the machine reports of
    its boot, as it registered it (core.lifecycle.start_stages); empty for nothing.
    `told_at` is when the last alert said that EC2 does not end the instance.
    `holdings` are who pays it, None of one that an earlier release requested; `paid_since` is when EC2 launched it,
    `beside_usd_per_hour` what its volume and its address cost, `on_demand` the known on-demand prices of the types.
    `timeline` has the latest entries. `version` is the version of the item, on which every write is conditional;
    `wake_at` is set until the machine is gone.
    """

    machine_id: str
    request: FleetRequest
    created_at: datetime
    state: MachineState = MachineState.REQUESTED
    state_since: datetime | None = None
    wake_at: datetime | None = None
    claims: tuple[Claim, ...] = ()
    offering: OfferingKey | None = None
    usd_per_hour: float = 0.0
    instance_id: str | None = None
    launched_at: datetime | None = None
    node: str | None = None
    registered_at: datetime | None = None
    warned_at: datetime | None = None
    left_until: datetime | None = None
    idle_since: datetime | None = None
    unseen_since: datetime | None = None
    ended_at: datetime | None = None
    end_reason: str = ""
    asked_at: datetime | None = None
    uncertain_since: datetime | None = None
    is_unusable: bool = False
    lacks_reason: bool = False
    refusal: Consequence | None = None
    is_alert: bool = False
    reason: str = ""
    timeline: tuple[MachineTimelineEntry, ...] = ()
    pending: tuple[MachineEffect, ...] = ()
    leave_by: datetime | None = None
    away_since: datetime | None = None
    is_away_with_most: bool = False
    with_most_until: datetime | None = None
    family: str = ""
    told_at: datetime | None = None
    boot: str = ""
    holdings: tuple[Holding, ...] | None = None
    paid_since: datetime | None = None
    beside_usd_per_hour: float = 0.0
    on_demand: Mapping[str, float] = field(default_factory=dict, hash=False)
    version: int = 0

    @property
    def is_left(self) -> bool:
        """Return whether its jobs leave it: EC2 takes it away, or it is ended as its host does not answer."""
        return self.warned_at is not None or self.leave_by is not None

    def accepts(self, resources: Resources) -> bool:
        """Return whether a job that needs these resources may claim it: none of several that are requested."""
        is_good = self.state.is_usable and (self.request.size == 1 or self.state is not MachineState.REQUESTED)
        return is_good and self.warned_at is None and not self.is_unusable and self.free.holds(resources)

    @property
    def capacity(self) -> Resources:
        """Return what the machine offers to tasks; until EC2 has chosen, the least that it may offer."""
        chosen = self.request.override_of(self.offering) if self.offering else None
        if chosen is not None:
            return chosen.capacity
        return Resources.least(each.capacity for each in self.request.overrides)

    @property
    def free(self) -> Resources:
        """Return what no claim takes."""
        return self.capacity.less(sum((each.resources for each in self.claims), NOTHING))

    def claim_of(self, job_id: str) -> Claim | None:
        """Return the claim of a job, None if it has none."""
        return next((each for each in self.claims if each.job_id == job_id), None)


def machine_id_of(job_id: str, attempt_number: int, request_number: int) -> str:
    """Return the ID of the machine of a job's request: always the same one, so that a repeated decision finds it."""
    return f"m-{hashlib.sha256(f'{job_id}/{attempt_number}/{request_number}'.encode()).hexdigest()[:24]}"


def client_token_of(machine_id: str) -> str:
    """Return the client token of the request of a machine; EC2 takes up to 64 ASCII characters."""
    return f"relaunch-{machine_id}"


def describe_machine(machine: Machine) -> str:
    """Return what a job waits for that claims the machine; the same for the same state of affairs."""
    if machine.state is MachineState.REQUESTED:
        asked = "EC2 is asked for" if machine.asked_at is None else "asked EC2 for"
        again = f"; {machine.reason}" if machine.reason else ""
        return f"{asked} {describe_request(machine)}{again}"
    place = f"{machine.instance_id} ({machine.offering})"
    if machine.state is MachineState.STARTING:
        return f"{place} is starting" + (f": {machine.reason}" if machine.reason else "")
    if machine.state is MachineState.READY:
        return f"{place} is ready" + (f": {machine.reason}" if machine.reason else "")
    return machine.reason or f"{place} is {machine.state.lower()}"


def describe_request(machine: Machine) -> str:
    """Return what was requested: `g6.xlarge, g5.xlarge on spot in 3 zones`."""
    names = dict.fromkeys(each.offering.instance_type for each in machine.request.overrides)
    zones = sorted({each.offering.zone or "" for each in machine.request.overrides})
    where = zones[0] if len(zones) == 1 else f"{len(zones)} zones"
    within = f" from {machine.request.reservation}" if machine.request.reservation else ""
    number = f"{machine.request.size} times " if machine.request.size > 1 else ""
    return f"{number}{', '.join(names)} on {machine.request.purchase} in {where}{within}"
