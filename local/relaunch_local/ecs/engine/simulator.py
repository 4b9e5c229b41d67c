"""The simulator: an account's ECS and EC2 in one region."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.engine.addresses import PrivateAddresses
from relaunch_local.ecs.engine.authorization import Authorization
from relaunch_local.ecs.engine.client_tokens import ClientTokens
from relaunch_local.ecs.engine.clusters import Clusters
from relaunch_local.ecs.engine.ec2 import Ec2Offerings
from relaunch_local.ecs.engine.ec2_instances import Ec2Instances
from relaunch_local.ecs.engine.ec2_permissions import Ec2Permissions
from relaunch_local.ecs.engine.faults import Fault, FaultMoment, Faults
from relaunch_local.ecs.engine.fleet import Fleets
from relaunch_local.ecs.engine.fleet_tokens import FleetTokens
from relaunch_local.ecs.engine.hosts import Hosts
from relaunch_local.ecs.engine.identifiers import Arns, IdSource
from relaunch_local.ecs.engine.instances import Instances, LaunchSpecification, subnet_of
from relaunch_local.ecs.engine.launch_templates import LaunchTemplates
from relaunch_local.ecs.engine.managed_scaling import ManagedScaling
from relaunch_local.ecs.engine.model import CapacityProvider, Instance, JsonObject, Task
from relaunch_local.ecs.engine.pools import Pools
from relaunch_local.ecs.engine.queries import Queries
from relaunch_local.ecs.engine.region import Event, EventBus, Region
from relaunch_local.ecs.engine.reservations import CapacityReservations
from relaunch_local.ecs.engine.run_instances import InstanceLaunches
from relaunch_local.ecs.engine.scheduler import Scheduler
from relaunch_local.ecs.engine.services import Services
from relaunch_local.ecs.engine.settings import DEFAULT_IMAGE_ID, AutoScalingGroup, Purchase, SimulatorSettings, Timing
from relaunch_local.ecs.engine.tagging import Tagging
from relaunch_local.ecs.engine.task_definitions import TaskDefinitions
from relaunch_local.ecs.engine.tasks import TaskLifecycle
from relaunch_local.ecs.engine.views import container_instance_view
from relaunch_local.ecs.errors import EcsError, invalid_parameter
from relaunch_local.ecs.processes.port import Processes
from relaunch_local.ecs.rules.limits import RequestLimits
from relaunch_local.iam.permission import Authorize

Handler = Callable[[JsonObject], JsonObject]

SERVED_EC2_ACTIONS = frozenset(
    {
        "CreateFleet",
        "RunInstances",
        "TerminateInstances",
        "DescribeInstances",
        "DescribeInstanceStatus",
        "DescribeSpotInstanceRequests",
        "DescribeSpotPriceHistory",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeAvailabilityZones",
        "DescribeCapacityReservations",
    }
)
"""The actions of EC2 that the simulator answers."""
_CHANGING_INSTANCES = frozenset({"CreateFleet", "RunInstances", "TerminateInstances"})
"""Those that ask for their permissions themselves."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request and its outcome."""

    service: str
    action: str
    parameters: JsonObject
    access_key: str
    at: datetime
    outcome: list[str]
    """`ok` or the error code, set when the call returns."""


