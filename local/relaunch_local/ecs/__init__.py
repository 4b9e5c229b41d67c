"""A strict simulator of Amazon ECS on EC2, in process under a virtual clock or over HTTP for boto3.

In process, under a virtual clock (timers fire only while it is advanced)::

    clock = Clock()
    processes = ScriptedProcesses(clock, lambda spec: Script(runtime_seconds=600))
    settings = SimulatorSettings(instance_types={"g5.xlarge": InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=22_888)})
    events: list[Event] = []
    simulator = EcsSimulator(clock, processes, settings, on_event=events.append)
    simulator.call("CreateCluster", {"clusterName": "training"})
    group = AutoScalingGroup("g5-spot", "g5.xlarge", Purchase.SPOT, ("us-east-1a", "us-east-1b"), max_size=4)
    simulator.add_capacity_provider("g5-xlarge-spot", group, cluster="training")
    ecs = InProcessClient(simulator)                     # like boto3.client("ecs"), raises botocore's ClientError
    ecs.register_task_definition(family="trainer", containerDefinitions=[...])
    ecs.run_task(cluster="training", taskDefinition="trainer", capacityProviderStrategy=[...])
    clock.advance(300)                                   # or clock.run_until(lambda: ..., limit_seconds=3600)
    simulator.interrupt("i-...")                         # warning now, `shutting-down` after Timing.warning_lead

Over HTTP, with real processes and delays divided by 20::

    clock = WallClock(speed=20)
    processes = LocalProcesses(log_sink)                 # log_sink(LogTarget | None, timestamp_ms, line)
    simulator = EcsSimulator(clock, processes, settings, authorize=PolicyAuthorizer(policies))
    guard = RequestGuard(secrets.get)                    # secret access keys by access key: requests must be signed
    server = EcsServer(simulator, guard, on_event=forward)  # called in order, on a separate thread
    clock.start(); server.start()                        # server.url is AWS_ENDPOINT_URL_ECS and AWS_ENDPOINT_URL_EC2
    ...
    server.close(); clock.stop()                         # ends every container

Other threads call `simulator` under `with clock.lock:`. Delays are in `Timing`; the clock's speed divides them, but not
timestamps, retention periods or token buckets. `simulator.requests` records every request, `simulator.instances.bill`
the cost of the instances; `simulator.faults.fail_next(action, times, Fault(...))` makes calls fail before or after they
take effect. Requests above ECS's rates are throttled unless `throttling=False`.

EC2 Fleet launches hosts from launch templates that the settings have, in the subnets of the zones with offerings::

    template = LaunchTemplate("lt-1", "hosts", (LaunchTemplateVersion(cluster="training"),))
    settings = SimulatorSettings(instance_types=..., fleet=FleetSettings(launch_templates=[template]))
    ec2 = InProcessClient(simulator, "ec2")              # create_fleet, describe_instances, terminate_instances
    simulator.fleets.faults.append(FleetFault("UnfulfillableCapacity", overrides=1))  # in Errors[], with HTTP 200
    simulator.fleets.plans.append(HostPlan(gpus=0, other_gpus_after=90))   # the next host; FleetSettings.plan_of: each
    simulator.fleets.pools.refusals["g5.xlarge", Purchase.SPOT, None] = "UnfulfillableCapacity"

A CapacityReservation is added by `simulator.reservations.add(...)`; requests name it in ReservedCapacityOptions.

HTTP control endpoints, JSON in and out, under `/_relaunch/`, signed like every request (`curl --aws-sigv4
aws:amz:eu-central-1:ecs --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"`); GET `requests`, `state`, `bill`; POST:

- `interrupt` {instance_id, lead_seconds?, rebalance_first?}, `rebalance` {instance_id}, `terminate` {instance_id};
- `agent` {instance_id, connected}, `unpullable` {image}, `throttling` {enabled}, `shutdown` {};
- `capacity` {instance_type, purchase, instances, zone?}; instances null: unlimited, 0: none;
- `fail` {action, times?, moment: before | after | throttle, code?, message?, drop_connection?};
- of EC2 Fleet: `fleet` {members of FleetFault, times?}, `host` {members of HostPlan, times?},
  `launch-template` {template_id, name, versions: [members of LaunchTemplateVersion]}, `subnet` {subnet_id, zone};
- `reservation` {members of CapacityReservation}, `reservation-cancelled` {reservation_id};
- `refuse` {instance_type, purchase, zone?, code}, `quota` {family, purchase, vcpus},
  `addresses` {subnet_id, instances}; null as the last one ends it.

Error messages are ECS's where it documents them or its users report them; the others are in its style.

`TotalTargetCapacity` may be more than 1, with `MinTargetCapacity` for all or none; one entry of `Instances` has the IDs
of a pool. Each instance takes the next of `plans`. `set_capacity` says how many instances a pool has, and further
members of FleetFault make an answer a part of what was asked for, or put errors beside instances. RunInstances launches
from a launch template, on-demand or into a reservation. Instances have private addresses, which are used again.

Not simulated of EC2 Fleet: instances spread over pools, other types than `instant`, prices, weights, placement groups,
overrides without subnet or with disks, the shutdown behavior `stop`; of RunInstances, spot and network settings. A
container instance that is deregistered by force has its tasks stopped, not orphaned.

Not simulated: services, Fargate, Managed Instances, `dependsOn` order, health checks, secrets, volumes, account
settings; ListAttributes and DeleteAttributes; the end of deleted revisions, which stay DELETE_IN_PROGRESS; containers'
memory added up against the task's; Java's regular expressions (`=~` takes Python's).

The packages depend one way: api → engine → rules, processes → clock, errors (import contracts in pyproject.toml).
"""

