"""Creates the clients and dependencies of the functions and the command from settings."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, assert_never, cast

import boto3
from botocore.config import Config

from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.client_config import CLIENT_CONFIG, EVENTS_CONFIG, SINGLE_SEND_CONFIG, TABLE_CONFIG
from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.adapters.aws.ec2.hosts import Ec2Hosts
from relaunch.adapters.aws.ec2.reservations import Ec2Reservations
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices
from relaunch.adapters.aws.ecr_images import EcrImages
from relaunch.adapters.aws.job_events import EventBridgeJobEvents
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.dead_letters import SqsDeadLetters
from relaunch.adapters.aws.sqs.launch_queue import SqsLaunchQueue
from relaunch.adapters.aws.sqs.machine_queue import SqsMachineQueue
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.adapters.checkpoint_stores import CheckpointStores
from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.adapters.offerings.capacity_providers import CapacityProviderOfferings
from relaunch.adapters.offerings.combined import CombinedOfferings
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.adapters.offerings.regional import CurrentRegionalOfferings, OwnMachines
from relaunch.adapters.offerings.reserved import ReservedOfferings
from relaunch.core.definitions.targets import Target
from relaunch.core.messages.dead_letter import DeadLetterQueue, find_queues
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.notice_parts import notice_parts
from relaunch.ports import (
    CheckpointSource,
    Clock,
    DeadLetters,
    DecisionLog,
    Dependencies,
    OfferingSource,
    RefreshDependencies,
    ReservationSource,
    RevisionRegistry,
    RevisionSource,
    SilentLog,
    SpotPriceSource,
    Targets,
    TaskTarget,
)
from relaunch.settings import Settings
from relaunch.topic_parts import topic_queue

if TYPE_CHECKING:
    from relaunch.observability import EmfMetrics

Handler = TypeVar("Handler", bound=Callable[..., Any])


class SystemClock:
    """Implements Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class LazyClient:
    """Creates a client or an adapter when it is first used, which saves cold start time (65 ms for EC2's client)."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._client = cache(make)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the client."""
        return getattr(self._client(), name)


@cache
def emf_metrics() -> "EmfMetrics":
    """Return the metrics of the functions, created once per execution environment."""
    # Imported here because the command is installed without powertools.
    from relaunch.observability import EmfMetrics  # noqa: PLC0415

    return EmfMetrics()


def with_metrics(handle: Handler) -> Handler:
    """Flush the metrics after each invocation of a handler, also if it fails.

    They are created when a handler is decorated: powertools is imported in Lambda's init phase, which has more CPU.
    """
    metrics = emf_metrics()

    @wraps(handle)
    def run(*args: Any) -> Any:
        try:
            return handle(*args)
        finally:
            metrics.flush()

    return cast("Handler", run)


@cache
def function() -> FunctionDependencies:
    """Return the dependencies of this function, created once per execution environment."""
    from relaunch.observability import PowertoolsLog  # noqa: PLC0415 - as in emf_metrics

    settings = Settings.from_environment(os.environ)
    log = PowertoolsLog()
    clients = _Clients(boto3.Session())
    dead_letters = DeadLetterSender(
        clients.lazy("sqs"), settings.dead_letter_queue_url, log, settings.max_receive_count
    )
    counted = [DeadLetterQueue(url.rpartition("/")[2], url) for url in settings.watched_queue_urls]
    made = _make_dependencies(settings, clients, log)
    deps = replace(made, metrics=emf_metrics(), **notice_parts(os.environ, clients.lazy, made.clock, log))
    source = SourceQueue(clients.lazy("sqs"))
    topics = topic_queue(os.environ, clients.lazy, log, settings.max_receive_count)
    return FunctionDependencies(deps, source, dead_letters, SqsDeadLetters(clients.lazy("sqs"), counted), topics)