class EcsSimulator:
    """An account's ECS in one region, with its EC2.

    Not thread-safe: under a wall clock, callers hold `clock.lock`.
    """

    def __init__(
        self,
        clock: Clock,
        processes: Processes,
        settings: SimulatorSettings,
        *,
        authorize: Authorize | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        """Create an empty region; `on_event` is called with EventBridge events in order."""
        ids = IdSource(settings.seed)
        arns = Arns(settings.account, settings.region)
        events = EventBus(clock, ids, arns, [on_event] if on_event is not None else [])
        self.clock = clock
        self.settings = settings
        self.region = Region(
            clock, ids, arns, settings.timing, settings.instance_types, events, settings.price_of,
            settings.instance_resource_events,
        )  # fmt: skip
        self.requests: deque[RecordedRequest] = deque(maxlen=settings.requests_kept)
        self.faults = Faults()
        self.limits = RequestLimits(clock, enabled=settings.throttling)
        self.processes = processes
        self.lifecycle = TaskLifecycle(self.region, processes)
        self.instances = Instances(self.region, self.lifecycle, addresses=PrivateAddresses(settings.network))
        self.definitions = TaskDefinitions(self.region)
        self.tokens = ClientTokens(clock)
        self._scaling = ManagedScaling(self.region, self.instances, self.limits)
        self.clusters = Clusters(self.region, self._scaling)
        self.scheduler = Scheduler(
            self.region, self.clusters, self._scaling, self.lifecycle, self.tokens, self.definitions
        )
        self._services = Services(self.region, self.clusters, self.lifecycle, self.definitions)
        self.queries = Queries(self.region, self.clusters, self.lifecycle)
        permissions = None if authorize is None else Ec2Permissions(arns, authorize)
        self.ec2 = Ec2Offerings(self.region, settings.spot_prices, settings.offerings)
        self.ec2_instances = Ec2Instances(self.region, self.instances, permissions)
        self.reservations = CapacityReservations(self.region, self.instances)
        self.fleets = self._make_fleets(permissions)
        self.launches = InstanceLaunches(
            self.fleets, self.ec2_instances, FleetTokens(clock, settings.fleet.token_lifetime)
        )
        self._hosts = Hosts(self.region, self.instances, self.lifecycle, settings.fleet.watchdog)
        self._authorization = None if authorize is None else Authorization(arns, authorize)
        self._handlers = self._all_handlers()
        self._listen()

    @property
    def actions(self) -> tuple[str, ...]:
        """The supported ECS actions."""
        return tuple(self._handlers)

    def set_timing(self, timing: Timing) -> None:
        """Change the delays; timers that are already running keep theirs."""
        self.region.timing = timing

    def subscribe(self, on_event: Callable[[Event], None]) -> None:
        """Call `on_event` with every event from now on."""
        self.region.events.subscribers.append(on_event)

    def call(self, action: str, parameters: JsonObject, *, access_key: str = "") -> JsonObject:
        """Call an ECS action; the response has botocore's shapes, with aware datetimes.

        Raises:
            EcsError: ECS would return this error, or a fault was injected.
            DroppedConnectionError: A fault was injected.
        """
        with self._recorded("ecs", action, parameters, access_key):
            return self._perform(action, parameters, access_key)

    def call_ec2(self, action: str, parameters: JsonObject, *, access_key: str = "") -> JsonObject:
        """Call an EC2 action; the response has botocore's shapes.

        Raises:
            EcsError: EC2 would return this error, or a fault was injected.
            DroppedConnectionError: A fault was injected.
        """
        with self._recorded("ec2", action, parameters, access_key):
            if self._authorization is not None and action not in _CHANGING_INSTANCES:
                self._authorization.check_ec2(access_key, action)
            fault = self.faults.take(action)
            if fault is not None and fault.moment is not FaultMoment.AFTER:
                raise _ec2_error(fault)
            self.limits.take_ec2(action)
            answer = self._perform_ec2(action, parameters, access_key)
            if fault is not None:
                raise _ec2_error(fault)
            return answer

    def add_capacity_provider(self, name: str, spec: AutoScalingGroup, *, cluster: str = "default") -> CapacityProvider:
        """Create an Auto Scaling group and a capacity provider, and associate it with the cluster."""
        arn = self.clusters.add_group(spec)
        self.clusters.create_provider({"name": name, "autoScalingGroupProvider": {"autoScalingGroupArn": arn}})
        found = self.clusters.get(cluster)
        names = [*found.providers, name]
        strategy = found.default_strategy
        self.clusters.put_providers(
            {"cluster": cluster, "capacityProviders": names, "defaultCapacityProviderStrategy": strategy}
        )
        return self.clusters.providers[name]

    def add_daemon_service(self, name: str, task_definition: str, *, cluster: str = "default") -> None:
        """Run a task of this definition on every container instance of the cluster, those to come included."""
        self._services.add_daemon(self.clusters.get(cluster), name, task_definition)

    def launch_instance(
        self,
        instance_type: str,
        purchase: Purchase,
        zone: str,
        *,
        cluster: str = "default",
        attributes: Mapping[str, str] | None = None,
    ) -> str:
        """Launch an instance without a group, which registers with the cluster; return its id.

        Raises:
            EcsError: InsufficientInstanceCapacity.
        """
        if not self.instances.has_capacity(instance_type, purchase, zone):
            raise EcsError("InsufficientInstanceCapacity", f"There is no capacity for {instance_type} in {zone}.")
        spec = LaunchSpecification(
            instance_type, purchase, zone, self.clusters.get(cluster), DEFAULT_IMAGE_ID,
            tuple((attributes or {}).items()),
        )  # fmt: skip
        return self.instances.launch(spec).instance_id

    def instance(self, instance_id: str) -> Instance:
        """Return an instance by its id; raises InvalidInstanceID.NotFound."""
        instance = self.instances.by_id.get(instance_id)
        if instance is None:
            raise EcsError("InvalidInstanceID.NotFound", f"The instance ID '{instance_id}' does not exist")
        return instance

    def interrupt(self, instance_id: str, *, lead_seconds: float | None = None, rebalance_first: bool = False) -> None:
        """Publish a Spot interruption warning and terminate the instance after the lead time."""
        self.instances.interrupt(self.instance(instance_id), lead_seconds, rebalance_first=rebalance_first)

    def finish_interruptions(self) -> None:
        """Let the lead time of every warned instance be over."""
        self.instances.finish_interruptions()

    def terminate(self, instance_id: str) -> None:
        """Terminate an instance without a warning."""
        self.instances.terminate(self.instance(instance_id))

    def set_agent(self, instance_id: str, *, connected: bool) -> None:
        """Disconnect or reconnect the agent of an instance."""
        self.instances.set_agent(self.instance(instance_id), connected=connected)

    def set_capacity(
        self, instance_type: str, purchase: Purchase, instances: int | None, *, zone: str | None = None
    ) -> None:
        """Limit the available instances of a type, in a zone or in all zones; None removes the limit."""
        key = (instance_type, purchase, zone)
        if instances is None:
            self.instances.capacity.pop(key, None)
        else:
            self.instances.capacity[key] = instances

    def close(self) -> None:
        """End the processes of all containers."""
        self.processes.close()

    def _listen(self) -> None:
        self.lifecycle.on_stopped.append(self._task_stopped)
        self.instances.on_running.append(self._hosts.running)
        self.instances.on_joined.append(self._hosts.joined)
        self.instances.on_registered.append(self._instance_registered)
        self.instances.on_terminating.append(self._scaling.replace_terminated)

    @contextmanager
    def _recorded(self, service: str, action: str, parameters: JsonObject, access_key: str) -> Iterator[None]:
        record = RecordedRequest(service, action, parameters, access_key, self.clock.now(), ["dropped"])
        self.requests.append(record)
        try:
            yield
        except EcsError as error:
            record.outcome[0] = error.code
            raise
        record.outcome[0] = "ok"

    def _perform(self, action: str, parameters: JsonObject, access_key: str) -> JsonObject:
        handler = self._handlers.get(action)
        if handler is None:
            raise EcsError("UnknownOperationException", f"The simulator does not serve {action}.")
        fault = self.faults.take(action)
        if fault is not None and fault.moment is not FaultMoment.AFTER:
            raise fault.error()
        self.limits.take(action)
        if self._authorization is not None:
            definition = self.definitions.if_known(parameters["taskDefinition"]) if action == "RunTask" else {}
            self._authorization.check(access_key, action, parameters, definition)
        response = handler(parameters)
        if fault is not None:
            raise fault.error()
        return response

    def _perform_ec2(self, action: str, parameters: JsonObject, access_key: str) -> JsonObject:
        if action not in SERVED_EC2_ACTIONS:
            raise EcsError("InvalidAction", f"The action {action} is not valid for this web service.")
        if action in _CHANGING_INSTANCES:
            changes = {
                "CreateFleet": self.fleets.create,
                "RunInstances": self.launches.run,
                "TerminateInstances": self.ec2_instances.terminate,
            }
            return changes[action](parameters, access_key)
        handlers: dict[str, Handler] = {
            "DescribeInstances": self.ec2_instances.describe,
            "DescribeInstanceStatus": self.ec2_instances.describe_status,
            "DescribeSpotInstanceRequests": self.ec2_instances.describe_spot_requests,
            "DescribeSpotPriceHistory": self.ec2.describe_spot_price_history,
            "DescribeInstanceTypeOfferings": self.ec2.describe_instance_type_offerings,
            "DescribeInstanceTypes": self.ec2.describe_instance_types,
            "DescribeAvailabilityZones": self.ec2.describe_availability_zones,
            "DescribeCapacityReservations": self.reservations.describe,
        }
        return handlers[action](parameters)

    def _make_fleets(self, permissions: Ec2Permissions | None) -> Fleets:
        settings = self.settings.fleet
        subnets = dict(settings.subnets) or {subnet_of(zone): zone for zone in self.settings.offerings}
        pools = Pools(self.region, self.instances, self.settings.offerings, subnets, dict(settings.vcpu_quotas))
        templates = LaunchTemplates(settings.launch_templates)
        tokens = FleetTokens(self.clock, settings.token_lifetime)
        return Fleets(
            self.region, self.instances, self.clusters, self.limits, settings, pools, templates, tokens,
            self.reservations, permissions,
        )  # fmt: skip

    def _all_handlers(self) -> dict[str, Handler]:
        tagging = Tagging(self.region, self.clusters, self.definitions)
        registered_by = f"arn:aws:iam::{self.settings.account}:root"
        return {
            "RunTask": self.scheduler.run,
            "StopTask": self._stop_task,
            "DescribeTasks": self.queries.describe_tasks,
            "ListTasks": self.queries.list_tasks,
            "RegisterTaskDefinition": lambda request: self.definitions.register(request, registered_by=registered_by),
            "DeregisterTaskDefinition": lambda request: self.definitions.deregister(request["taskDefinition"]),
            "DeleteTaskDefinitions": self.definitions.delete,
            "DescribeTaskDefinition": self.definitions.describe,
            "ListTaskDefinitions": self.definitions.list_revisions,
            "ListTaskDefinitionFamilies": self.definitions.list_families,
            "CreateCluster": self.clusters.create,
            "DescribeClusters": self.clusters.describe,
            "ListClusters": self.clusters.list_clusters,
            "CreateCapacityProvider": self.clusters.create_provider,
            "DescribeCapacityProviders": self.clusters.describe_providers,
            "PutClusterCapacityProviders": self.clusters.put_providers,
            "ListServices": self._services.list_services,
            "DescribeContainerInstances": self.queries.describe_container_instances,
            "ListContainerInstances": self.queries.list_container_instances,
            "UpdateContainerInstancesState": lambda request: self._change_instances(
                request, self.queries.update_container_instances
            ),
            "DeregisterContainerInstance": self._deregister,
            "PutAttributes": lambda request: self._change_instances(request, self.queries.put_attributes),
            "ListTagsForResource": tagging.list_tags,
            "TagResource": tagging.tag,
            "UntagResource": tagging.untag,
        }

    def _stop_task(self, request: JsonObject) -> JsonObject:
        cluster = self.clusters.get(request.get("cluster"))
        task = self.queries.find_task(cluster, request["task"])
        if task is None:
            raise invalid_parameter("The referenced task was not found.")
        return self.scheduler.stop(task, request.get("reason"))

    def _deregister(self, request: JsonObject) -> JsonObject:
        instance = self.queries.deregister_container_instance(request)
        self.instances.deregister(instance)
        return {"containerInstance": container_instance_view(instance)}

    def _change_instances(self, request: JsonObject, change: Handler) -> JsonObject:
        """Change container instances, then place waiting tasks on them."""
        answer = change(request)
        for instance in self.clusters.get(request.get("cluster")).container_instances.values():
            self._offer(instance)
        return answer

    def _task_stopped(self, task: Task) -> None:
        self.clusters.keep_stopped(task)
        if task.client_token is not None:
            self.tokens.note_stop(task.client_token)
        if task.instance is not None:
            self._offer(task.instance)
            self._scaling.schedule_scale_in(task.instance)
            self._hosts.watch_idleness(task.instance)

    def _instance_registered(self, instance: Instance) -> None:
        self._services.start_daemons(instance)
        self._offer(instance)
        self._scaling.schedule_scale_in(instance)

    def _offer(self, instance: Instance) -> None:
        if instance.provider is not None and instance.provider.waiting and instance.is_alive and instance.is_registered:
            self.scheduler.place_waiting(instance.provider, [instance])


def _ec2_error(fault: Fault) -> Exception:
    """Return the error of a fault in EC2's terms."""
    if fault.moment is FaultMoment.THROTTLE and not fault.drop_connection:
        return EcsError("RequestLimitExceeded", "Request limit exceeded.")
    return fault.error()