from relaunch_local.ecs.api.in_process import InProcessClient
from relaunch_local.ecs.api.server import EcsServer
from relaunch_local.ecs.clock import EPOCH, Clock, WallClock
from relaunch_local.ecs.engine.faults import Fault, FaultMoment
from relaunch_local.ecs.engine.fleet import NEURON_ATTRIBUTE, FleetFault
from relaunch_local.ecs.engine.instances import BOOT_ATTRIBUTE
from relaunch_local.ecs.engine.model import BillLine
from relaunch_local.ecs.engine.region import Event
from relaunch_local.ecs.engine.settings import (
    NO_WATCHDOG,
    AutoScalingGroup,
    FleetSettings,
    HostPlan,
    InstanceShape,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    SimulatorSettings,
    SpotPrice,
    Timing,
    Watchdog,
)
from relaunch_local.ecs.engine.simulator import EcsSimulator, RecordedRequest
from relaunch_local.ecs.errors import DroppedConnectionError, EcsError
from relaunch_local.ecs.processes.local import LocalProcesses
from relaunch_local.ecs.processes.port import (
    LogTarget,
    Processes,
    ProcessSpec,
    ProcessStartError,
    Script,
    ScriptedProcesses,
)

__all__ = [
    "BOOT_ATTRIBUTE",
    "EPOCH",
    "NEURON_ATTRIBUTE",
    "NO_WATCHDOG",
    "AutoScalingGroup",
    "BillLine",
    "Clock",
    "DroppedConnectionError",
    "EcsError",
    "EcsServer",
    "EcsSimulator",
    "Event",
    "Fault",
    "FaultMoment",
    "FleetFault",
    "FleetSettings",
    "HostPlan",
    "InProcessClient",
    "InstanceShape",
    "LaunchTemplate",
    "LaunchTemplateVersion",
    "LocalProcesses",
    "LogTarget",
    "ProcessSpec",
    "ProcessStartError",
    "Processes",
    "Purchase",
    "RecordedRequest",
    "Script",
    "ScriptedProcesses",
    "SimulatorSettings",
    "SpotPrice",
    "Timing",
    "WallClock",
    "Watchdog",
]
