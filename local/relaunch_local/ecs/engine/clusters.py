"""Clusters, Auto Scaling groups and capacity providers: create, associate, describe."""

from dataclasses import dataclass, field
from datetime import timedelta

from relaunch_local.ecs.engine.identifiers import last_part
from relaunch_local.ecs.engine.managed_scaling import ManagedScaling
from relaunch_local.ecs.engine.model import (
    AutoScalingGroupState,
    CapacityProvider,
    Cluster,
    JsonObject,
    LastStatus,
    Task,
)
from relaunch_local.ecs.engine.paging import page_of
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.settings import AutoScalingGroup
from relaunch_local.ecs.errors import EcsError, refuse, refuse_as_client
from relaunch_local.ecs.rules.placement import MAX_PROVIDERS, check_strategy
from relaunch_local.ecs.rules.tags import check_tags
from relaunch_local.ecs.rules.task_definition import NAME


@dataclass(slots=True)
class Clusters:
    """The clusters and capacity providers of the region."""

    region: Region
    scaling: ManagedScaling
    clusters: dict[str, Cluster] = field(default_factory=dict)
    providers: dict[str, CapacityProvider] = field(default_factory=dict)

    def get(self, name_or_arn: str | None) -> Cluster:
        """Return the named cluster, or `default`; raises ClusterNotFoundException."""
        name = name_or_arn or "default"
        self.region.arns.refuse_foreign(name)
        cluster = self.clusters.get(last_part(name))
        if cluster is None or (name.startswith("arn:") and name != cluster.arn):
            raise EcsError("ClusterNotFoundException", "Cluster not found.")
        return cluster

    def create(self, request: JsonObject) -> JsonObject:
        """CreateCluster: an existing cluster is returned unchanged."""
        name = request.get("clusterName", "default")
        refuse(not NAME.fullmatch(name), "The cluster name has up to 255 letters, numbers, hyphens and underscores.")
        check_tags(request.get("tags", ()), refuse)
        if name not in self.clusters:
            tags = list(request.get("tags", ()))
            settings = list(request.get("settings", ()))
            cluster = Cluster(self.region.arns.cluster(name), name, tags, settings)
            strategy = request.get("defaultCapacityProviderStrategy", [])
            self._associate(cluster, request.get("capacityProviders", []), strategy)
            self.clusters[name] = cluster
        return {"cluster": _cluster_view(self.clusters[name], with_tags=True)}

    def describe(self, request: JsonObject) -> JsonObject:
        """DescribeClusters, at most 100."""
        names = request.get("clusters") or ["default"]
        refuse(len(names) > 100, "At most 100 clusters.")
        found = []
        failures = []
        for name in names:
            cluster = self.clusters.get(last_part(name))
            arn = name if name.startswith("arn:") else self.region.arns.cluster(name)
            if cluster is None or cluster.arn != arn:
                failures.append({"arn": arn, "reason": "MISSING"})
            else:
                found.append(_cluster_view(cluster, with_tags="TAGS" in request.get("include", ())))
        return {"clusters": found, "failures": failures}

    def list_clusters(self, request: JsonObject) -> JsonObject:
        """ListClusters."""
        return page_of("clusterArns", [cluster.arn for cluster in self.clusters.values()], request)

    def add_group(self, spec: AutoScalingGroup) -> str:
        """Add an Auto Scaling group and return its ARN; it launches nothing until a capacity provider uses it."""
        arn = self.region.arns.auto_scaling_group(spec.name, self.region.ids.uuid())
        self.scaling.groups[arn] = AutoScalingGroupState(arn, spec)
        return arn

    def create_provider(self, request: JsonObject) -> JsonObject:
        """CreateCapacityProvider over an Auto Scaling group."""
        name = request["name"]
        refuse_as_client(
            not NAME.fullmatch(name) or name.lower().startswith(("aws", "ecs", "fargate")),
            "The specified capacity provider name is invalid: up to 255 letters, numbers, underscores and hyphens "
            "are allowed, and it cannot be prefixed with aws, ecs, or fargate.",
        )
        refuse_as_client(name in self.providers, f"The specified capacity provider {name} already exists.")
        check_tags(request.get("tags", ()), refuse_as_client)
        settings = request.get("autoScalingGroupProvider")
        if settings is None:
            raise EcsError("UnsupportedFeatureException", "The simulator does not support Managed Instances.")
        arn = settings["autoScalingGroupArn"]
        refuse_as_client(arn not in self.scaling.groups, "The specified Auto Scaling group ARN is invalid.")
        refuse_as_client(arn in self.scaling.providers, "The Auto Scaling group is used by another capacity provider.")
        target = settings.get("managedScaling", {}).get("targetCapacity", 100)
        refuse_as_client(not 1 <= target <= 100, "targetCapacity is between 1 and 100.")
        group = self.scaling.groups[arn]
        tags = list(request.get("tags", ()))
        provider = CapacityProvider(self.region.arns.capacity_provider(name), name, group, settings, tags)
        self.providers[name] = provider
        self.scaling.providers[arn] = provider
        return {"capacityProvider": _provider_view(provider, with_tags=True)}

    def describe_providers(self, request: JsonObject) -> JsonObject:
        """DescribeCapacityProviders: the named ones, or all; in pages of 10 either way."""
        named = request.get("capacityProviders")
        refuse(named is not None and len(named) > 100, "At most 100 capacity providers.")
        for name in named or ():
            self.region.arns.refuse_foreign(name)
        page = page_of("names", [last_part(name) for name in named or self.providers], request, largest=10)
        with_tags = "TAGS" in request.get("include", ())
        known = [self.providers[name] for name in page["names"] if name in self.providers]
        missing = [name for name in page["names"] if name not in self.providers]
        answer: JsonObject = {
            "capacityProviders": [_provider_view(provider, with_tags=with_tags) for provider in known],
            "failures": [{"arn": self.region.arns.capacity_provider(name), "reason": "MISSING"} for name in missing],
        }
        return answer | {key: page[key] for key in ("nextToken",) if key in page}

    def put_providers(self, request: JsonObject) -> JsonObject:
        """PutClusterCapacityProviders: replaces the whole list and the default strategy."""
        cluster = self.get(request["cluster"])
        self._associate(cluster, request["capacityProviders"], request["defaultCapacityProviderStrategy"])
        return {"cluster": _cluster_view(cluster, with_tags=False)}

    def provider_of(self, cluster: Cluster, name_or_arn: str) -> CapacityProvider:
        """Return a capacity provider of this cluster; raises InvalidParameterException."""
        provider = self._provider(name_or_arn)
        refuse(
            provider.name not in cluster.providers,
            "The specified capacity provider strategy cannot contain a capacity provider that is not associated with "
            "the cluster. Associate the capacity provider with the cluster and try again.",
        )
        refuse(
            not provider.is_active,
            f"The specified capacity provider '{provider.name}' is not in an ACTIVE state. Specify a valid capacity "
            "provider and try again.",
        )
        return provider

    def keep_stopped(self, task: Task) -> None:
        """Keep a stopped task, which can still be described for a while."""
        cluster = task.cluster
        del cluster.tasks[task.task_id]
        cluster.stopped[task.task_id] = task
        if task.provider is not None and task.provider.waiting.pop(task.task_id, None) is not None:
            cluster.provisioning_count -= 1
        self.forget_old(cluster)

    def forget_old(self, cluster: Cluster) -> None:
        """Remove the stopped tasks whose retention period has ended; they are stored in the order of their stops."""
        limit = self.region.clock.now() - timedelta(seconds=self.region.timing.stopped_task_retention)
        while cluster.stopped:
            task = next(iter(cluster.stopped.values()))
            if task.stopped_at is None or task.stopped_at > limit:
                return
            del cluster.stopped[task.task_id]
            if task.started_by:
                same = cluster.by_started_by[task.started_by]
                del same[task.task_id]
                if not same:
                    del cluster.by_started_by[task.started_by]

    def _associate(self, cluster: Cluster, names: list[str], strategy: list[JsonObject]) -> None:
        refuse(len(names) > MAX_PROVIDERS, f"A cluster has at most {MAX_PROVIDERS} capacity providers.")
        providers = {provider.name: provider for provider in map(self._provider, names)}
        for provider in providers.values():
            refuse(
                provider.is_managed and provider.cluster not in (None, cluster),
                f"The capacity provider {provider.name} with managed scaling belongs to another cluster.",
            )
        check_strategy(strategy)
        unknown = [item for item in strategy if last_part(item["capacityProvider"]) not in providers]
        refuse(bool(unknown), "The default strategy names a capacity provider that is not associated with the cluster.")
        removed = [provider for name, provider in cluster.providers.items() if name not in providers]
        if any(task.provider in removed for task in cluster.tasks.values()):
            raise EcsError("ResourceInUseException", "The specified capacity provider is in use and cannot be removed.")
        for provider in removed:
            provider.cluster = None
        cluster.providers = providers
        cluster.default_strategy = list(strategy)
        for provider in providers.values():
            provider.cluster = cluster
            self.scaling.start_minimum(provider)

    def _provider(self, name_or_arn: str) -> CapacityProvider:
        self.region.arns.refuse_foreign(name_or_arn)
        name = last_part(name_or_arn)
        refuse(
            name not in self.providers,
            "The specified capacity provider was not found. Specify a valid name or ARN and try again.",
        )
        return self.providers[name]