@cache
def refresh_dependencies() -> RefreshDependencies:
    """Return the dependencies of refreshing offerings, created once per execution environment."""
    # Imported here because other functions do not need them.
    from relaunch.adapters.aws.ec2.instance_types import Ec2InstanceTypeOfferings, Ec2InstanceTypes  # noqa: PLC0415
    from relaunch.adapters.aws.ec2.placement_scores import Ec2RegionScores  # noqa: PLC0415
    from relaunch.adapters.aws.price_list import PriceList, price_list_region  # noqa: PLC0415
    from relaunch.adapters.aws.service_quotas import Ec2Quotas  # noqa: PLC0415
    from relaunch.observability import PowertoolsLog  # noqa: PLC0415

    settings = Settings.from_environment(os.environ)
    clients = _Clients(boto3.Session())
    clock = SystemClock()
    log = PowertoolsLog()
    region = clients.region
    return RefreshDependencies(
        region=region,
        catalogue=load_catalogue(),
        spot_types=settings.spot_types,
        machine_settings=settings.machines,
        instance_types=Ec2InstanceTypes(clients.lazy("ec2"), log),
        zones=Ec2InstanceTypeOfferings(clients.lazy("ec2")),
        price_list=PriceList(clients.lazy("pricing", price_list_region(region)), region),
        spot_prices=Ec2SpotPrices(clients.lazy("ec2"), clock),
        region_scores=Ec2RegionScores(clients.lazy("ec2"), region),
        quotas=Ec2Quotas(clients.lazy("service-quotas")),
        snapshots=DynamoDbSnapshots(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table),
        clock=clock,
        log=log,
        metrics=emf_metrics(),
    )


def make_dependencies(
    settings: Settings, session: boto3.Session | None = None, *, has_all_types: bool = False
) -> Dependencies:
    """Return the dependencies of the command, with the credentials of the caller, and with the caller's kubeconfig.

    With `has_all_types` the offerings are those of the region instead of those of the capacity providers of the stack:
    for planning only.
    """
    # Imported here because functions do not need it.
    from relaunch.adapters.acs_driver_list import load_acs_drivers  # noqa: PLC0415
    from relaunch.adapters.aws.checkpoint_buckets import S3Buckets  # noqa: PLC0415

    clients = _Clients(session or boto3.Session())
    log = SilentLog()
    deps = _make_dependencies(settings, clients, log)
    own = {
        target: cache(partial(_make_kubernetes, target, settings, _read_own_access))
        for target in settings.kubernetes.clusters
    }
    deps = replace(
        deps,
        targets=replace(deps.targets, makers={**deps.targets.makers, **own}),
        buckets=S3Buckets(clients.lazy("s3")),
        checkpoint_grants=settings.checkpoint_grants,
        acs_drivers=load_acs_drivers(),
    )
    if not has_all_types:
        return deps
    # Imported here because functions do not need them.
    from relaunch.adapters.aws.ec2.placement_scores import Ec2ZoneScores  # noqa: PLC0415

    snapshot = CurrentSnapshot(
        DynamoDbSnapshots(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table), clients.region, log
    )
    spot_prices = Ec2SpotPrices(clients.lazy("ec2"), deps.clock)
    return replace(
        deps,
        offerings=CurrentRegionalOfferings(snapshot, spot_prices, log),
        zone_scores=Ec2ZoneScores(clients.lazy("ec2"), clients.region, deps.clock, log),
    )


def open_own_cluster(settings: Settings) -> Any:
    """Return a client of the cluster that the caller's kubeconfig is for, in the namespace of the stack's jobs."""
    # Imported here because functions do not need them, and only jobs on Kubernetes do.
    from relaunch.adapters.kubernetes.api.client import KubernetesClient  # noqa: PLC0415
    from relaunch.adapters.kubernetes.api.connection import Connection  # noqa: PLC0415

    return KubernetesClient(Connection(_read_own_access, settings.kubernetes.namespace))


def make_dead_letters(outputs: Mapping[str, str], session: boto3.Session) -> DeadLetters:
    """Return the dead-letter queues of a deployed stack from its outputs."""
    return SqsDeadLetters(_Clients(session).lazy("sqs"), find_queues(outputs))


class _Clients:
    """One lazy client per service and configuration, in the region of the session unless another one is given."""

    def __init__(self, session: boto3.Session) -> None:
        self._session = session
        self._clients: dict[tuple[str, Config], Any] = {}

    @property
    def region(self) -> str:
        return self._session.region_name or ""

    def lazy(self, service: str, region: str | None = None, config: Config = CLIENT_CONFIG) -> Any:
        if (service, config) not in self._clients:
            make: Callable[..., Any] = self._session.client
            self._clients[service, config] = LazyClient(lambda: make(service, region_name=region, config=config))
        return self._clients[service, config]


