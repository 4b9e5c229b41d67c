"""Dependencies of the use cases; each use case takes the narrowest dataclass that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from relaunch.core.records import dataclass
from relaunch.ports.notices import NoReceivers
from relaunch.ports.observability import NullMetrics

if TYPE_CHECKING:
    from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
    from relaunch.core.jobs.limits import StackLimits
    from relaunch.core.kubernetes.acs_drivers import AcsDrivers
    from relaunch.core.machines.settings import MachineSettings
    from relaunch.core.market.thresholds import Thresholds
    from relaunch.core.offerings.instance_types import InstanceType
    from relaunch.ports.checkpoints import BucketSource, CheckpointSource
    from relaunch.ports.ec2 import (
        HostSource,
        InstanceTypeSource,
        PriceListSource,
        QuotaSource,
        RegionScoreSource,
        SpotPriceSource,
        ZoneScoreSource,
        ZoneSource,
    )
    from relaunch.ports.images import ImageSource
    from relaunch.ports.job_events import JobEvents
    from relaunch.ports.machines import MachineQueue, MachineSource, MachineStore
    from relaunch.ports.notices import NoticeStore, ReceiverSource
    from relaunch.ports.observability import Clock, DecisionLog, Metrics
    from relaunch.ports.offerings import OfferingSource
    from relaunch.ports.patterns import InputPatterns
    from relaunch.ports.queues import LaunchQueue
    from relaunch.ports.stores import (
        BudgetStore,
        CapacityStore,
        DefinitionStore,
        EventStore,
        JobStore,
        MaintenanceStore,
        RateStore,
        SnapshotStore,
    )
    from relaunch.ports.targets import Targets
    from relaunch.ports.task_definitions import RevisionRegistry, RevisionSource


def _no_limits() -> StackLimits:
    # Imported here because what the command reads of jobs starts without.
    from relaunch.core.jobs.limits import StackLimits  # noqa: PLC0415

    return StackLimits()


@dataclass(frozen=True, kw_only=True)
class _Observed:
    clock: Clock
    log: DecisionLog
    metrics: Metrics = field(default_factory=NullMetrics)


@dataclass(frozen=True, kw_only=True)
class JobDependencies(_Observed):
    """Dependencies of advancing a job."""

    jobs: JobStore
    machines: MachineStore
    machine_queue: MachineQueue
    hosts: HostSource
    targets: Targets
    launches: LaunchQueue
    capacity: CapacityStore
    job_events: JobEvents
    limits: StackLimits = field(default_factory=_no_limits)


@dataclass(frozen=True, kw_only=True)
class FleetDependencies(JobDependencies):
    """Dependencies of calling EC2 for machines."""

    fleet: MachineSource
    machine_settings: MachineSettings


@dataclass(frozen=True, kw_only=True)
class ReconcileDependencies(FleetDependencies):
    """Dependencies of reconciling due jobs and machines."""

    images: ImageSource
    checkpoints: CheckpointSource
    rates: RateStore
    budgets: BudgetStore


@dataclass(frozen=True, kw_only=True)
class MaintenanceDependencies(_Observed):
    """Dependencies of cleaning derived revisions."""

    jobs: JobStore
    registry: RevisionRegistry
    maintenance: MaintenanceStore
    limits: StackLimits = field(default_factory=_no_limits)


@dataclass(frozen=True, kw_only=True)
class OfferingDependencies(_Observed):
    """Dependencies of loading offerings."""

    jobs: JobStore
    machines: MachineStore
    machine_settings: MachineSettings
    capacity: CapacityStore
    rates: RateStore
    offerings: OfferingSource
    limits: StackLimits = field(default_factory=_no_limits)


@dataclass(frozen=True, kw_only=True)
class LaunchDependencies(JobDependencies, OfferingDependencies, MaintenanceDependencies):
    """Dependencies of launching a job; `load_thresholds` returns those of the market policy."""

    checkpoints: CheckpointSource
    budgets: BudgetStore
    load_thresholds: Callable[[], Thresholds]


@dataclass(frozen=True, kw_only=True)
class SubmitDependencies(JobDependencies):
    """Dependencies of submitting jobs."""

    definitions: DefinitionStore
    events: EventStore
    revisions: RevisionSource
    images: ImageSource
    patterns: InputPatterns


@dataclass(frozen=True, kw_only=True)
class PlanDependencies(OfferingDependencies):
    """Dependencies of planning; `load_thresholds` returns those of the market policy.

    The command only sets `zone_scores`, because it plans for whole regions, `buckets` and `checkpoint_grants`, to check
    the buckets of checkpoints with the identity of its caller, and `acs_drivers`.
    """

    definitions: DefinitionStore
    revisions: RevisionSource
    images: ImageSource
    machine_settings: MachineSettings
    load_thresholds: Callable[[], Thresholds]
    zone_scores: ZoneScoreSource | None = None
    buckets: BucketSource | None = None
    checkpoint_grants: CheckpointGrants | None = None
    acs_drivers: AcsDrivers | None = None


@dataclass(frozen=True, kw_only=True)
class RequestDependencies(SubmitDependencies, PlanDependencies):
    """Dependencies of the requests of `job_api`."""


@dataclass(frozen=True, kw_only=True)
class NoticeDependencies(_Observed):
    """Dependencies of sending notices."""

    notice_records: NoticeStore
    receivers: ReceiverSource = field(default_factory=NoReceivers)


@dataclass(frozen=True, kw_only=True)
class Dependencies(ReconcileDependencies, LaunchDependencies, RequestDependencies, NoticeDependencies):
    """Dependencies of the functions and the command, except those of refreshing offerings."""


@dataclass(frozen=True, kw_only=True)
class RefreshDependencies(_Observed):
    """Dependencies of refreshing the offerings of a region.

    `catalogue` has the bundled instance types; `spot_types` are those of the spot capacity providers of the stack, and
    `machine_settings` say which others machines of our own may have.
    """

    region: str
    catalogue: Mapping[str, InstanceType]
    spot_types: frozenset[str]
    machine_settings: MachineSettings
    instance_types: InstanceTypeSource
    zones: ZoneSource
    price_list: PriceListSource
    spot_prices: SpotPriceSource
    region_scores: RegionScoreSource
    quotas: QuotaSource
    snapshots: SnapshotStore
