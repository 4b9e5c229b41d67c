"""Creates the clients and dependencies of the functions and the command from settings."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, assert_never, cast

from relaunch import collector  # first: the imports below are faster for it
from relaunch import late_parts as parts
from relaunch.adapters.aws.client_config import CLIENT_CONFIG, EVENTS_CONFIG, SINGLE_SEND_CONFIG, TABLE_CONFIG
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.core.definitions.targets import Target
from relaunch.core.messages.dead_letter import DeadLetterQueue, find_queues
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.late import LazyClient, made_late
from relaunch.notice_parts import notice_parts
from relaunch.ports import (
    CheckpointSource,
    Clock,
    DeadLetters,
    DecisionLog,
    Dependencies,
    OfferingSource,
    RefreshDependencies,
    SilentLog,
    Targets,
    TaskTarget,
)
from relaunch.settings import Settings
from relaunch.topic_parts import topic_queue

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

    from relaunch.late_parts import AssumedRole, CurrentSnapshot, EmfMetrics

__all__ = ["LazyClient"]

Handler = TypeVar("Handler", bound=Callable[..., Any])


class SystemClock:
    """Implements Clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


@cache
def emf_metrics() -> "EmfMetrics":
    """Return the metrics of the functions, created once per execution environment."""
    return parts.EmfMetrics()


def with_metrics(handle: Handler) -> Handler:
    """Flush the metrics after each invocation of a handler, also if it fails.

    They are created when a handler is decorated, and what its function always needs is imported: in Lambda's init
    phase, which has more CPU.
    """
    metrics = emf_metrics()
    parts.import_always(handle.__module__.partition(".")[0])

    @wraps(handle)
    def run(*args: Any) -> Any:
        try:
            return handle(*args)
        finally:
            metrics.flush()
            collector.wake()

    return cast("Handler", run)


@cache
def function() -> FunctionDependencies:
    """Return the dependencies of this function, created once per execution environment."""
    settings = Settings.from_environment(os.environ)
    log = parts.PowertoolsLog()
    clients = environment_clients()
    dead_letters = DeadLetterSender(
        clients.lazy("sqs"), settings.dead_letter_queue_url, log, settings.max_receive_count
    )
    counted = [DeadLetterQueue(url.rpartition("/")[2], url) for url in settings.watched_queue_urls]
    made = _make_dependencies(settings, clients, log)
    deps = replace(made, metrics=emf_metrics(), **notice_parts(os.environ, clients.lazy, made.clock, log))
    source = SourceQueue(clients.lazy("sqs"))
    topics = topic_queue(os.environ, clients.lazy, log, settings.max_receive_count)
    dead = made_late(lambda: parts.SqsDeadLetters(clients.lazy("sqs"), counted))
    return FunctionDependencies(
        deps, source, dead_letters, dead, topics, os.environ.get("RELAUNCH_UPLOADS_QUEUE_ARN", "")
    )


@cache
def refresh_dependencies() -> RefreshDependencies:
    """Return the dependencies of refreshing offerings, created once per execution environment."""
    settings = Settings.from_environment(os.environ)
    clients = environment_clients()
    clock = SystemClock()
    log = parts.PowertoolsLog()
    region = clients.region
    nearest, *others = (clients.lazy("pricing", each) for each in parts.price_list_regions(region))
    return RefreshDependencies(
        region=region,
        catalogue=parts.load_catalogue(),
        spot_types=settings.spot_types,
        machine_settings=settings.machines,
        instance_types=parts.Ec2InstanceTypes(clients.lazy("ec2"), log),
        zones=parts.Ec2InstanceTypeOfferings(clients.lazy("ec2")),
        price_list=parts.PriceList(nearest, region, *others),
        spot_prices=parts.Ec2SpotPrices(clients.lazy("ec2"), clock),
        region_scores=parts.Ec2RegionScores(clients.lazy("ec2"), region),
        quotas=parts.Ec2Quotas(clients.lazy("service-quotas")),
        snapshots=parts.DynamoDbSnapshots(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table),
        clock=clock,
        log=log,
        metrics=emf_metrics(),
    )