def _make_dependencies(settings: Settings, clients: _Clients, log: DecisionLog) -> Dependencies:
    clock = SystemClock()
    stores = DynamoDbStores(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table)
    spot_prices = Ec2SpotPrices(clients.lazy("ec2"), clock)
    snapshot = CurrentSnapshot(
        DynamoDbSnapshots(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table), clients.region, log
    )
    return Dependencies(
        jobs=stores.jobs,
        machines=stores.machines,
        definitions=stores.definitions,
        capacity=stores.capacity,
        events=stores.events,
        **_make_ports_of_targets(settings, clients, clock),
        maintenance=stores.maintenance,
        notice_records=stores.notice_records,
        machine_queue=SqsMachineQueue(clients.lazy("sqs"), settings.machines.queue_url),
        machine_settings=settings.machines,
        fleet=Ec2Fleet(clients.lazy("ec2"), clients.lazy("ec2", config=SINGLE_SEND_CONFIG), settings.machines.stack),
        hosts=Ec2Hosts(clients.lazy("ec2"), [each.name for each in settings.capacity_providers]),
        offerings=_offerings(settings, spot_prices, Ec2Reservations(clients.lazy("ec2"), clock), snapshot, log),
        images=EcrImages(clients.lazy("ecr")),
        patterns=Re2Patterns(),
        checkpoints=_checkpoints(settings, clients),
        load_thresholds=load_thresholds,
        launches=SqsLaunchQueue(clients.lazy("sqs"), settings.attempts_queue_url),
        job_events=EventBridgeJobEvents(
            clients.lazy("events", config=EVENTS_CONFIG), f"relaunch.{settings.machines.stack}", clock
        ),
        clock=clock,
        log=log,
        limits=settings.limits,
    )


def _make_ports_of_targets(settings: Settings, clients: _Clients, clock: Clock) -> dict[str, Any]:
    """Return the targets that the stack has, and the ports that only jobs on ECS use.

    Each target is imported when it is first used: a function without a job on it starts without it.
    """
    ecs = clients.lazy("ecs")

    @cache
    def make_ecs() -> TaskTarget:
        from relaunch.adapters.aws.ecs.rate_limiter import RateLimiter  # noqa: PLC0415
        from relaunch.adapters.aws.ecs.target import EcsTarget  # noqa: PLC0415

        return EcsTarget(ecs, settings.cluster, settings.subnets, settings.security_groups, RateLimiter())

    def make_revisions() -> RevisionSource:
        from relaunch.adapters.aws.ecs.revisions import EcsRevisions  # noqa: PLC0415

        grants = settings.limits.task_definitions
        return EcsRevisions(ecs, clock, has_host_access=grants.has_host_access)

    def make_registry() -> RevisionRegistry:
        from relaunch.adapters.aws.ecs.derived_revisions import EcsRegistry  # noqa: PLC0415

        return EcsRegistry(ecs, clock)

    def maker(target: Target) -> Callable[[], TaskTarget]:
        match target:
            case Target.ECS:
                return make_ecs
            case Target.ACK | Target.ACS:
                return cache(partial(_make_kubernetes, target, settings, _find_access(target, settings, clients)))
            case _:
                assert_never(target)

    makers = {each: maker(each) for each in settings.targets}
    return {
        "targets": Targets(makers, reads_oss=bool(settings.kubernetes.oss_region)),
        "revisions": LazyClient(make_revisions),
        "registry": LazyClient(make_registry),
    }


