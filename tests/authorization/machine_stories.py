"""What functions do with machines and clusters, each by its entry point and with its role's permissions alone."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from authorization.stories import Stories, make_demo
from fakes.fleet import make_fleet_request, make_override
from fakes.github_api import TOKEN, GithubApi, serve_github
from fakes.reservations import make_block
from fakes.role_world import FAMILY, RESERVATION, unique
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.machines.events import InstanceLaunched
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import PortError
from relaunch.usecases.refresh_offerings import refresh_offerings
from relaunch.usecases.sweep_deliveries import sweep_deliveries
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.simulation.github import GithubWebhooks


def launch_instance(stories: Stories) -> str:
    """Launch an instance of the stack that no machine accounts for, and return its ID."""
    tags = [{"Key": "relaunch:stack", "Value": "relaunch"}, {"Key": "relaunch:machine", "Value": "m-unknown"}]
    kinds = ("instance", "volume", "fleet")
    # EC2 launches two a second.
    stories.pass_time(2.0)
    return stories.world.region.launch(TagSpecifications=[{"ResourceType": kind, "Tags": tags} for kind in kinds])


def tell_of_an_agent_that_stays_away(stories: Stories) -> None:
    """A machine hangs: its status checks fail, and it is ended once its training saves no more."""
    world = stories.world
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    job_id = json.loads(stories.received("AttemptsQueue"))["job_id"]
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    stories.pass_time(240.0)
    stories.deliver("observe_task", stories.event("ECS Container Instance State Change"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    stories.pass_time(120.0)
    stories.deliver("observe_task", stories.event("ECS Task State Change", lastStatus="RUNNING"))
    stories.checkpoints += [f"demo/{job_id}/attempt-1/step-0000120/{name}" for name in ("manifest.json", "state.json")]
    job = world.stores.jobs.load_job(job_id)
    assert job is not None
    instances = world.region.simulator.instances
    host = instances.by_id[job.current_attempt.placement.instance_id]
    instances.set_agent(host, connected=False)
    host.is_impaired = True
    for _ in range(25):
        stories.pass_time(60.0)
        stories.reconcile()
    assert host.is_alive
    stories.checkpoints.clear()
    stories.pass_time(60.0)
    stories.reconcile()
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    assert not host.is_alive


def tell_of_a_machine_in_another_zone(stories: Stories) -> None:
    """A request names one subnet of each zone."""
    place = make_override("g5.xlarge", "us-east-1b", PurchaseOption.SPOT, subnet_id="subnet-b")
    machine_id = unique("m")
    request = make_fleet_request(place, machine_id=machine_id, launch_template_id="lt-1", launch_template_version="2")
    with stories.world.function("request_machine") as dependencies:
        tags = {"relaunch:stack": "relaunch", "relaunch:machine": machine_id}
        assert isinstance(dependencies.deps.fleet.request(replace(request, tags=tags)), InstanceLaunched)


def tell_of_machines_in_a_reservation(stories: Stories) -> None:
    """EC2 Fleet launches one machine into a reservation, and RunInstances several."""
    world = stories.world
    block = make_block(reservation_id=RESERVATION)
    now = world.region.clock.now()
    reserved = CapacityReservation(
        RESERVATION, block.instance_type, block.zone, 3, block.type.value, now, now + timedelta(days=1)
    )
    world.region.simulator.reservations.add(reserved)
    place = make_override("g5.xlarge", "us-east-1a", PurchaseOption.RESERVED, subnet_id="subnet-a")
    with world.function("request_machine") as dependencies:
        for size in (1, 2):
            machine_id = unique("m")
            request = make_fleet_request(
                place,
                machine_id=machine_id,
                launch_template_id="lt-1",
                launch_template_version="2",
                tags={"relaunch:stack": "relaunch", "relaunch:machine": machine_id},
                reservation=block,
                size=size,
            )
            answer = dependencies.deps.fleet.request(request)
            assert isinstance(answer, InstanceLaunched), answer
            assert len(answer.others) == size - 1


def tell_of_a_request_that_ec2_refuses(stories: Stories) -> None:
    """The machine is given up, and no longer counted."""
    stories.ask(action="submit", definition="demo", idempotency_key=unique("key"))
    stories.deliver("launch_attempt", stories.received("AttemptsQueue"))
    simulator = stories.world.region.simulator
    for purchase in Purchase:
        simulator.set_capacity("g5.xlarge", purchase, 0)
    stories.deliver("request_machine", stories.received("MachinesQueue"))
    for purchase in Purchase:
        simulator.set_capacity("g5.xlarge", purchase, None)


def tell_of_instances_of_nobody(stories: Stories) -> None:
    """Reconcile ends what no machine accounts for, and looks at every task of the cluster."""
    launch_instance(stories)
    stories.world.region.run("g5-spot", taskDefinition=FAMILY, startedBy="unknown/1")
    for _ in range(30):
        stories.pass_time(60.0)
        stories.reconcile()


def tell_of_what_the_cluster_is_asked(stories: Stories) -> None:
    """What lost events should have told is looked up, and what is left of machines."""
    region = stories.world.region
    task = region.run_one("g5-spot", taskDefinition=FAMILY)
    started = region.wait_for(task, "RUNNING")
    node, instance_id = started["containerInstanceArn"], region.instance_of(task)
    ecs = {
        "launch_attempt": ("find_tasks_of", "describe", "find_gpus", "find_remaining_resources", "stop"),
        "observe_capacity": ("find_tasks_on", "drain"),
        "observe_task": ("find_node", "describe", "stop"),
        "reconcile": ("describe", "list_tasks", "list_nodes", "find_daemon_services", "stop"),
        "submit_job": ("stop",),
        "job_api": ("stop",),
    }
    arguments: Mapping[str, tuple[Any, ...]] = {
        "describe": ([task],),
        "drain": (instance_id,),
        "find_gpus": ("g5.xlarge", "g5-spot"),
        "find_node": (node,),
        "find_remaining_resources": ("g5.xlarge", "g5-spot"),
        "find_tasks_of": (AttemptKey("job", 1),),
        "find_tasks_on": (instance_id,),
        "stop": (task, "of a story"),
    }
    for function, methods in ecs.items():
        with stories.world.function(function) as dependencies:
            target = dependencies.deps.targets.named(Target.ECS)
            for method in methods:
                found = getattr(target, method)(*arguments.get(method, ()))
                if isinstance(found, Iterator):
                    list(found)
    with stories.world.function("launch_attempt") as dependencies:
        dependencies.deps.launches.count_requests()
        dependencies.deps.hosts.find_address(instance_id)
    with stories.world.function("request_machine") as dependencies:
        dependencies.deps.jobs.load_job("demo-1")
        pool = OfferingKey("g5.xlarge", "us-east-1a", PurchaseOption.SPOT)
        dependencies.deps.fleet.spot_prices(pool, stories.world.region.clock.now())
    for function in ("request_machine", "reconcile"):
        with stories.world.function(function) as dependencies:
            dependencies.deps.fleet.describe([instance_id])
            dependencies.deps.targets.named(Target.ECS).deregister(node)
    for function in ("observe_task", "reconcile"):
        with stories.world.function(function) as dependencies:
            dependencies.deps.hosts.look(instance_id, is_spot=True)


def tell_of_clusters(stories: Stories) -> None:
    """A function signs in to a cluster where a job is on it."""
    for function in ("submit_job", "job_api", "launch_attempt", "reconcile"):
        for target in WITH_PODS:
            with stories.world.function(function) as dependencies, suppress(PortError):
                dependencies.deps.targets.named(target).describe(["resnet-1f2e3d4c-1-1"])


def tell_of_a_refresh(stories: Stories) -> None:
    """Types, zones, prices, scores and quotas are asked for, and kept in one item."""
    for _ in range(2):
        with stories.world.refreshing() as dependencies, suppress(PortError):
            refresh_offerings(dependencies)
        stories.pass_time(timedelta(days=2).total_seconds())


def tell_of_a_sweep_of_failed_deliveries(stories: Stories) -> None:
    """The token and the definitions are read; what was reached is kept in items of its own."""
    world = stories.world
    world.stores.definitions.save_definition(replace(make_demo(), triggers=(GithubTrigger("acme/vision", "push"),)))
    world.answers["secretsmanager", "GetSecretValue"] = lambda **_: {"SecretString": TOKEN}
    asked: list[str] = []
    github = GithubApi(GithubWebhooks(world.region.clock.now, lambda _webhook, guid: asked.append(guid)))
    github.webhooks.note_attempt(github.webhooks.add_webhook("repos/acme/vision", 42), "guid-1", 503)
    with serve_github(github) as api, world.sweeping(api.url, api.hook_url) as dependencies:
        for _ in range(2):
            sweep_deliveries(dependencies, lambda: True)
    assert asked == ["guid-1", "guid-1"]
