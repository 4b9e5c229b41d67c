"""What the use cases need of the world."""

from relaunch.ports.cluster import RevisionRegistry, RevisionSource, RevisionUpkeep, TaskTarget, UpkeepStore
from relaunch.ports.dependencies import RefreshWorld, World
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
from relaunch.ports.observation import Clock, DecisionLog, Measures, Unmeasured
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
    "EventRecord",
    "ImageSource",
    "InstanceTypeSource",
    "JobHistory",
    "JobStore",
    "JobWrite",
    "LaunchQueue",
    "Measures",
    "NoActiveRevisionError",
    "OfferingSource",
    "PermanentError",
    "PriceListSource",
    "QuotaSource",
    "RefreshWorld",
    "RegionScoreSource",
    "RevisionRegistry",
    "RevisionSource",
    "RevisionUpkeep",
    "SlotsFullError",
    "SnapshotStore",
    "SpotPriceSource",
    "StaleWriteError",
    "StoredSelection",
    "TaskTarget",
    "TransientError",
    "Unmeasured",
    "UpkeepStore",
    "World",
    "ZoneScoreSource",
    "ZoneSource",
]
