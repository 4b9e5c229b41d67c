"""The state of a job, what it waits for, what its cost rests on, and its summary; lists of jobs import no more."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from relaunch.core.offerings.offering_key import OfferingKey
from relaunch.core.records import dataclass


class JobState(StrEnum):
    """The state of a job; the last four are final."""

    WAITING = "WAITING"
    LAUNCHING = "LAUNCHING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_final(self) -> bool:
        """Return whether the state is final."""
        return self in FINAL_STATES


FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT})


class WaitReason(StrEnum):
    """What a WAITING job waits for."""

    LAUNCH = "launch"  # its message is in the attempts queue
    IMAGE = "image"
    SLOT = "slot"  # max_running_jobs of its definition, or of the stack
    CAPACITY = "capacity"  # every offering that satisfies it failed recently
    PRICE = "price"  # every offering that satisfies it is too expensive
    BACKOFF = "backoff"  # a delay after a failure of the program
    CHECKPOINT = "checkpoint"  # its checkpoints cannot be read
    REFUSED = "refused"  # what somebody has to grant or mend: a permission, a credential, a role, a cluster
    MARKET = "market"  # spot, which its market policy rather waits for than pay for on-demand
    MACHINE = "machine"  # the machine of our own that it claims
    MACHINE_LIMIT = "machine-limit"  # the limits of the stack on machines of its own
    BUDGET = "budget"  # a budget has no room for an hour of what was selected


REFUSED_WAITS = frozenset({WaitReason.CHECKPOINT, WaitReason.REFUSED})
"""The waits for what somebody has to grant or mend."""
QUEUES = frozenset({WaitReason.SLOT, WaitReason.MACHINE_LIMIT})
"""The waits behind others of the stack."""
HELD_BACK_BY = frozenset({WaitReason.IMAGE, WaitReason.BUDGET, *QUEUES, *REFUSED_WAITS})
"""What a job waits for though there may be capacity for it."""


class RefusedCall(StrEnum):
    """A call without which a job cannot be launched."""

    LAUNCH = "launch"  # RunTask, RegisterTaskDefinition, or the creation of a Job of Kubernetes
    MACHINE = "machine"  # CreateFleet
    CHECKPOINT = "checkpoint"  # the reading of its checkpoints
    USEFUL_MACHINE = "useful-machine"  # none: machines are launched, and its task can be placed on none of them
    START = "start"  # what the start of its task calls: the image, its secrets and its logs
    POD = "pod"  # the creation of its pod by the Job that Kubernetes has taken


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call is refused `since` then, and was `at` last.

    The time does not count in which the job waited behind others; `queued_seconds` is that of the job until `at`.
    """

    since: datetime
    at: datetime
    queued_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a job waits for.

    `slot` is set if the reason is SLOT: the name of the definition, or STACK_SLOT.
    """

    reason: WaitReason
    since: datetime
    detail: str
    until: datetime | None = None
    slot: str = ""


class CostBasis(StrEnum):
    """What a price or a cost rests on."""

    PRICE = "price"
    LIMIT = "limit"  # at least in part on an upper limit: EC2 answered no spot price, so the on-demand price
    UNKNOWN = "unknown"  # at least in part on nothing: there is no price

    def plus(self, other: "CostBasis") -> "CostBasis":
        """Return the basis of a sum: the worse of both."""
        order = tuple(CostBasis)
        return max(self, other, key=order.index)


@dataclass(frozen=True, slots=True)
class RunningTask:
    """Since when a task runs, at which price, and what that rests on.

    `machine_id` is the machine of our own that it runs on and that is charged to the job, empty for none; `others` are
    those of the other ranks of several, with spaces between them.
    """

    since: datetime
    usd_per_hour: float
    basis: CostBasis = CostBasis.PRICE
    machine_id: str = ""
    others: str = ""


@dataclass(frozen=True, slots=True)
class OpenCharge:
    """What a machine of our own, which is not gone yet, has cost a job by `at`, and costs it per hour until `until`.

    `until` is when the job left it, None while it has it. `usage_usd_per_hour` is without its volume and its address.
    How the price and the share of the job change later is known once the machine is gone.
    """

    machine_id: str
    at: datetime
    usd: float
    on_demand_usd: float
    usd_per_hour: float
    on_demand_usd_per_hour: float
    usage_usd_per_hour: float
    until: datetime | None = None

    def hours(self, now: datetime) -> float:
        """Return for how many hours it has cost since `at`."""
        return max((min(now, self.until or now) - self.at).total_seconds(), 0.0) / 3600


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a job has reserved of its budgets since it was accepted, in USD by their scopes (core.jobs.budgets).

    `month` is that of the last reservation, as `2026-11`; empty if there is none.
    """

    usd: Mapping[str, float] = field(default_factory=dict, hash=False)
    month: str = ""