def make_dependencies(settings: Settings, session: "boto3.Session", *, has_all_types: bool = False) -> Dependencies:
    """Return the dependencies of the command, with the credentials of the caller, and with the caller's kubeconfig.

    With `has_all_types` the offerings are those of the region instead of those of the capacity providers of the stack:
    for planning only.
    """
    clients = _clients_of(session)
    log = SilentLog()
    deps = _make_dependencies(settings, clients, log)
    own = {
        target: cache(partial(_make_kubernetes, target, settings, _find_own_access((target,), settings, clients)))
        for target in settings.kubernetes.clusters
    }
    deps = replace(
        deps,
        targets=replace(deps.targets, makers={**deps.targets.makers, **own}),
        buckets=parts.S3Buckets(clients.lazy("s3")),
        checkpoint_grants=settings.checkpoint_grants,
        acs_drivers=parts.load_acs_drivers(),
    )
    if not has_all_types:
        return deps

    snapshot = _snapshot(settings, clients, log)
    spot_prices = parts.Ec2SpotPrices(clients.lazy("ec2"), deps.clock)
    return replace(
        deps,
        offerings=parts.CurrentRegionalOfferings(snapshot, spot_prices, log),
        zone_scores=parts.Ec2ZoneScores(clients.lazy("ec2"), clients.region, deps.clock, log),
    )


def open_own_cluster(settings: Settings, session: "boto3.Session") -> Any:
    """Return a client of the cluster that the caller's kubeconfig is for, in the namespace of the stack's jobs."""
    access = _find_own_access(tuple(settings.kubernetes.clusters), settings, _clients_of(session))
    return parts.KubernetesClient(parts.Connection(access, settings.kubernetes.namespace))


def make_dead_letters(outputs: Mapping[str, str], session: "boto3.Session") -> DeadLetters:
    """Return the dead-letter queues of a deployed stack from its outputs."""
    return parts.SqsDeadLetters(_clients_of(session).lazy("sqs"), find_queues(outputs))


class Clients:
    """One late client per service and configuration, in this region unless another one is given."""

    def __init__(self, create: Callable[..., Any], region: str | None) -> None:
        self.region = region or ""
        self._create = create
        self._clients: dict[tuple[str, str | None, Config], Any] = {}

    def lazy(self, service: str, region: str | None = None, config: "Config" = CLIENT_CONFIG) -> Any:
        """Return the client of a service."""
        key = (service, region, config)
        if key not in self._clients:
            create = self._create
            self._clients[key] = made_late(lambda: create(service, region_name=region, config=config))
        return self._clients[key]


def environment_clients() -> Clients:
    """Return the clients of a function, by botocore: boto3 would import what transfers files to S3, for 30 ms."""
    session = parts.get_session()
    bundle = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE")
    certificates = parts.SharedCertificates(bundle)
    create: Callable[..., Any] = session.create_client
    region = session.get_config_variable("region")
    return Clients(lambda *names, **given: certificates.share_with(create(*names, **given)), region)


def _clients_of(session: "boto3.Session") -> Clients:
    return Clients(session.client, session.region_name)


