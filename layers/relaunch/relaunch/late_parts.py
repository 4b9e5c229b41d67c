"""What bootstrap makes of adapters: each is imported when it is first used, for short cold starts.

docs/decisions/0034 says why, and what is imported at once nevertheless.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from relaunch.late import load_late

if TYPE_CHECKING:
    from botocore.session import get_session as get_session

    from relaunch.adapters.acs_driver_list import load_acs_drivers as load_acs_drivers
    from relaunch.adapters.alibaba.cluster_access import ClusterReference as ClusterReference
    from relaunch.adapters.alibaba.cluster_access import KeylessAccess as KeylessAccess
    from relaunch.adapters.alibaba.oss_checkpoints import OssCheckpoints as OssCheckpoints
    from relaunch.adapters.alibaba.oss_checkpoints import endpoint_of as endpoint_of
    from relaunch.adapters.alibaba.ram_role import AUDIENCE as AUDIENCE
    from relaunch.adapters.alibaba.ram_role import AssumedRole as AssumedRole
    from relaunch.adapters.alibaba.ram_role import RamRole as RamRole
    from relaunch.adapters.alibaba.ram_role import RamSignIn as RamSignIn
    from relaunch.adapters.aws.certificates import SharedCertificates as SharedCertificates
    from relaunch.adapters.aws.checkpoint_buckets import S3Buckets as S3Buckets
    from relaunch.adapters.aws.checkpoints import S3Checkpoints as S3Checkpoints
    from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses as DynamoDbCommitStatuses
    from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots as DynamoDbSnapshots
    from relaunch.adapters.aws.dynamodb.table import JobsTable as JobsTable
    from relaunch.adapters.aws.ec2.fleet import Ec2Fleet as Ec2Fleet
    from relaunch.adapters.aws.ec2.hosts import Ec2Hosts as Ec2Hosts
    from relaunch.adapters.aws.ec2.instance_types import Ec2InstanceTypeOfferings as Ec2InstanceTypeOfferings
    from relaunch.adapters.aws.ec2.instance_types import Ec2InstanceTypes as Ec2InstanceTypes
    from relaunch.adapters.aws.ec2.placement_scores import Ec2RegionScores as Ec2RegionScores
    from relaunch.adapters.aws.ec2.placement_scores import Ec2ZoneScores as Ec2ZoneScores
    from relaunch.adapters.aws.ec2.reservations import Ec2Reservations as Ec2Reservations
    from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices as Ec2SpotPrices
    from relaunch.adapters.aws.ecr_images import EcrImages as EcrImages
    from relaunch.adapters.aws.ecs.derived_revisions import EcsRegistry as EcsRegistry
    from relaunch.adapters.aws.ecs.rate_limiter import RateLimiter as RateLimiter
    from relaunch.adapters.aws.ecs.revisions import EcsRevisions as EcsRevisions
    from relaunch.adapters.aws.ecs.target import EcsTarget as EcsTarget
    from relaunch.adapters.aws.eks_access import EksAccess as EksAccess
    from relaunch.adapters.aws.job_events import EventBridgeJobEvents as EventBridgeJobEvents
    from relaunch.adapters.aws.price_list import PriceList as PriceList
    from relaunch.adapters.aws.price_list import price_list_regions as price_list_regions
    from relaunch.adapters.aws.receiver_parameters import SsmReceivers as SsmReceivers
    from relaunch.adapters.aws.s3_compatible import StoreKeys as StoreKeys
    from relaunch.adapters.aws.s3_compatible import open_s3_compatible as open_s3_compatible
    from relaunch.adapters.aws.secret_text import SecretText as SecretText
    from relaunch.adapters.aws.service_quotas import Ec2Quotas as Ec2Quotas
    from relaunch.adapters.aws.sqs.dead_letters import SqsDeadLetters as SqsDeadLetters
    from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue as SqsLaunchQueue
    from relaunch.adapters.aws.sqs.machine_queue import SqsMachineQueue as SqsMachineQueue
    from relaunch.adapters.aws.web_identity import WebIdentity as WebIdentity
    from relaunch.adapters.checkpoint_stores import CheckpointStores as CheckpointStores
    from relaunch.adapters.github.commit_statuses import PARAMETER as PARAMETER
    from relaunch.adapters.github.commit_statuses import GithubCommitStatuses as GithubCommitStatuses
    from relaunch.adapters.github.commit_statuses import WithCommitStatuses as WithCommitStatuses
    from relaunch.adapters.github.rest_api import GithubRestApi as GithubRestApi
    from relaunch.adapters.input_patterns import Re2Patterns as Re2Patterns
    from relaunch.adapters.kubernetes.api.client import KubernetesClient as KubernetesClient
    from relaunch.adapters.kubernetes.api.connection import Connection as Connection
    from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess as ClusterAccess
    from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig as read_kubeconfig
    from relaunch.adapters.kubernetes.own_kubeconfig import read_own_kubeconfig as read_own_kubeconfig
    from relaunch.adapters.kubernetes.target import kubernetes_target as kubernetes_target
    from relaunch.adapters.market_thresholds import load_thresholds as load_thresholds
    from relaunch.adapters.messages.topic_messages import WatchedTopics as WatchedTopics
    from relaunch.adapters.notices.receivers import ReceiverMaker as ReceiverMaker
    from relaunch.adapters.notices.receivers import StoredReceivers as StoredReceivers
    from relaunch.adapters.offerings.bundled import load_catalogue as load_catalogue
    from relaunch.adapters.offerings.capacity_providers import CapacityProviderOfferings as CapacityProviderOfferings
    from relaunch.adapters.offerings.combined import CombinedOfferings as CombinedOfferings
    from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot as CurrentSnapshot
    from relaunch.adapters.offerings.regional import CurrentRegionalOfferings as CurrentRegionalOfferings
    from relaunch.adapters.offerings.regional import OwnMachines as OwnMachines
    from relaunch.adapters.offerings.reserved import ReservedOfferings as ReservedOfferings
    from relaunch.observability import EmfMetrics as EmfMetrics
    from relaunch.observability import PowertoolsLog as PowertoolsLog

NAMES: Mapping[str, tuple[str, ...]] = {
    "botocore.session": ("get_session",),
    "relaunch.adapters.acs_driver_list": ("load_acs_drivers",),
    "relaunch.adapters.alibaba.cluster_access": (
        "ClusterReference",
        "KeylessAccess",
    ),
    "relaunch.adapters.alibaba.oss_checkpoints": (
        "OssCheckpoints",
        "endpoint_of",
    ),
    "relaunch.adapters.alibaba.ram_role": (
        "AUDIENCE",
        "AssumedRole",
        "RamRole",
        "RamSignIn",
    ),
    "relaunch.adapters.aws.certificates": ("SharedCertificates",),
    "relaunch.adapters.aws.checkpoint_buckets": ("S3Buckets",),
    "relaunch.adapters.aws.checkpoints": ("S3Checkpoints",),
    "relaunch.adapters.aws.dynamodb.commit_statuses": ("DynamoDbCommitStatuses",),
    "relaunch.adapters.aws.dynamodb.snapshot_item": ("DynamoDbSnapshots",),
    "relaunch.adapters.aws.dynamodb.table": ("JobsTable",),
    "relaunch.adapters.aws.ec2.fleet": ("Ec2Fleet",),
    "relaunch.adapters.aws.ec2.hosts": ("Ec2Hosts",),
    "relaunch.adapters.aws.ec2.instance_types": (
        "Ec2InstanceTypeOfferings",
        "Ec2InstanceTypes",
    ),
    "relaunch.adapters.aws.ec2.placement_scores": (
        "Ec2RegionScores",
        "Ec2ZoneScores",
    ),
    "relaunch.adapters.aws.ec2.reservations": ("Ec2Reservations",),
    "relaunch.adapters.aws.ec2.spot_prices": ("Ec2SpotPrices",),
    "relaunch.adapters.aws.ecr_images": ("EcrImages",),
    "relaunch.adapters.aws.ecs.derived_revisions": ("EcsRegistry",),
    "relaunch.adapters.aws.ecs.rate_limiter": ("RateLimiter",),
    "relaunch.adapters.aws.ecs.revisions": ("EcsRevisions",),
    "relaunch.adapters.aws.ecs.target": ("EcsTarget",),
    "relaunch.adapters.aws.eks_access": ("EksAccess",),
    "relaunch.adapters.aws.job_events": ("EventBridgeJobEvents",),
    "relaunch.adapters.aws.price_list": (
        "PriceList",
        "price_list_regions",
    ),
    "relaunch.adapters.aws.receiver_parameters": ("SsmReceivers",),
    "relaunch.adapters.aws.s3_compatible": (
        "StoreKeys",
        "open_s3_compatible",
    ),
    "relaunch.adapters.aws.secret_text": ("SecretText",),
    "relaunch.adapters.aws.service_quotas": ("Ec2Quotas",),
    "relaunch.adapters.aws.sqs.dead_letters": ("SqsDeadLetters",),
    "relaunch.adapters.aws.sqs.launch_queue": ("SqsLaunchQueue",),
    "relaunch.adapters.aws.sqs.machine_queue": ("SqsMachineQueue",),
    "relaunch.adapters.aws.web_identity": ("WebIdentity",),
    "relaunch.adapters.checkpoint_stores": ("CheckpointStores",),
    "relaunch.adapters.github.commit_statuses": (
        "PARAMETER",
        "GithubCommitStatuses",
        "WithCommitStatuses",
    ),
    "relaunch.adapters.github.rest_api": ("GithubRestApi",),
    "relaunch.adapters.input_patterns": ("Re2Patterns",),
    "relaunch.adapters.kubernetes.api.client": ("KubernetesClient",),
    "relaunch.adapters.kubernetes.api.connection": ("Connection",),
    "relaunch.adapters.kubernetes.api.kubeconfig": (
        "ClusterAccess",
        "read_kubeconfig",
    ),
    "relaunch.adapters.kubernetes.own_kubeconfig": ("read_own_kubeconfig",),
    "relaunch.adapters.kubernetes.target": ("kubernetes_target",),
    "relaunch.adapters.market_thresholds": ("load_thresholds",),
    "relaunch.adapters.messages.topic_messages": ("WatchedTopics",),
    "relaunch.adapters.notices.receivers": (
        "ReceiverMaker",
        "StoredReceivers",
    ),
    "relaunch.adapters.offerings.bundled": ("load_catalogue",),
    "relaunch.adapters.offerings.capacity_providers": ("CapacityProviderOfferings",),
    "relaunch.adapters.offerings.combined": ("CombinedOfferings",),
    "relaunch.adapters.offerings.current_snapshot": ("CurrentSnapshot",),
    "relaunch.adapters.offerings.regional": (
        "CurrentRegionalOfferings",
        "OwnMachines",
    ),
    "relaunch.adapters.offerings.reserved": ("ReservedOfferings",),
    "relaunch.observability": (
        "EmfMetrics",
        "PowertoolsLog",
    ),
}
"""What is imported when it is first used, by module; the imports above say the same to the type checker."""

_JOBS = "relaunch.adapters.aws.dynamodb.jobs"
_EVENTS = "relaunch.adapters.aws.job_events"
_SUBMISSION = (
    _JOBS,
    _EVENTS,
    "relaunch.adapters.aws.dynamodb.definitions",
    "relaunch.adapters.aws.ecr_images",
    "relaunch.adapters.aws.sqs.launch_queue",
)
ALWAYS: Mapping[str, tuple[str, ...]] = {
    "submit_job": (*_SUBMISSION, "relaunch.adapters.aws.dynamodb.events"),
    "job_api": _SUBMISSION,
    "plan_api": ("relaunch.adapters.aws.dynamodb.definitions",),
    "launch_attempt": (
        _JOBS,
        _EVENTS,
        "relaunch.adapters.aws.dynamodb.capacity",
        "relaunch.adapters.aws.dynamodb.snapshot_item",
        "relaunch.adapters.aws.ec2.spot_prices",
        "relaunch.adapters.offerings.capacity_providers",
        "relaunch.adapters.offerings.regional",
    ),
    "request_machine": (_JOBS, "relaunch.adapters.aws.dynamodb.machines", "relaunch.adapters.aws.ec2.fleet"),
    "observe_capacity": (_JOBS, _EVENTS),
    "observe_task": (_JOBS, _EVENTS),
    "reconcile": (_JOBS, "relaunch.adapters.aws.dynamodb.machines"),
    "send_notices": (_JOBS, "relaunch.adapters.aws.dynamodb.notices", "relaunch.adapters.notices.receivers"),
}
"""What nearly every event of a function needs, whatever its target: imported before the first one.

Nothing of one target: what runs jobs on a cluster of Kubernetes alone works without the code for ECS.
"""

# Hidden from the type checker, which else would take any name for one of this module.
if not TYPE_CHECKING:
    __getattr__ = load_late(__name__, NAMES)


def import_always(function: str) -> None:
    """Import what a function nearly always needs."""
    for module in ALWAYS.get(function, ()):
        import_module(module)
