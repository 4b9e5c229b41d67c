"""Ports of the use cases: protocols and their data, one file per service. Imports the core only.

Unless a port says otherwise, its calls raise TransientError when they are throttled or do not reach the service.

A port is imported when it is first used: whoever needs an error of ports does not import the protocols of all of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relaunch.ports.checkpoints import BucketSource as BucketSource
    from relaunch.ports.checkpoints import CheckpointSource as CheckpointSource
    from relaunch.ports.dependencies import Dependencies as Dependencies
    from relaunch.ports.dependencies import FleetDependencies as FleetDependencies
    from relaunch.ports.dependencies import JobDependencies as JobDependencies
    from relaunch.ports.dependencies import LaunchDependencies as LaunchDependencies
    from relaunch.ports.dependencies import MaintenanceDependencies as MaintenanceDependencies
    from relaunch.ports.dependencies import NoticeDependencies as NoticeDependencies
    from relaunch.ports.dependencies import OfferingDependencies as OfferingDependencies
    from relaunch.ports.dependencies import PlanDependencies as PlanDependencies
    from relaunch.ports.dependencies import ReconcileDependencies as ReconcileDependencies
    from relaunch.ports.dependencies import RefreshDependencies as RefreshDependencies
    from relaunch.ports.dependencies import RequestDependencies as RequestDependencies
    from relaunch.ports.dependencies import SubmitDependencies as SubmitDependencies
    from relaunch.ports.ec2 import HostSource as HostSource
    from relaunch.ports.ec2 import InstanceTypeSource as InstanceTypeSource
    from relaunch.ports.ec2 import PriceListSource as PriceListSource
    from relaunch.ports.ec2 import QuotaSource as QuotaSource
    from relaunch.ports.ec2 import RegionScoreSource as RegionScoreSource
    from relaunch.ports.ec2 import ReservationSource as ReservationSource
    from relaunch.ports.ec2 import SpotPriceSource as SpotPriceSource
    from relaunch.ports.ec2 import ZoneScoreSource as ZoneScoreSource
    from relaunch.ports.ec2 import ZoneSource as ZoneSource
    from relaunch.ports.errors import BudgetExceededError as BudgetExceededError
    from relaunch.ports.errors import MachineLimitError as MachineLimitError
    from relaunch.ports.errors import MachineTakenError as MachineTakenError
    from relaunch.ports.errors import NoActiveRevisionError as NoActiveRevisionError
    from relaunch.ports.errors import NotGrantedError as NotGrantedError
    from relaunch.ports.errors import NotYetError as NotYetError
    from relaunch.ports.errors import PermanentError as PermanentError
    from relaunch.ports.errors import PortError as PortError
    from relaunch.ports.errors import ReservationsUnreadableError as ReservationsUnreadableError
    from relaunch.ports.errors import SlotsFullError as SlotsFullError
    from relaunch.ports.errors import StaleWriteError as StaleWriteError
    from relaunch.ports.errors import StartsChangedError as StartsChangedError
    from relaunch.ports.errors import TransientError as TransientError
    from relaunch.ports.errors import UnsupportedPatternError as UnsupportedPatternError
    from relaunch.ports.images import ImageSource as ImageSource
    from relaunch.ports.job_events import JobEvents as JobEvents
    from relaunch.ports.job_events import NoJobEvents as NoJobEvents
    from relaunch.ports.job_events import Sent as Sent
    from relaunch.ports.machines import MachineQueue as MachineQueue
    from relaunch.ports.machines import MachineSource as MachineSource
    from relaunch.ports.machines import MachineStore as MachineStore
    from relaunch.ports.machines import Termination as Termination
    from relaunch.ports.observability import Clock as Clock
    from relaunch.ports.observability import DecisionLog as DecisionLog
    from relaunch.ports.observability import Metrics as Metrics
    from relaunch.ports.observability import NullMetrics as NullMetrics
    from relaunch.ports.observability import SilentLog as SilentLog
    from relaunch.ports.offerings import ANY_OPTION as ANY_OPTION
    from relaunch.ports.offerings import CapacityProviderOffer as CapacityProviderOffer
    from relaunch.ports.offerings import OfferingSource as OfferingSource
    from relaunch.ports.patterns import InputPatterns as InputPatterns
    from relaunch.ports.queues import DeadLetters as DeadLetters
    from relaunch.ports.queues import LaunchQueue as LaunchQueue
    from relaunch.ports.schedules import Schedules as Schedules
    from relaunch.ports.stores import BudgetStore as BudgetStore
    from relaunch.ports.stores import CapacityStore as CapacityStore
    from relaunch.ports.stores import DefinitionStore as DefinitionStore
    from relaunch.ports.stores import EventRecord as EventRecord
    from relaunch.ports.stores import EventStore as EventStore
    from relaunch.ports.stores import FoundRevision as FoundRevision
    from relaunch.ports.stores import JobHistory as JobHistory
    from relaunch.ports.stores import JobListing as JobListing
    from relaunch.ports.stores import JobStore as JobStore
    from relaunch.ports.stores import MaintenanceStore as MaintenanceStore
    from relaunch.ports.stores import RateStore as RateStore
    from relaunch.ports.stores import RevisionMaintenance as RevisionMaintenance
    from relaunch.ports.stores import SnapshotSource as SnapshotSource
    from relaunch.ports.stores import SnapshotStore as SnapshotStore
    from relaunch.ports.stores import StoredSelection as StoredSelection
    from relaunch.ports.target import TaskTarget as TaskTarget
    from relaunch.ports.targets import Targets as Targets
    from relaunch.ports.targets import UnknownTargetError as UnknownTargetError
    from relaunch.ports.task_definitions import RevisionRegistry as RevisionRegistry
    from relaunch.ports.task_definitions import RevisionSource as RevisionSource
    from relaunch.ports.upload_rules import UploadRules as UploadRules

_PLACES = {
    name: module
    for module, names in {
        "checkpoints": "BucketSource CheckpointSource",
        "dependencies": (
            "Dependencies FleetDependencies JobDependencies LaunchDependencies MaintenanceDependencies "
            "NoticeDependencies OfferingDependencies PlanDependencies ReconcileDependencies "
            "RefreshDependencies RequestDependencies SubmitDependencies"
        ),
        "ec2": (
            "HostSource InstanceTypeSource PriceListSource QuotaSource RegionScoreSource ReservationSource "
            "SpotPriceSource ZoneScoreSource ZoneSource"
        ),
        "errors": (
            "BudgetExceededError MachineLimitError MachineTakenError NoActiveRevisionError NotGrantedError NotYetError "
            "PermanentError PortError ReservationsUnreadableError SlotsFullError StaleWriteError "
            "StartsChangedError TransientError UnsupportedPatternError"
        ),
        "images": "ImageSource",
        "job_events": "JobEvents NoJobEvents Sent",
        "machines": "MachineQueue MachineSource MachineStore Termination",
        "observability": "Clock DecisionLog Metrics NullMetrics SilentLog",
        "offerings": "ANY_OPTION CapacityProviderOffer OfferingSource",
        "patterns": "InputPatterns",
        "queues": "DeadLetters LaunchQueue",
        "schedules": "Schedules",
        "stores": (
            "BudgetStore CapacityStore DefinitionStore EventRecord EventStore FoundRevision JobHistory JobListing "
            "JobStore MaintenanceStore RateStore RevisionMaintenance SnapshotSource SnapshotStore StoredSelection"
        ),
        "target": "TaskTarget",
        "targets": "Targets UnknownTargetError",
        "task_definitions": "RevisionRegistry RevisionSource",
        "upload_rules": "UploadRules",
    }.items()
    for name in names.split()
}


# Hidden from the type checker, which else would take any name for one of this module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Import a port."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        globals()[name] = found
        return found
