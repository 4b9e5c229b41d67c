"""What the use cases need of the world."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from relaunch.core.accelerator import PurchaseOption
from relaunch.core.caps import StackLimits
from relaunch.core.catalogue import InstanceType
from relaunch.core.dead_letter import DeadLetter, DeadLetterQueue
from relaunch.core.definition import JobDefinition, TriggerSource
from relaunch.core.derived_revision import TaskDefinition
from relaunch.core.gpu_devices import GpuDevice
from relaunch.core.job import Attempt, Job, JobSummary, TimelineEntry
from relaunch.core.launch import (
    ContainerInstance,
    ContainerInstanceObservation,
    LaunchOutcome,
    LaunchRequest,
    TaskObservation,
)
from relaunch.core.measures import Measure
from relaunch.core.neuron_claim import MachineRoom
from relaunch.core.offering import CapacityFailure, CapacityMemory, Offering
from relaunch.core.revision import Revision
from relaunch.core.selection import Selection
from relaunch.core.snapshot import OfferingsSnapshot, PriceOrigin


class TransientError(Exception):
    """The outside world failed for now: leave the message in its queue."""


class PermanentError(Exception):
    """Trying again cannot help: the message goes to the dead-letter queue with this reason."""


class StaleWriteError(TransientError):
    """The item has another version than the one that was read: load and decide again."""


class SlotsFullError(Exception):
    """A cap on running jobs is reached; `cap` says which (`definition` or `stack`), `limit` its size."""

    def __init__(self, cap: str, limit: int) -> None:
        super().__init__(f"{limit} jobs of the {cap} are running already")
        self.cap = cap
        self.limit = limit


class NoActiveRevisionError(PermanentError):
    """The task definition family has no ACTIVE revision."""


@dataclass(frozen=True, slots=True)
class StoredSelection:
    """The selection table of one placement try as it was stored: `rows` are JSON-ready mappings."""

    attempt_number: int
    try_number: int
    selected_at: datetime
    rows: tuple[Mapping[str, object], ...]
    filter_counts: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class JobHistory:
    """Everything stored about one job, oldest first."""

    job: Job
    attempts: tuple[Attempt, ...]
    timeline: tuple[TimelineEntry, ...]
    selections: tuple[StoredSelection, ...]


@dataclass(frozen=True, slots=True)
class JobWrite:
    """One atomic write of a job: the job with its current attempt, new timeline entries, and what goes with them.

    `take_slot_limits` (definition's cap, stack's cap): take a slot in both or raise SlotsFullError.
    `release_slot`: give both back. `link_instance`: remember that the current attempt runs on `attempt.instance_id`.
    """

    job: Job
    timeline: tuple[TimelineEntry, ...] = ()
    selection: Selection | None = None
    selected_at: datetime | None = None
    take_slot_limits: tuple[int, int] | None = None
    release_slot: bool = False
    link_instance: bool = False


@dataclass(frozen=True, slots=True)
class EventRecord:
    """What became of one delivered event: the jobs it started, or in `outcome` the words why it started none.

    `source` says where it came from (`github push`, `s3`…), `at` when it was handled. One event delivered twice leaves
    two records.
    """

    identity: str
    source: str
    outcome: str
    job_ids: tuple[str, ...]
    at: datetime


class JobStore(Protocol):
    """The jobs table. All reads are strongly consistent but those of indexes (load_due, load_waiting, list_jobs).

    An open job must have a `wake_at`; a job that is over is due as long as effects are pending.
    """

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry]) -> bool:
        """Create the job (stored with version 1); return False when its id is taken: the event came twice."""
        ...

    def load_job(self, job_id: str) -> Job | None:
        """Load a job with its current attempt in one read."""
        ...

    def save_job(self, write: JobWrite) -> Job:
        """Save on the condition that the stored version is `write.job.version`; return the job with its new version.

        Raises:
            StaleWriteError: somebody else saved the job since it was loaded.
            SlotsFullError: a slot was asked for and there is none; nothing was written.
        """
        ...

    def load_history(self, job_id: str) -> JobHistory | None:
        """Load everything about a job."""
        ...

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Return ids of open jobs whose `wake_at` is not after `now`, most overdue first."""
        ...

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        """Return ids of jobs that wait for this slot (`Waiting.slot`: a definition's, or `*`), oldest first."""
        ...

    def load_waiting_for_image(self, repository: str, tag: str) -> list[str]:
        """Return ids of jobs that wait (or waited) for this image."""
        ...

    def load_slot_holders(self) -> list[str]:
        """Return ids of the jobs that count against the stack's cap: all that may have a machine, with one read."""
        ...

    def load_on_instance(self, instance_id: str) -> list[str]:
        """Return ids of jobs whose attempt was linked to this EC2 instance."""
        ...

    def list_jobs(self, limit: int, cursor: str | None = None) -> tuple[list[JobSummary], str | None]:
        """Return jobs, newest first, and the cursor of the next page.

        Raises:
            PermanentError: the cursor is none of ours.
        """
        ...

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        """Keep for eight days what became of an event, so that people can find out why it started nothing."""
        ...

    def list_events(self, now: datetime, limit: int) -> list[EventRecord]:
        """Return what became of the events of the last eight days, newest first."""
        ...


