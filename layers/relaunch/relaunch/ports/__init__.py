"""Ports of the use cases: protocols and their data, one file per service. Imports the core only."""

from relaunch.ports.checkpoints import CheckpointSource
from relaunch.ports.dependencies import (
    Dependencies,
    JobDependencies,
    LaunchDependencies,
    MaintenanceDependencies,
    OfferingDependencies,
    PlanDependencies,
    ReconcileDependencies,
    RefreshDependencies,
    SubmitDependencies,
)
from relaunch.ports.ec2 import InstanceTypeSource, RegionScoreSource, SpotPriceSource, ZoneScoreSource, ZoneSource
from relaunch.ports.errors import (
    NoActiveRevisionError,
    PermanentError,
    PortError,
    SlotsFullError,
    StaleWriteError,
    TransientError,
)
from relaunch.ports.images import ImageSource
from relaunch.ports.observability import Clock, DecisionLog, Metrics, NullMetrics
from relaunch.ports.offerings import CapacityProviderOffer, OfferingSource
from relaunch.ports.price_list import PriceListSource
from relaunch.ports.queues import DeadLetters, LaunchQueue
from relaunch.ports.quotas import QuotaSource
from relaunch.ports.stores import (
    CapacityStore,
    DefinitionStore,
    EventRecord,
    EventStore,
    JobHistory,
    JobStore,
    MaintenanceStore,
    RevisionMaintenance,
    SnapshotStore,
    StoredSelection,
)
from relaunch.ports.target import TaskTarget
from relaunch.ports.task_definitions import RevisionRegistry, RevisionSource

__all__ = [
    "CapacityProviderOffer",
    "CapacityStore",
    "CheckpointSource",
    "Clock",
    "DeadLetters",
    "DecisionLog",
    "DefinitionStore",
    "Dependencies",
    "EventRecord",
    "EventStore",
    "ImageSource",
    "InstanceTypeSource",
    "JobDependencies",
    "JobHistory",
    "JobStore",
    "LaunchDependencies",
    "LaunchQueue",
    "MaintenanceDependencies",
    "MaintenanceStore",
    "Metrics",
    "NoActiveRevisionError",
    "NullMetrics",
    "OfferingDependencies",
    "OfferingSource",
    "PermanentError",
    "PlanDependencies",
    "PortError",
    "PriceListSource",
    "QuotaSource",
    "ReconcileDependencies",
    "RefreshDependencies",
    "RegionScoreSource",
    "RevisionMaintenance",
    "RevisionRegistry",
    "RevisionSource",
    "SlotsFullError",
    "SnapshotStore",
    "SpotPriceSource",
    "StaleWriteError",
    "StoredSelection",
    "SubmitDependencies",
    "TaskTarget",
    "TransientError",
    "ZoneScoreSource",
    "ZoneSource",
]