def _find_access(target: Target, settings: Settings, clients: _Clients) -> Callable[[], Any]:
    """Return what fetches the access of the functions to a cluster."""
    kubernetes = settings.kubernetes
    cluster = kubernetes.clusters[target]

    def read_secret() -> Any:
        from relaunch.adapters.aws.secret_text import SecretText  # noqa: PLC0415
        from relaunch.adapters.kubernetes.api.kubeconfig import read_kubeconfig  # noqa: PLC0415

        return read_kubeconfig(SecretText(clients.lazy("secretsmanager"), cluster.kubeconfig_secret_arn).read())

    @cache
    def make_keyless() -> Any:
        from relaunch.adapters.alibaba.cluster_access import ClusterReference, KeylessAccess  # noqa: PLC0415
        from relaunch.adapters.alibaba.ram_role import AUDIENCE, RamRole  # noqa: PLC0415
        from relaunch.adapters.aws.web_identity import WebIdentity  # noqa: PLC0415

        role = RamRole(cluster.region, kubernetes.role_arn, kubernetes.oidc_provider_arn)
        identity = WebIdentity(clients.lazy("sts"), AUDIENCE)
        return KeylessAccess(ClusterReference(role, cluster.cluster_id), identity.issue_token)

    return read_secret if cluster.kubeconfig_secret_arn else lambda: make_keyless().fetch()


def _checkpoints(settings: Settings, clients: _Clients) -> CheckpointSource:
    """Return checkpoints in S3, and in OSS if the stack has a region for them."""
    stores: dict[str, CheckpointSource] = {"s3": S3Checkpoints(clients.lazy("s3"))}
    kubernetes = settings.kubernetes
    region = kubernetes.oss_region

    def make_oss() -> CheckpointSource:
        from relaunch.adapters.alibaba.oss_checkpoints import OssCheckpoints, endpoint_of  # noqa: PLC0415
        from relaunch.adapters.alibaba.ram_role import AUDIENCE, AssumedRole, RamRole, RamSignIn  # noqa: PLC0415
        from relaunch.adapters.aws.s3_compatible import StoreKeys, open_s3_compatible  # noqa: PLC0415
        from relaunch.adapters.aws.web_identity import WebIdentity  # noqa: PLC0415

        def open_source(assumed: AssumedRole) -> CheckpointSource:
            key = assumed.credentials
            keys = StoreKeys(key.access_key_id, key.access_key_secret, key.security_token)
            return S3Checkpoints(open_s3_compatible(endpoint_of(region), region, keys, CLIENT_CONFIG), "oss")

        role = RamRole(region, kubernetes.role_arn, kubernetes.oidc_provider_arn)
        identity = WebIdentity(clients.lazy("sts"), AUDIENCE)
        return OssCheckpoints(RamSignIn(role, identity.issue_token).assume, open_source)

    if region:
        stores["oss"] = cast("CheckpointSource", LazyClient(make_oss))
    return CheckpointStores(stores)


def _read_own_access() -> Any:
    from relaunch.adapters.kubernetes.own_kubeconfig import read_own_kubeconfig  # noqa: PLC0415

    return read_own_kubeconfig(os.environ, Path.home())


def _make_kubernetes(target: Target, settings: Settings, access: Callable[[], Any]) -> TaskTarget:
    from relaunch.adapters.kubernetes.api.client import KubernetesClient  # noqa: PLC0415
    from relaunch.adapters.kubernetes.api.connection import Connection  # noqa: PLC0415
    from relaunch.adapters.kubernetes.target import kubernetes_target  # noqa: PLC0415

    client = KubernetesClient(Connection(access, settings.kubernetes.namespace))
    return kubernetes_target(client, target, settings.machines.stack)


def _offerings(
    settings: Settings,
    spot_prices: SpotPriceSource,
    reservations: ReservationSource,
    snapshot: CurrentSnapshot,
    log: DecisionLog,
) -> OfferingSource:
    """Return the offerings of machines of our own, if they are on, of reservations, and of the capacity providers."""
    providers = CapacityProviderOfferings(settings.capacity_providers, spot_prices, snapshot, log)
    machines = settings.machines
    if not machines.is_on:
        return providers
    own = OwnMachines(frozenset(machines.subnets), machines.disk_gib)
    others: list[OfferingSource] = []
    if machines.reservation_ids:
        others.append(ReservedOfferings(machines.reservation_ids, reservations, snapshot, own, log))
    if settings.capacity_providers:
        others.append(providers)
    regional = CurrentRegionalOfferings(snapshot, spot_prices, log, own)
    return CombinedOfferings(regional, *others) if others else regional