class DefinitionStore(Protocol):
    """Registered job definitions."""

    def save_definition(self, definition: JobDefinition) -> None:
        """Register or replace a definition with its trigger entries, atomically."""
        ...

    def load_definition(self, name: str) -> JobDefinition | None:
        """Load a definition by name."""
        ...

    def list_definitions(self) -> list[JobDefinition]:
        """Return all definitions by name."""
        ...

    def delete_definition(self, name: str) -> bool:
        """Remove a definition and its trigger entries; False when there is none."""
        ...

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        """Return the definitions with a trigger on this origin, with one query."""
        ...


class CapacityStore(Protocol):
    """The capacity memory, shared by all jobs."""

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        """Return what failed lately and has not expired, with one read."""
        ...

    def remember(self, failure: CapacityFailure) -> None:
        """Remember a failure on top of what is remembered of its offering (core.capacity_memory)."""
        ...


class TaskTarget(Protocol):
    """Where tasks run: an ECS cluster."""

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        """Send RunTask; every answer is an outcome, none is an exception.

        Raises:
            PermanentError: the request breaks a documented limit; it was not sent.
        """
        ...

    def stop(self, task_arn: str, reason: str) -> None:
        """Ask ECS to stop a task; a task that is gone or stopping already is fine.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def describe(self, task_arns: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        """Describe tasks by hundreds; None: ECS does not know the task (any more)."""
        ...

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        """Yield the cluster's tasks that are to run, whoever started them, in pages of at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def list_machines(self) -> Iterator[Sequence[ContainerInstanceObservation]]:
        """Yield the cluster's container instances in pages of at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_started_by(self, started_by: str) -> list[TaskObservation]:
        """Return all tasks, running and recently stopped, with this startedBy."""
        ...

    def find_on_instance(self, instance_id: str) -> list[TaskObservation]:
        """Return the tasks on the container instance of this EC2 instance."""
        ...

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        """Return the GPUs that can be shared, of the provider's ACTIVE machines of this type, at most a hundred.

        Machines whose ECS agent knows nothing of sharing have none.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_room(self, instance_type: str, capacity_provider: str) -> list[MachineRoom]:
        """Return what is left of the provider's ACTIVE machines of this type, at most a hundred.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...

    def find_container_instance(self, container_instance_arn: str) -> ContainerInstance | None:
        """Return a container instance, None when it is gone."""
        ...


class RevisionSource(Protocol):
    """ECS task definitions."""

    def newest_active(self, family: str) -> Revision:
        """Return the newest ACTIVE revision of exactly this family.

        Raises:
            NoActiveRevisionError: there is none.
            TransientError: throttled or unreachable.
        """
        ...


class RevisionRegistry(Protocol):
    """Where derived revisions are registered, found and deregistered: ECS."""

    def load_definition(self, revision_arn: str) -> TaskDefinition:
        """Return what a revision was registered with, tags included; INACTIVE revisions too.

        Raises:
            PermanentError: ECS does not know the revision.
            TransientError: throttled or unreachable.
        """
        ...

    def find_active(self, family: str) -> str | None:
        """Return the ARN of the newest ACTIVE revision of a derived family, None when there is none.

        Revisions without the tag DERIVED_FROM are somebody else's, and are not found.
        """
        ...

    def register(self, definition: TaskDefinition) -> str:
        """Register a derived revision and return its ARN.

        Raises:
            PermanentError: ECS refuses the definition.
            TransientError: throttled (20 at once, 1 per second) or unreachable.
        """
        ...

    def list_families(self) -> list[str]:
        """Return the families of derived revisions that have an ACTIVE one."""
        ...

    def deregister_family(self, family: str) -> int:
        """Deregister every ACTIVE revision of a derived family and return their number; running tasks go on.

        Revisions without the tag DERIVED_FROM are left alone.

        Raises:
            TransientError: throttled or unreachable; what was deregistered stays so.
        """
        ...


@dataclass(frozen=True, slots=True)
class RevisionUpkeep:
    """What is remembered between two looks at the derived revisions.

    `unused_since` maps families to when no open job was first seen to use them; `version` is the item's own.
    """

    next_at: datetime
    unused_since: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0


class UpkeepStore(Protocol):
    """What must outlive a function and belongs to no job."""

    def take_turn(self, name: str) -> int:
        """Return the next number of a count that begins with 0: nobody gets the same one twice.

        A call whose answer was lost may skip a number.
        """
        ...

    def load_upkeep(self) -> RevisionUpkeep | None:
        """Load what the last look at the derived revisions left."""
        ...

    def save_upkeep(self, upkeep: RevisionUpkeep) -> bool:
        """Save it on the condition that the stored version is `upkeep.version`; False when somebody else was first."""
        ...


class SpotPriceSource(Protocol):
    """Current spot prices."""

    def spot_prices(self, instance_types: Iterable[str]) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        """Return (type, zone) → (USD per hour, since when), for Linux.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


