"""What use cases depend on: each reads no more than the dataclass that its signature names."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.jobs.limits import StackLimits
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.ports.checkpoints import CheckpointSource
from relaunch.ports.ec2 import InstanceTypeSource, RegionScoreSource, SpotPriceSource, ZoneScoreSource, ZoneSource
from relaunch.ports.images import ImageSource
from relaunch.ports.observability import Clock, DecisionLog, Metrics, NullMetrics
from relaunch.ports.offerings import OfferingSource
from relaunch.ports.price_list import PriceListSource
from relaunch.ports.queues import LaunchQueue
from relaunch.ports.quotas import QuotaSource
from relaunch.ports.stores import CapacityStore, DefinitionStore, EventStore, JobStore, MaintenanceStore, SnapshotStore
from relaunch.ports.target import TaskTarget
from relaunch.ports.task_definitions import RevisionRegistry, RevisionSource


@dataclass(frozen=True, kw_only=True)
class _Observed:
    clock: Clock
    log: DecisionLog
    metrics: Metrics = field(default_factory=NullMetrics)


@dataclass(frozen=True, kw_only=True)
class JobDependencies(_Observed):
    """What carrying an event into a job needs: its state, and where its effects go."""

    jobs: JobStore
    tasks: TaskTarget
    launches: LaunchQueue
    capacity: CapacityStore
    limits: StackLimits = field(default_factory=StackLimits)


@dataclass(frozen=True, kw_only=True)
class ReconcileDependencies(JobDependencies):
    """What looking at due jobs needs."""

    images: ImageSource


@dataclass(frozen=True, kw_only=True)
class MaintenanceDependencies(_Observed):
    """What cleaning derived revisions needs."""

    jobs: JobStore
    registry: RevisionRegistry
    maintenance: MaintenanceStore


@dataclass(frozen=True, kw_only=True)
class OfferingDependencies(_Observed):
    """What a selection depends on besides the job."""

    jobs: JobStore
    capacity: CapacityStore
    offerings: OfferingSource
    limits: StackLimits = field(default_factory=StackLimits)


@dataclass(frozen=True, kw_only=True)
class LaunchDependencies(JobDependencies, OfferingDependencies, MaintenanceDependencies):
    """What launching a job needs."""

    checkpoints: CheckpointSource


@dataclass(frozen=True, kw_only=True)
class SubmitDependencies(JobDependencies):
    """What accepting a job needs."""

    definitions: DefinitionStore
    events: EventStore
    revisions: RevisionSource
    images: ImageSource


@dataclass(frozen=True, kw_only=True)
class PlanDependencies(OfferingDependencies):
    """What planning needs; `zone_scores` is there where every type of a region is on offer: in the command alone."""

    definitions: DefinitionStore
    revisions: RevisionSource
    images: ImageSource
    zone_scores: ZoneScoreSource | None = None


@dataclass(frozen=True, kw_only=True)
class Dependencies(ReconcileDependencies, LaunchDependencies, SubmitDependencies, PlanDependencies):
    """Everything that the functions and the command need; made in bootstrap, or by a test from fakes."""


@dataclass(frozen=True, kw_only=True)
class RefreshDependencies(_Observed):
    """What refreshing the offerings of a region needs.

    `catalogue` has the instance types that are bundled; `spot_types` are those of the stack's spot capacity providers.
    """

    region: str
    catalogue: Mapping[str, InstanceType]
    spot_types: frozenset[str]
    instance_types: InstanceTypeSource
    zones: ZoneSource
    price_list: PriceListSource
    spot_prices: SpotPriceSource
    region_scores: RegionScoreSource
    quotas: QuotaSource
    snapshots: SnapshotStore