def _make_dependencies(settings: Settings, clients: Clients, log: DecisionLog) -> Dependencies:
    clock = SystemClock()
    stores = DynamoDbStores(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table)
    machines = settings.machines
    sqs = clients.lazy("sqs")
    ec2 = clients.lazy("ec2")
    once = clients.lazy("ec2", config=SINGLE_SEND_CONFIG)
    events = clients.lazy("events", config=EVENTS_CONFIG)
    return Dependencies(
        jobs=made_late(lambda: stores.jobs),
        machines=made_late(lambda: stores.machines),
        definitions=made_late(lambda: stores.definitions),
        capacity=made_late(lambda: stores.capacity),
        rates=made_late(lambda: stores.rates),
        budgets=made_late(lambda: stores.budgets),
        events=made_late(lambda: stores.events),
        **_make_ports_of_targets(settings, clients, clock),
        maintenance=made_late(lambda: stores.maintenance),
        notice_records=made_late(lambda: stores.notice_records),
        machine_queue=made_late(lambda: parts.SqsMachineQueue(sqs, machines.queue_url)),
        machine_settings=machines,
        fleet=made_late(lambda: parts.Ec2Fleet(ec2, once, machines.stack)),
        hosts=made_late(lambda: parts.Ec2Hosts(ec2, [each.name for each in settings.capacity_providers])),
        offerings=made_late(lambda: _offerings(settings, clients, clock, log)),
        images=made_late(lambda: parts.EcrImages(clients.lazy("ecr"))),
        patterns=made_late(lambda: parts.Re2Patterns()),  # noqa: PLW0108 - imports
        checkpoints=made_late(lambda: _checkpoints(settings, clients)),
        load_thresholds=lambda: parts.load_thresholds(),  # noqa: PLW0108 - imports
        launches=made_late(lambda: parts.SqsLaunchQueue(sqs, settings.attempts_queue_url)),
        job_events=made_late(lambda: parts.EventBridgeJobEvents(events, f"relaunch.{machines.stack}", clock)),
        clock=clock,
        log=log,
        limits=settings.limits,
    )


def _make_ports_of_targets(settings: Settings, clients: Clients, clock: Clock) -> dict[str, Any]:
    """Return the targets that the stack has, and the ports that only jobs on ECS use.

    Each target is imported when it is first used: a function without a job on it starts without it.
    """
    ecs = clients.lazy("ecs")

    @cache
    def make_ecs() -> TaskTarget:
        return parts.EcsTarget(ecs, settings.cluster, settings.subnets, settings.security_groups, parts.RateLimiter())

    has_host_access = settings.limits.task_definitions.has_host_access

    def maker(target: Target) -> Callable[[], TaskTarget]:
        match target:
            case Target.ECS:
                return make_ecs
            case Target.KUBERNETES | Target.ACK | Target.ACS:
                return cache(partial(_make_kubernetes, target, settings, _find_access(target, settings, clients)))
            case _:
                assert_never(target)

    makers = {each: maker(each) for each in settings.targets}
    return {
        "targets": Targets(makers, reads_oss=bool(settings.kubernetes.oss_region)),
        "revisions": made_late(lambda: parts.EcsRevisions(ecs, clock, has_host_access=has_host_access)),
        "registry": made_late(lambda: parts.EcsRegistry(ecs, clock)),
    }


def _find_access(target: Target, settings: Settings, clients: Clients) -> Callable[[], Any]:
    """Return what fetches the access of the functions to a cluster."""
    kubernetes = settings.kubernetes
    cluster = kubernetes.clusters[target]

    def read_secret() -> Any:
        return parts.read_kubeconfig(
            parts.SecretText(clients.lazy("secretsmanager"), cluster.kubeconfig_secret_arn).read()
        )

    @cache
    def make_keyless() -> Any:
        role = parts.RamRole(cluster.region, kubernetes.role_arn, kubernetes.oidc_provider_arn)
        identity = parts.WebIdentity(clients.lazy("sts"), parts.AUDIENCE)
        return parts.KeylessAccess(parts.ClusterReference(role, cluster.cluster_id), identity.issue_token)

    if cluster.kubeconfig_secret_arn:
        return read_secret
    if target.capabilities.is_on_alibaba_cloud:
        return lambda: make_keyless().fetch()
    return partial(_sign_in_to_eks, clients, cluster.cluster_id)


