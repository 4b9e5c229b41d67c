"""The event of a change of a job, as receivers get it (docs/events.md); docs/events.schema.json is written from it.

It is made of the change, and of what a job never changes: sent again it is the same, byte for byte.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import ChangedPart, JobChange, cut
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import CostBasis, JobState, WaitReason
from relaunch.core.launches.launch_plan import job_checkpoint_uri
from relaunch.core.offerings.offering import has_purchase_options
from relaunch.core.records import dataclass

DETAIL_TYPE = "Job State Change"
SCHEMA_VERSION = 1
"""Raised when a field changes its meaning or goes; new fields and new members of enumerations do not raise it."""

_MAX_TEXT = 500
# Of all variables together: an entry of PutEvents has 256 KB at most, and a character up to six bytes.
_MAX_VARIABLES = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTrigger:
    """What started the job."""

    source: str
    """`github`, `s3`, `image`, `eventbridge`, `schedule`, `sns` or `direct`."""
    identity: str
    """What identifies it: the same for a delivery that comes again."""
    summary: str
    """In words."""
    variables: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What the training gets of it (`RELAUNCH_GIT_SHA`, `RELAUNCH_OBJECT_URI` …); long values are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMachine:
    """The machine of the attempt, as far as it is known."""

    instance_type: str | None = None
    purchase: str | None = None
    """`spot`, `on-demand` or `reserved`."""
    zone: str | None = None
    instance_id: str | None = None
    node: str | None = None
    """The name of the node in the target."""
    capacity_provider: str | None = None
    machine_id: str | None = None
    """That of a machine of Relaunch's own (`relaunch machines`)."""

    @property
    def kind(self) -> tuple[str, ...]:
        """Return the instance type, and the purchase option where a job chooses one, as far as they are known."""
        purchase = self.purchase if has_purchase_options(self.instance_type or "") else None
        return tuple(each for each in (self.instance_type, purchase) if each)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventProgress:
    """How far the training was."""

    step: int
    """The step of the checkpoint from which the current attempt resumed; 0 from the beginning."""
    total_steps: int | None = None
    """`total_steps` of the definition, or else of the training."""
    saved_step: int | None = None
    """The step of the newest checkpoint at the last look, minutes ago."""
    saved_at: datetime | None = None
    loss: float | None = None
    """The loss in it."""
    steps_per_second: float | None = None
    """How fast the training was at the last look, by its newest steps."""
    finishes_at: datetime | None = None
    """When the training will be done, as far as that can be said."""
    stalled_since: datetime | None = None
    """Since when it runs and saves nothing newer, for longer than that should take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCost:
    """What the job has cost until then."""

    usd: float
    basis: CostBasis
    """`price`; `limit`: in part an upper limit; `unknown`: in part nothing, as there is no price."""
    instance_usd_per_hour: float | None = None
    """What the instances of its own machines cost it per hour, each by its part; absent while it has none."""
    volume_and_address_usd_per_hour: float | None = None
    """What their volumes and public addresses cost it per hour; absent while it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStateChange:
    """The `detail` of an event: one change of one job. A member without a value is absent."""

    schema_version: int = SCHEMA_VERSION
    id: str
    """`<job_id>:<sequence>`: the same whenever the event is sent again."""
    sequence: int
    """1, 2, 3 … for each job, without gaps: a receiver ignores what is not greater than what it has seen."""
    job_id: str
    definition: str
    target: str
    """`ecs`, `kubernetes`, `ack` or `acs`."""
    trigger: EventTrigger
    changed: tuple[ChangedPart, ...]
    """Which of these is not as it was in the event before.

    `warning`: the machine will be taken away. `progress`: the training saves nothing newer, or does again.
    """
    state: JobState
    state_before: JobState | None = None
    """Absent of a job that was created."""
    waiting_for: WaitReason | None = None
    """What a WAITING job waits for."""
    reason: str
    """In words, cut to 1,000 characters."""
    attempt: int | None = None
    """The number of the attempt; absent before the first."""
    machine: EventMachine | None = None
    progress: EventProgress | None = None
    work_at_risk_seconds: float | None = None
    """How long the task has run since its newest checkpoint at the last look, or its start; absent if none runs."""
    cost: EventCost
    checkpoints: str | None = None
    """The URI below which the job leaves its checkpoints and results; absent if its definition has none."""
    notices: Mapping[str, tuple[NoticeKind, ...]] | None = field(default=None, hash=False)
    """The receivers that the definition names for notices, with the kinds that it names for each."""
    time: datetime


def event_of(job: Job, change: JobChange) -> JobStateChange:
    """Return the event of a change of a job."""
    definition = job.definition
    return JobStateChange(
        id=f"{job.job_id}:{change.sequence}",
        sequence=change.sequence,
        job_id=job.job_id,
        definition=definition.name,
        target=definition.target.value,
        trigger=EventTrigger(
            source=job.trigger.source,
            identity=cut(job.trigger.identity, _MAX_TEXT),
            summary=cut(job.trigger.summary, _MAX_TEXT),
            variables=_short_variables(job.trigger.environment),
        ),
        changed=change.changed,
        state=change.state,
        state_before=change.state_before,
        waiting_for=change.waiting_for,
        reason=change.reason,
        attempt=change.attempt,
        machine=_machine(change),
        progress=_progress(job, change),
        work_at_risk_seconds=change.at_risk_seconds,
        cost=EventCost(
            usd=change.cost_usd,
            basis=change.cost_basis,
            instance_usd_per_hour=change.instance_usd_per_hour,
            volume_and_address_usd_per_hour=change.beside_usd_per_hour,
        ),
        notices={each.receiver: each.kinds for each in definition.notices} or None,
        checkpoints=job_checkpoint_uri(job) if definition.checkpoint_uri is not None else None,
        time=change.at,
    )


def _progress(job: Job, change: JobChange) -> EventProgress | None:
    if change.noted is None:
        total = job.definition.total_steps
        return None if change.step is None else EventProgress(step=change.step, total_steps=total)
    noted = change.noted.in_state(change.state)
    return EventProgress(
        step=change.step or 0,
        total_steps=noted.total_steps,
        saved_step=noted.step,
        saved_at=noted.at,
        loss=noted.loss,
        steps_per_second=noted.steps_per_second,
        finishes_at=noted.finishes_at,
        stalled_since=noted.stalled_since,
    )


def _machine(change: JobChange) -> EventMachine | None:
    machine = change.machine
    if machine is None:
        return None
    return EventMachine(
        instance_type=machine.instance_type or None,
        purchase=machine.purchase or None,
        zone=machine.zone or None,
        instance_id=machine.instance_id or None,
        node=machine.node or None,
        capacity_provider=machine.capacity_provider or None,
        machine_id=machine.machine_id or None,
    )


def _short_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables, the shortest first, as many as there is room for: a part of a URI would be a wrong one."""
    found: dict[str, str] = {}
    room = _MAX_VARIABLES
    for name, value in sorted(environment.items(), key=lambda each: (len(each[0]) + len(each[1]), each[0])):
        room -= len(name) + len(value)
        if room < 0:
            break
        found[name] = value
    return dict(sorted(found.items()))