@dataclass(frozen=True, slots=True)
class CapacityProviderOffer:
    """A capacity provider of the stack's settings: `name=instance-type/purchase`.

    `is_managed`: ECS Managed Instances are behind it (`/managed-instances`), not an Auto Scaling group.
    """

    name: str
    instance_type: str
    purchase: PurchaseOption
    is_managed: bool = False


class OfferingSource(Protocol):
    """What can be launched at all."""

    def offerings(self, now: datetime) -> tuple[Offering, ...]:
        """Return every offering with its present price; falls back to reference prices when prices cannot be had."""
        ...

    def catalogue(self) -> Mapping[str, InstanceType]:
        """Return the instance types known, by name."""
        ...

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        """Return where the prices are from that `offerings` gives at this time, and of when."""
        ...


class SnapshotStore(Protocol):
    """Where the refreshed offerings of the stack's region are kept."""

    def load_snapshot(self) -> OfferingsSnapshot | None:
        """Load the last one; None before the first refresh.

        Raises:
            PermanentError: it cannot be read.
            TransientError: throttled or unreachable.
        """
        ...

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        """Keep it in place of the last one.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class InstanceTypeSource(Protocol):
    """What EC2 says of instance types."""

    def instance_types(self) -> Mapping[str, InstanceType]:
        """Return the region's types with accelerators; one that cannot be read is left out.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class ZoneSource(Protocol):
    """Where EC2 offers instance types."""

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the region's zones by type, of those of the types that it offers.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class PlacementScoreSource(Protocol):
    """EC2's odds that spot machines can be had."""

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        """Return zone → odds, 1 (hardly) to 10 (very likely), that one of these types can be launched there on spot.

        What is not known is not there: no error is raised.
        """
        ...


class QuotaSource(Protocol):
    """The account's quotas."""

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:
        """Return code → vCPU that may run at once; what is not known is not there: no error is raised."""
        ...


class UnknownMarket:
    """Implements PlacementScoreSource and QuotaSource where nobody can be asked: nothing is known."""

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:  # noqa: ARG002 - the port's
        return {}

    def vcpu_quotas(self, codes: Iterable[str]) -> Mapping[str, float]:  # noqa: ARG002 - the port's
        return {}