@dataclass(frozen=True, slots=True)
class MachineCost:
    """What machines of our own cost a job: all of it, the part without training, and all of it on demand; in USD."""

    usd: float
    idle_usd: float
    on_demand_usd: float

    @property
    def saving(self) -> float | None:
        """Return the saving against on-demand as a fraction of it; None where it is not known."""
        return 1 - self.usd / self.on_demand_usd if self.on_demand_usd else None


@dataclass(frozen=True, slots=True)
class NotedProgress:
    """How far a training was when its newest checkpoint was last looked for, kept with the job for lists of jobs."""

    step: int
    at: datetime
    """When that step was saved first."""
    attempt: int
    """The one that saved it."""
    total_steps: int | None = None
    loss: float | None = None
    finishes_at: datetime | None = None
    """When it will be done, at the rate of then; None if that was not known, or nothing ran."""
    interval_seconds: float = 0.0
    """The usual time between two of its checkpoints; 0 if that is not known."""
    save_seconds: float = 0.0
    """How long its newest save stopped the training; 0 if it does not say so."""
    stalled_since: datetime | None = None
    """Since when nothing newer was saved, for longer than that should take; None if it was."""
    gaps_seconds: tuple[float, ...] = ()
    """The latest times between two of its checkpoints, oldest first; empty if noted by an earlier version."""
    steps_per_second: float | None = None
    """How fast it was then, by its newest steps; None if that was not known, or noted by an earlier version."""

    def in_state(self, state: JobState) -> "NotedProgress":
        """Return what holds in a state of the job: what does not run is done at no time, and does not hang."""
        return self if state is JobState.RUNNING else replace(self, finishes_at=None, stalled_since=None)


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What `relaunch ps` shows of a job; `run_seconds` and `cost_usd` are without the running task.

    `useless_machines_usd` is what machines cost that were requested for it and never ran a task, of those that an
    earlier release requested. `machine_id` is the machine of our own that it waits for, or that its next task is to run
    on. `running` is None of a job without a running task, and of one that was stored before it was kept. `started_by`
    is `trigger` in a few words.
    `machines_usd` is what machines of our own cost it that are gone, `machines_on_demand_usd` that on demand,
    `open_charges` are those that are not; `own_tasks_usd` is the part of `cost_usd` that these contain, `trained_usd`
    the part of them while its tasks ran. `noted` is how far its training was at the last look.
    """

    job_id: str
    definition: str
    state: JobState
    accepted_at: datetime
    reason: str = ""
    waiting: Waiting | None = None
    attempt_number: int = 0
    offering: OfferingKey | None = None
    interruptions: int = 0
    failures: int = 0
    run_seconds: float = 0.0
    cost_usd: float = 0.0
    trigger: str = ""
    ended_at: datetime | None = None
    cost_basis: CostBasis = CostBasis.PRICE
    machine_id: str = ""
    running: RunningTask | None = None
    state_since: datetime | None = None
    started_by: str = ""
    useless_machines_usd: float = 0.0
    machines_usd: float = 0.0
    machines_on_demand_usd: float = 0.0
    own_tasks_usd: float = 0.0
    trained_usd: float = 0.0
    open_charges: tuple[OpenCharge, ...] = ()
    noted: NotedProgress | None = None

    def cost_so_far(self, now: datetime) -> tuple[float, CostBasis]:
        """Return what the job has cost in USD, and what that rests on.

        That is its machines of our own, from launch to end, and the running time of its tasks elsewhere. A task whose
        program has ended costs more until its end is counted, which a summary does not say.
        """
        elsewhere_usd = self.cost_usd - self.own_tasks_usd + self.useless_machines_usd
        usd = max(elsewhere_usd, 0.0) + self.machine_cost(now).usd
        if self.running is None:
            return usd, self.cost_basis
        if self.running.machine_id:
            return usd, self.cost_basis.plus(self.running.basis)
        return usd + self._running_hours(now) * self.running.usd_per_hour, self.cost_basis.plus(self.running.basis)

    def machine_cost(self, now: datetime) -> MachineCost:
        """Return what machines of our own have cost the job until now."""
        opened = [(each, each.hours(now)) for each in self.open_charges]
        usd = self.machines_usd + sum(each.usd + hours * each.usd_per_hour for each, hours in opened)
        on_demand = sum(each.on_demand_usd + hours * each.on_demand_usd_per_hour for each, hours in opened)
        trained = self.trained_usd
        if self.running is not None and self.running.machine_id:
            machines = (self.running.machine_id, *self.running.others.split())
            of_its = (each for each in self.open_charges if each.machine_id in machines)
            trained += self._running_hours(now) * sum(each.usage_usd_per_hour for each in of_its)
        return MachineCost(usd, max(usd - trained, 0.0), self.machines_on_demand_usd + on_demand)

    def _running_hours(self, now: datetime) -> float:
        # ECS's clock may be ahead.
        since = self.running.since if self.running is not None else now
        return max((now - since).total_seconds(), 0.0) / 3600
