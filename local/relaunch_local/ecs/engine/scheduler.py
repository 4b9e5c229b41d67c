"""RunTask and StopTask: places tasks, keeps them waiting for capacity, or returns failures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaunch_local.ecs.engine import placement
from relaunch_local.ecs.engine.client_tokens import ClientTokens
from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.managed_scaling import ManagedScaling
from relaunch_local.ecs.engine.model import CapacityProvider, Cluster, Instance, JsonObject, StopCode, Task
from relaunch_local.ecs.engine.placement import Failure
from relaunch_local.ecs.engine.region import Region
from relaunch_local.ecs.engine.task_definitions import TaskDefinitions
from relaunch_local.ecs.engine.task_factory import TaskFactory
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.engine.views import task_view
from relaunch_local.ecs.errors import client_error, refuse
from relaunch_local.ecs.rules.placement import Placement, check_strategy, placement_of
from relaunch_local.ecs.rules.requirements import Requirement
from relaunch_local.ecs.rules.run_task import check_client_token, check_run_task

PROVISIONING_QUOTA = 500
"""Tasks in PROVISIONING per cluster (Service Quotas L-B7718569)."""

_REFUSED_SECONDS = 60.0
"""How long a task waits whose instance EC2 refuses; ECS Managed Instances do not try for as long as groups."""


@dataclass(slots=True)
class Scheduler:
    """Places and stops tasks."""

    region: Region
    clusters: Clusters
    scaling: ManagedScaling
    lifecycle: TaskLifecycle
    tokens: ClientTokens
    definitions: TaskDefinitions
    provisioning_quota: int = PROVISIONING_QUOTA

    def run(self, request: JsonObject) -> JsonObject:
        """RunTask.

        Raises:
            EcsError: ConflictException for a token used with other parameters, ClientException for an unknown
                revision or above the provisioning quota, InvalidParameterException for an invalid request or a revision
                that is not ACTIVE.
        """
        cluster = self.clusters.get(request.get("cluster"))
        check_client_token(request)
        key = (cluster.arn, request["clientToken"]) if "clientToken" in request else None
        replayed = None if key is None else self.tokens.replay(key, request)
        if replayed is not None:
            return replayed
        definition = self.definitions.for_run(request["taskDefinition"])
        check_run_task(request, definition)
        constraints = placement_of(request, definition)
        shares = self._shares(cluster, request)
        factory = TaskFactory(
            self.region, cluster, request, definition, constraints, self._tags(cluster, request, definition), key
        )
        response = self._launch(cluster, factory, shares)
        if key is not None:
            self.tokens.remember(key, request, response)
        return response

    def _tags(self, cluster: Cluster, request: JsonObject, definition: JsonObject) -> list[JsonObject]:
        tags = [*request.get("tags", ())]
        if request.get("propagateTags") == "TASK_DEFINITION":
            own = {tag["key"] for tag in tags}
            tags += [tag for tag in self.definitions.tags[definition["taskDefinitionArn"]] if tag["key"] not in own]
        if request.get("enableECSManagedTags"):
            tags.append({"key": "aws:ecs:clusterName", "value": cluster.name})
        return tags

    def stop(self, task: Task, reason: str | None) -> JsonObject:
        """StopTask: SIGTERM, then SIGKILL after the stop timeout; the task's tags are deleted."""
        if not task.is_stopping:
            self.lifecycle.begin_stop(task, StopCode.USER_INITIATED, reason or "Task stopped by user")
            task.tags = []
        return {"task": task_view(task)}

    def place_waiting(self, provider: CapacityProvider, instances: Sequence[Instance]) -> None:
        """Place the provider's waiting tasks on these instances, oldest first."""
        hopeless: set[tuple[Requirement, Placement, str]] = set()
        for task in list(provider.waiting.values()):
            kind = (task.requirement, task.placement, task.group)
            if kind not in hopeless and not self._place(task, instances):
                hopeless.add(kind)

    def _place(self, task: Task, instances: Sequence[Instance]) -> bool:
        instance = placement.find_instance(instances, task)
        if instance is None:
            return False
        if task.provider is not None and task.provider.waiting.pop(task.task_id, None) is not None:
            task.cluster.provisioning_count -= 1
        if task.provisioning_timer is not None:
            task.provisioning_timer.cancel()
        self.lifecycle.assign(task, instance)
        return True

    def _shares(self, cluster: Cluster, request: JsonObject) -> list[CapacityProvider | None]:
        """Return the capacity provider of each requested task; None for the launch type EC2."""
        count = request.get("count", 1)
        strategy = request.get("capacityProviderStrategy", [])
        if not strategy and "launchType" not in request:
            strategy = cluster.default_strategy
        if not strategy:
            refuse(not cluster.container_instances, "No Container Instances were found in your cluster.")
            return [None] * count
        check_strategy(strategy)
        providers = [self.clusters.provider_of(cluster, item["capacityProvider"]) for item in strategy]
        return [providers[index] for index in _spread(strategy, count)]

    def _launch(self, cluster: Cluster, factory: TaskFactory, shares: list[CapacityProvider | None]) -> JsonObject:
        waiting = sum(provider is not None and provider.is_managed for provider in shares)
        if cluster.provisioning_count + waiting > self.provisioning_quota and self._must_wait(factory, shares):
            raise client_error("You've reached the limit on the number of tasks you can run in the PROVISIONING state.")
        tasks: list[JsonObject] = []
        failures: list[JsonObject] = []
        for provider in shares:
            outcome = self._launch_one(factory, provider)
            if isinstance(outcome, list):
                failures += [{"reason": reason} | ({"arn": arn} if arn else {}) for arn, reason in outcome]
            else:
                tasks.append(outcome)
        return {"tasks": tasks, "failures": failures}

    def _must_wait(self, factory: TaskFactory, shares: Sequence[CapacityProvider | None]) -> bool:
        probe = factory.make(None)
        fits = [placement.find_instance(_instances(factory.cluster, each), probe) is not None for each in set(shares)]
        return not all(fits)

    def _launch_one(self, factory: TaskFactory, provider: CapacityProvider | None) -> JsonObject | list[Failure]:
        task = factory.make(provider)
        instances = _instances(factory.cluster, provider)
        if provider is None or not provider.is_managed:
            instance = placement.choose_instance(instances, task)
            if isinstance(instance, list):
                return instance
            factory.register(task)
            self.lifecycle.assign(task, instance)
            return task_view(task, with_tags=True)
        factory.register(task)
        self.lifecycle.publish(task)
        view = task_view(task, with_tags=True)
        if not self._place(task, instances):
            self._wait(task, provider)
        return view

    def _wait(self, task: Task, provider: CapacityProvider) -> None:
        provider.waiting[task.task_id] = task
        task.cluster.provisioning_count += 1
        timeout = self.region.timing.provisioning_timeout
        seconds = min(_REFUSED_SECONDS, timeout) if provider.refusal else timeout
        task.provisioning_timer = self.region.clock.call_later(seconds, lambda: self._give_up(task, provider))
        self.scaling.watch(provider)

    def _give_up(self, task: Task, provider: CapacityProvider) -> None:
        outcome = placement.choose_instance(_instances(task.cluster, provider), task)
        reason = outcome[0][1] if isinstance(outcome, list) else "RESOURCE"
        if not any(instance.provider is provider for instance in task.cluster.container_instances.values()):
            reason = placement.EMPTY_CAPACITY_PROVIDER
        reason = provider.refusal or reason
        self.lifecycle.begin_stop(task, StopCode.TASK_FAILED_TO_START, f"TaskFailedToStart: {reason}")


def _instances(cluster: Cluster, provider: CapacityProvider | None) -> list[Instance]:
    return [each for each in cluster.container_instances.values() if provider in (None, each.provider)]


def _spread(strategy: Sequence[JsonObject], count: int) -> Iterator[int]:
    """Yield the index of the strategy item of each task: the base first, then by weight."""
    given = [0] * len(strategy)
    weights = [item.get("weight", 0) for item in strategy]
    weights = weights if any(weights) else [1] * len(strategy)
    bases = [item.get("base", 0) for item in strategy]
    for _ in range(count):
        short = [index for index, base in enumerate(bases) if given[index] < base]
        weighted = [index for index, weight in enumerate(weights) if weight]
        index = short[0] if short else min(weighted, key=lambda each: (given[each] - bases[each] + 1) / weights[each])
        given[index] += 1
        yield index