class PriceListSource(Protocol):
    """List prices of the region, in USD, for Linux."""

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        """Return prices per hour by type, of those of the types that have one.

        Raises:
            PermanentError: the prices are in another currency, or the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...

    def gp3_price(self) -> float:
        """Return the price of a gp3 volume per GiB and month.

        Raises:
            PermanentError: there is none in USD, or the caller may not ask.
            TransientError: throttled or unreachable.
        """
        ...


class ImageSource(Protocol):
    """Container images (ECR)."""

    def has_image(self, repository: str, tag: str) -> bool:
        """Tell whether the repository of the account's own registry has an image of this tag."""
        ...

    def digest(self, repository: str, tag: str, account: str | None = None) -> str | None:
        """Return the digest (`sha256:…`) of the image of this tag, None when there is none.

        `account` names another account's registry.

        Raises:
            PermanentError: the registry may not be read.
            TransientError: throttled or unreachable.
        """
        ...


class CheckpointSource(Protocol):
    """Checkpoints in S3."""

    def newest_complete(self, checkpoint_uri: str, job_id: str) -> str | None:
        """Return the URI of the job's newest complete checkpoint, None when there is none."""
        ...


class LaunchQueue(Protocol):
    """The attempts queue."""

    def request_launch(self, job_id: str, delay_seconds: int = 0) -> None:
        """Ask launch_attempt to look at a job, after at most 900 seconds."""
        ...


class DeadLetters(Protocol):
    """The dead-letter queues of a stack. Their calls raise TransientError when throttled or unreachable."""

    def queues(self) -> Sequence[DeadLetterQueue]:
        """Return the queues, by name."""
        ...

    def count(self, queue: DeadLetterQueue) -> int:
        """Return about how many messages there are, those that somebody looks at included."""
        ...

    def receive(self, queue: DeadLetterQueue) -> list[DeadLetter]:
        """Receive some messages, which nobody else sees for a minute or until they are put back; none: no more."""
        ...

    def put_back(self, letters: Collection[DeadLetter]) -> None:
        """Let others see these messages again."""
        ...

    def redrive(self, letter: DeadLetter) -> None:
        """Send a message to its source queue, then delete it here: at least once.

        Raises:
            PermanentError: it belongs to no queue.
        """
        ...

    def drop(self, letter: DeadLetter) -> None:
        """Delete a message; one that is gone is fine."""
        ...


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Return the present time, aware, in UTC."""
        ...


class DecisionLog(Protocol):
    """One structured line per decision."""

    def decided(self, decision: str, **facts: object) -> None:
        """Write a line; `job_id`, `attempt_number`, `reason`… are facts."""
        ...


class Measures(Protocol):
    """Counts and times, for CloudWatch."""

    def record(self, *measures: Measure) -> None:
        """Record values of metrics; nothing fails because of it."""
        ...


class Unmeasured:
    """Implements Measures where nobody reads them: in the command, and in tests."""

    def record(self, *measures: Measure) -> None:
        """Record nothing."""


@dataclass(frozen=True)
class World:
    """Every port a use case may need; made in bootstrap, or by a test from fakes."""

    jobs: JobStore
    definitions: DefinitionStore
    capacity: CapacityStore
    tasks: TaskTarget
    revisions: RevisionSource
    registry: RevisionRegistry
    upkeep: UpkeepStore
    offerings: OfferingSource
    images: ImageSource
    checkpoints: CheckpointSource
    launches: LaunchQueue
    clock: Clock
    log: DecisionLog
    limits: StackLimits = field(default_factory=StackLimits)
    measures: Measures = field(default_factory=Unmeasured)
    placement_scores: PlacementScoreSource = field(default_factory=UnknownMarket)
    quotas: QuotaSource = field(default_factory=UnknownMarket)


@dataclass(frozen=True)
class RefreshWorld:
    """What refreshing the offerings of a region needs; `catalogue` has the instance types that are bundled."""

    region: str
    catalogue: Mapping[str, InstanceType]
    instance_types: InstanceTypeSource
    zones: ZoneSource
    price_list: PriceListSource
    spot_prices: SpotPriceSource
    snapshots: SnapshotStore
    clock: Clock
    log: DecisionLog
    measures: Measures = field(default_factory=Unmeasured)
