"""The ports of a use case, together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.jobs.limits import StackLimits
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.ports.cluster import MaintenanceStore, RevisionRegistry, RevisionSource, TaskTarget
from relaunch.ports.jobs import DefinitionStore, JobStore
from relaunch.ports.market import (
    CapacityStore,
    InstanceTypeSource,
    OfferingSource,
    PriceListSource,
    QuotaSource,
    RegionScoreSource,
    SnapshotStore,
    SpotPriceSource,
    ZoneScoreSource,
    ZoneSource,
)
from relaunch.ports.observation import Clock, DecisionLog, Metrics, NullMetrics
from relaunch.ports.queues import LaunchQueue
from relaunch.ports.storage import CheckpointSource, ImageSource


@dataclass(frozen=True)
class Dependencies:
    """Every port a use case may need; made in bootstrap, or by a test from fakes.

    `zone_scores` is there where every type of a region is on offer, which is in the command alone.
    """

    jobs: JobStore
    definitions: DefinitionStore
    capacity: CapacityStore
    tasks: TaskTarget
    revisions: RevisionSource
    registry: RevisionRegistry
    maintenance: MaintenanceStore
    offerings: OfferingSource
    images: ImageSource
    checkpoints: CheckpointSource
    launches: LaunchQueue
    clock: Clock
    log: DecisionLog
    limits: StackLimits = field(default_factory=StackLimits)
    metrics: Metrics = field(default_factory=NullMetrics)
    zone_scores: ZoneScoreSource | None = None


@dataclass(frozen=True)
class RefreshDependencies:
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
    clock: Clock
    log: DecisionLog
    metrics: Metrics = field(default_factory=NullMetrics)
