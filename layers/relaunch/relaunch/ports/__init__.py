"""Ports of the use cases: protocols and their data, one file per service. Imports the core only.

Unless a port says otherwise, its calls raise TransientError when they are throttled or do not reach the service.
"""

from relaunch.ports.checkpoints import BucketSource as BucketSource
from relaunch.ports.checkpoints import CheckpointSource as CheckpointSource
from relaunch.ports.dependencies import Dependencies as Dependencies
from relaunch.ports.dependencies import JobDependencies as JobDependencies
from relaunch.ports.dependencies import LaunchDependencies as LaunchDependencies
from relaunch.ports.dependencies import MaintenanceDependencies as MaintenanceDependencies
from relaunch.ports.dependencies import OfferingDependencies as OfferingDependencies
from relaunch.ports.dependencies import PlanDependencies as PlanDependencies
from relaunch.ports.dependencies import ReconcileDependencies as ReconcileDependencies
from relaunch.ports.dependencies import RefreshDependencies as RefreshDependencies
from relaunch.ports.dependencies import SubmitDependencies as SubmitDependencies
from relaunch.ports.ec2 import InstanceTypeSource as InstanceTypeSource
from relaunch.ports.ec2 import PriceListSource as PriceListSource
from relaunch.ports.ec2 import QuotaSource as QuotaSource
from relaunch.ports.ec2 import RegionScoreSource as RegionScoreSource
from relaunch.ports.ec2 import SpotPriceSource as SpotPriceSource
from relaunch.ports.ec2 import ZoneScoreSource as ZoneScoreSource
from relaunch.ports.ec2 import ZoneSource as ZoneSource
from relaunch.ports.errors import NoActiveRevisionError as NoActiveRevisionError
from relaunch.ports.errors import PermanentError as PermanentError
from relaunch.ports.errors import PortError as PortError
from relaunch.ports.errors import SlotsFullError as SlotsFullError
from relaunch.ports.errors import StaleWriteError as StaleWriteError
from relaunch.ports.errors import TransientError as TransientError
from relaunch.ports.errors import UnsupportedPatternError as UnsupportedPatternError
from relaunch.ports.images import ImageSource as ImageSource
from relaunch.ports.observability import Clock as Clock
from relaunch.ports.observability import DecisionLog as DecisionLog
from relaunch.ports.observability import Metrics as Metrics
from relaunch.ports.observability import NullMetrics as NullMetrics
from relaunch.ports.offerings import CapacityProviderOffer as CapacityProviderOffer
from relaunch.ports.offerings import OfferingSource as OfferingSource
from relaunch.ports.patterns import InputPatterns as InputPatterns
from relaunch.ports.queues import DeadLetters as DeadLetters
from relaunch.ports.queues import LaunchQueue as LaunchQueue
from relaunch.ports.stores import CapacityStore as CapacityStore
from relaunch.ports.stores import DefinitionStore as DefinitionStore
from relaunch.ports.stores import EventRecord as EventRecord
from relaunch.ports.stores import EventStore as EventStore
from relaunch.ports.stores import FoundRevision as FoundRevision
from relaunch.ports.stores import JobHistory as JobHistory
from relaunch.ports.stores import JobStore as JobStore
from relaunch.ports.stores import MaintenanceStore as MaintenanceStore
from relaunch.ports.stores import RevisionMaintenance as RevisionMaintenance
from relaunch.ports.stores import SnapshotStore as SnapshotStore
from relaunch.ports.stores import StoredSelection as StoredSelection
from relaunch.ports.target import TaskTarget as TaskTarget
from relaunch.ports.task_definitions import RevisionRegistry as RevisionRegistry
from relaunch.ports.task_definitions import RevisionSource as RevisionSource
from relaunch.ports.upload_rules import UploadRules as UploadRules