def _sign_in_to_eks(clients: Clients, cluster_name: str) -> Any:
    found = parts.EksAccess(clients.lazy("eks"), clients.lazy("sts"), cluster_name).fetch()
    authority = found.certificate_authority
    return parts.ClusterAccess(found.server, authority, token=found.token, expires_at=found.expires_at)


def _checkpoints(settings: Settings, clients: Clients) -> CheckpointSource:
    """Return checkpoints in S3, and in OSS if the stack has a region for them."""
    stores: dict[str, CheckpointSource] = {"s3": parts.S3Checkpoints(clients.lazy("s3"))}
    kubernetes = settings.kubernetes
    region = kubernetes.oss_region

    def make_oss() -> CheckpointSource:
        def open_source(assumed: AssumedRole) -> CheckpointSource:
            key = assumed.credentials
            keys = parts.StoreKeys(key.access_key_id, key.access_key_secret, key.security_token)
            return parts.S3Checkpoints(
                parts.open_s3_compatible(parts.endpoint_of(region), region, keys, CLIENT_CONFIG), "oss"
            )

        role = parts.RamRole(region, kubernetes.role_arn, kubernetes.oidc_provider_arn)
        identity = parts.WebIdentity(clients.lazy("sts"), parts.AUDIENCE)
        return parts.OssCheckpoints(parts.RamSignIn(role, identity.issue_token).assume, open_source)

    if region:
        stores["oss"] = made_late(make_oss)
    return parts.CheckpointStores(stores)


def _find_own_access(targets: Sequence[Target], settings: Settings, clients: Clients) -> Callable[[], Any]:
    """Return what fetches the access of the caller to the clusters of these targets: by the caller's kubeconfig.

    That of EKS runs a program, which no kubeconfig may: the caller signs in with the credentials of AWS instead, unless
    $KUBECONFIG names one.
    """
    clusters = [settings.kubernetes.clusters[each] for each in targets if not each.capabilities.is_on_alibaba_cloud]
    if len(targets) == 1 and not os.environ.get("KUBECONFIG"):
        for cluster in clusters:
            if cluster.cluster_id and not cluster.kubeconfig_secret_arn:
                return partial(_sign_in_to_eks, clients, cluster.cluster_id)
    return _read_own_access


def _read_own_access() -> Any:

    return parts.read_own_kubeconfig(os.environ, Path.home())


def _make_kubernetes(target: Target, settings: Settings, access: Callable[[], Any]) -> TaskTarget:

    client = parts.KubernetesClient(parts.Connection(access, settings.kubernetes.namespace))
    return parts.kubernetes_target(client, target, settings.machines.stack, settings.limits.pods.nodes)


def _snapshot(settings: Settings, clients: Clients, log: DecisionLog) -> "CurrentSnapshot":
    snapshots = parts.DynamoDbSnapshots(clients.lazy("dynamodb", config=TABLE_CONFIG), settings.table)
    return parts.CurrentSnapshot(snapshots, clients.region, log)


def _offerings(settings: Settings, clients: Clients, clock: Clock, log: DecisionLog) -> OfferingSource:
    """Return the offerings of machines of our own, if they are on, of reservations, and of the capacity providers."""
    spot_prices = parts.Ec2SpotPrices(clients.lazy("ec2"), clock)
    snapshot = _snapshot(settings, clients, log)
    providers = parts.CapacityProviderOfferings(settings.capacity_providers, spot_prices, snapshot, log)
    machines = settings.machines
    if not machines.is_on:
        return providers
    own = parts.OwnMachines(frozenset(machines.subnets), machines.disk_gib)
    others: list[OfferingSource] = []
    if machines.reservation_ids:
        reservations = parts.Ec2Reservations(clients.lazy("ec2"), clock)
        others.append(parts.ReservedOfferings(machines.reservation_ids, reservations, snapshot, own, log))
    if settings.capacity_providers:
        others.append(providers)
    regional = parts.CurrentRegionalOfferings(snapshot, spot_prices, log, own)
    return parts.CombinedOfferings(regional, *others) if others else regional
