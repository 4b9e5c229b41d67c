"""What the use cases need of the world."""

from relaunch.ports.cluster import MaintenanceStore, RevisionMaintenance, RevisionRegistry, RevisionSource, TaskTarget
from relaunch.ports.dependencies import Dependencies, RefreshDependencies
from relaunch.ports.errors import (
    NoActiveRevisionError,
    PermanentError,
    SlotsFullError,
    StaleWriteError,
    TransientError,
)
from relaunch.ports.jobs import DefinitionStore, EventRecord, JobHistory, JobStore, JobWrite, StoredSelection
from relaunch.ports.market import (
    CapacityProviderOffer,
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
from relaunch.ports.queues import DeadLetters, LaunchQueue
from relaunch.ports.storage import CheckpointSource, ImageSource

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
    "ImageSource",
    "InstanceTypeSource",
    "JobHistory",
    "JobStore",
    "JobWrite",
    "LaunchQueue",
    "MaintenanceStore",
    "Metrics",
    "NoActiveRevisionError",
    "NullMetrics",
    "OfferingSource",
    "PermanentError",
    "PriceListSource",
    "QuotaSource",
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
    "TaskTarget",
    "TransientError",
    "ZoneScoreSource",
    "ZoneSource",
]