def _cluster_view(cluster: Cluster, *, with_tags: bool) -> JsonObject:
    statuses = [task.last_status for task in cluster.tasks.values()]
    view: JsonObject = {
        "clusterArn": cluster.arn,
        "clusterName": cluster.name,
        "status": "ACTIVE",
        "registeredContainerInstancesCount": len(cluster.container_instances),
        "runningTasksCount": sum(status is LastStatus.RUNNING for status in statuses),
        "pendingTasksCount": sum(status in (LastStatus.PROVISIONING, LastStatus.PENDING) for status in statuses),
        "activeServicesCount": 0,
        "statistics": [],
        "settings": list(cluster.settings),
        "capacityProviders": list(cluster.providers),
        "defaultCapacityProviderStrategy": list(cluster.default_strategy),
    }
    return {**view, "tags": list(cluster.tags)} if with_tags else view


def _provider_view(provider: CapacityProvider, *, with_tags: bool) -> JsonObject:
    scaling = {
        "status": "ENABLED",
        "targetCapacity": 100,
        "minimumScalingStepSize": 1,
        "maximumScalingStepSize": 10_000,
        "instanceWarmupPeriod": 300,
        **provider.settings.get("managedScaling", {}),
    }
    defaults = {"managedTerminationProtection": "DISABLED", "managedDraining": "ENABLED"}
    view: JsonObject = {
        "capacityProviderArn": provider.arn,
        "name": provider.name,
        "status": "ACTIVE",
        "type": "EC2_AUTOSCALING",
        "autoScalingGroupProvider": {**defaults, **provider.settings, "managedScaling": scaling},
    }
    return {**view, "tags": list(provider.tags)} if with_tags else view
