from datetime import timedelta

import pytest

from fakes.fleet_region import FleetRegion, override
from fakes.simulated_region import container, gpu
from relaunch_local.ecs import NO_WATCHDOG, HostPlan, Script, Timing, Watchdog

WATCHDOG = Watchdog(idle=600.0, unregistered=900.0, without_gpus=300.0)
SHUTDOWN = "Client.InstanceInitiatedShutdown"


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion(watchdog=WATCHDOG)


def gpus(registration: dict[str, object]) -> list[str]:
    """Return the registered GPUs of an event, and check that as many remain."""
    by_kind = {}
    for kind in ("registeredResources", "remainingResources"):
        resources = registration[kind]
        assert isinstance(resources, list)
        by_kind[kind] = [each["stringSetValue"] for each in resources if each["name"] == "GPU"]
    assert by_kind["registeredResources"] == by_kind["remainingResources"]
    return by_kind["registeredResources"][0] if by_kind["registeredResources"] else []


def test_a_host_is_pending_then_running_then_registered(region: FleetRegion) -> None:
    instance_id = region.launch(plan=HostPlan(boot=10.0, registration=14.0, visibility=0.0))
    states = []
    for seconds in (9, 2, 12, 2):
        region.clock.advance(seconds)
        states.append((region.state(instance_id), len(region.registrations())))

    assert states == [("pending", 0), ("running", 0), ("running", 0), ("running", 1)]


def test_bare_metal_takes_more_than_twenty_minutes_from_running_until_it_registers() -> None:
    region = FleetRegion(watchdog=NO_WATCHDOG)
    simulator = region.simulator
    simulator.region.shapes = {"g4dn.metal": simulator.region.shapes["g5.12xlarge"]}
    simulator.fleets.pools.offerings = {"us-east-1a": ["g4dn.metal"]}
    instance_id = region.launch(override("g4dn.metal"), plan=HostPlan(boot=10.0, registration=14.0, visibility=0.0))

    region.clock.advance(1_200)
    assert (region.state(instance_id), region.registrations()) == ("running", [])
    region.clock.advance(300)

    assert [each["ec2InstanceId"] for each in region.registrations()] == [instance_id]


def test_each_host_may_have_delays_of_its_own() -> None:
    region = FleetRegion(plan_of=lambda name, _zone, _purchase: HostPlan(registration=200.0 if "12" in name else None))
    region.launch(override("g5.12xlarge"))
    fast = region.launch()

    region.clock.advance(100)
    assert [each["ec2InstanceId"] for each in region.registrations()] == [fast]
    region.clock.advance(150)
    assert len(region.registrations()) == 2


def test_a_host_that_never_joins_shuts_itself_down(region: FleetRegion) -> None:
    instance_id = region.launch(plan=HostPlan(joins=False))

    region.clock.advance(30 + 899)
    assert region.state(instance_id) == "running"
    region.clock.advance(2)

    described = region.described(instance_id)
    assert described["State"]["Name"] == "shutting-down"
    assert described["StateReason"] == {"Code": SHUTDOWN, "Message": f"{SHUTDOWN}: Instance initiated shutdown"}
    assert region.registrations() == []


def test_without_user_data_there_is_neither_agent_nor_watchdog(region: FleetRegion) -> None:
    instance_id = region.launch(plan=HostPlan(runs_user_data=False))

    region.clock.advance(24 * 3_600)

    assert region.state(instance_id) == "running"
    assert region.registrations() == []
    assert region.living() == 1


def test_an_idle_host_shuts_itself_down(region: FleetRegion) -> None:
    region.register()
    instance_id = region.ready()
    region.clock.advance(590)
    arn = region.run_one()
    region.wait_for(arn, "STOPPED")

    region.clock.advance(590)
    assert region.state(instance_id) == "running"
    region.clock.advance(20)

    assert region.described(instance_id)["StateReason"]["Code"] == SHUTDOWN


def test_a_busy_host_lives(region: FleetRegion) -> None:
    region.register()
    instance_id = region.ready()
    region.run_one()

    region.clock.advance(601)

    assert region.state(instance_id) == "running"


def test_without_a_watchdog_an_idle_host_is_leaked() -> None:
    region = FleetRegion(watchdog=NO_WATCHDOG)
    region.ready()
    region.launch(plan=HostPlan(joins=False))
    region.ready(plan=HostPlan(gpus=0))

    region.clock.advance(24 * 3_600)

    assert region.living() == 3


def test_gpus_that_come_late_come_with_another_event(region: FleetRegion) -> None:
    region.register("train", container(resourceRequirements=gpu()))
    region.ready(plan=HostPlan(gpus=0, other_gpus_after=90.0))
    failures = region.run()["failures"]
    region.clock.advance(91)

    first, second = region.registrations()

    assert [each["reason"] for each in failures] == ["RESOURCE:GPU"]
    assert (gpus(first), len(gpus(second))) == ([], 1)
    assert first["containerInstanceArn"] == second["containerInstanceArn"]
    assert second["version"] > first["version"]
    assert region.run_one()


def test_fewer_gpus_than_the_type_has_stay_fewer(region: FleetRegion) -> None:
    instance_id = region.ready(override("g5.12xlarge"), plan=HostPlan(gpus=3))
    region.clock.advance(301)

    assert [len(gpus(each)) for each in region.registrations()] == [3]
    assert region.state(instance_id) == "running"


def test_a_host_that_stays_without_gpus_shuts_itself_down(region: FleetRegion) -> None:
    instance_id = region.ready(plan=HostPlan(gpus=0))

    region.clock.advance(299)
    assert region.state(instance_id) == "running"
    region.clock.advance(2)

    assert region.described(instance_id)["StateReason"]["Code"] == SHUTDOWN


def test_a_type_without_gpus_needs_none() -> None:
    region = FleetRegion(watchdog=Watchdog(idle=None, without_gpus=300.0))
    instance_id = region.ready(override("inf2.24xlarge"))

    region.clock.advance(900)

    assert region.state(instance_id) == "running"


def test_the_agent_disconnects_and_reconnects_several_times_an_hour_and_tasks_go_on() -> None:
    region = FleetRegion(watchdog=NO_WATCHDOG)
    region.register()
    region.script = lambda _spec: Script(runtime_seconds=1_000.0)
    instance_id = region.ready(plan=HostPlan(disconnects_every=900.0, disconnected_for=200.0))
    arn = region.run_one()

    region.clock.advance(3_600)

    connected = [each["agentConnected"] for each in region.registrations()]
    assert connected.count(False) == 3
    assert (connected[0], connected[-1]) == (True, True)
    task = region.task(arn)
    assert task["containers"][0]["exitCode"] == 0
    assert (task["stoppedAt"] - task["startedAt"]).total_seconds() > 1_000 + 40, "its end is reported late"
    assert region.state(instance_id) == "running"


def test_an_agent_that_has_registered_may_not_be_connected_yet(region: FleetRegion) -> None:
    region.register()
    region.ready(plan=HostPlan(connects_after=20.0))
    (failure,) = region.run()["failures"]

    region.clock.advance(21)

    assert failure["reason"] == "AGENT"
    told = [(each["status"], each["agentConnected"]) for each in region.registrations()]
    assert told == [("ACTIVE", False), ("ACTIVE", True)]
    assert len(region.run()["tasks"]) == 1


def test_an_interrupted_spot_host_is_warned_and_says_why_it_ended(region: FleetRegion) -> None:
    instance_id = region.ready(market="spot")
    region.simulator.interrupt(instance_id, rebalance_first=True)
    region.clock.advance(119)
    assert region.state(instance_id) == "running"

    region.clock.advance(2)

    assert region.described(instance_id)["StateReason"]["Code"] == "Server.SpotInstanceTermination"
    (warning,) = region.details("EC2 Spot Instance Interruption Warning")
    assert warning == {"instance-id": instance_id, "instance-action": "terminate"}
    assert region.details("EC2 Instance Rebalance Recommendation") == [{"instance-id": instance_id}]


@pytest.mark.parametrize(
    ("market", "age_seconds", "is_interrupted", "is_free"),
    [
        pytest.param("spot", 3_000, True, True, id="interrupted-within-the-first-hour"),
        pytest.param("spot", 3_600, True, False, id="interrupted-later"),
        pytest.param("spot", 3_000, False, False, id="ended-by-its-user"),
    ],
)
def test_ec2_does_not_bill_a_spot_host_that_it_interrupts_within_the_first_hour(
    market: str, age_seconds: float, *, is_interrupted: bool, is_free: bool
) -> None:
    region = FleetRegion(watchdog=NO_WATCHDOG)
    instance_id = region.ready(market=market)
    region.clock.advance(age_seconds)
    if is_interrupted:
        region.simulator.interrupt(instance_id)
        region.clock.advance(121)
    else:
        region.ec2.terminate_instances(InstanceIds=[instance_id])

    (line,) = region.simulator.instances.bill

    assert line.is_free is is_free
    assert (line.cost_usd(region.clock.now()) == 0.0) is is_free


def test_billing_stops_minutes_before_the_host_is_terminated() -> None:
    region = FleetRegion(timing=Timing(fleet_shutdown=330.0))
    instance_id = region.ready()
    region.ec2.terminate_instances(InstanceIds=[instance_id])
    ended_at = region.clock.now()

    region.clock.advance(329)
    assert region.state(instance_id) == "shutting-down"
    region.clock.advance(2)

    (line,) = region.simulator.instances.bill
    assert region.state(instance_id) == "terminated"
    assert (line.billing_ended_at, line.terminated_at) == (ended_at, ended_at + timedelta(seconds=330))
    hours = (ended_at - line.launched_at) / timedelta(hours=1)
    assert line.cost_usd(region.clock.now()) == pytest.approx(0.5 * hours)
    states = [each["state"] for each in region.details("EC2 Instance State-change Notification")]
    assert states == ["pending", "running", "shutting-down", "terminated"]


def test_a_connected_host_is_deregistered_soon_after_its_end(region: FleetRegion) -> None:
    region.ec2.terminate_instances(InstanceIds=[region.ready()])

    region.clock.advance(65 + 10)

    assert region.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []
    assert region.registrations()[-1]["status"] == "INACTIVE"


def test_tasks_on_a_ghost_run_on_for_ecs_until_it_is_deregistered(region: FleetRegion) -> None:
    region.register()
    region.script = lambda _spec: Script(runtime_seconds=None)
    instance_id = region.ready()
    arn = region.run_one()
    region.wait_for(arn, "RUNNING")
    region.simulator.set_agent(instance_id, connected=False)
    region.ec2.terminate_instances(InstanceIds=[instance_id])
    region.clock.advance(600)
    assert region.state(instance_id) == "terminated"
    assert region.task(arn)["lastStatus"] == "RUNNING"

    ghost = region.simulator.instance(instance_id).arn
    region.ecs.deregister_container_instance(cluster="c", containerInstance=ghost, force=True)

    task = region.task(arn)
    assert (task["lastStatus"], task["stopCode"]) == ("STOPPED", "TerminationNotice")


def test_a_disconnected_host_leaves_a_ghost_for_twenty_minutes(region: FleetRegion) -> None:
    region.register()
    instance_id = region.ready()
    region.simulator.set_agent(instance_id, connected=False)
    region.ec2.terminate_instances(InstanceIds=[instance_id])
    region.clock.advance(65 + 1_199)

    (arn,) = region.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    ghost = region.ecs.describe_container_instances(cluster="c", containerInstances=[arn])["containerInstances"][0]
    assert (ghost["status"], ghost["agentConnected"]) == ("ACTIVE", False)
    assert region.run()["failures"] == [{"arn": arn, "reason": "AGENT"}]

    region.clock.advance(2)
    assert region.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []


@pytest.mark.parametrize(
    ("tag", "pull", "seconds"),
    [
        ("trainer@sha256:5e07", None, 60.0),
        ("trainer@sha256:5e07", 90.0, 30.0),
        ("other@sha256:5e07", 90.0, 120.0),
        ("", None, 120.0),
    ],
    ids=["the same image", "a host with a pull of its own", "another image", "no image"],
)
def test_an_image_that_user_data_pulls_is_there_earlier(tag: str, pull: float | None, seconds: float) -> None:
    region = FleetRegion(timing=Timing(pull=120.0))
    region.register("train", container(image="trainer@sha256:5e07"))
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "relaunch:image", "Value": tag}]}] if tag else []
    region.ready(TagSpecifications=tags, plan=HostPlan(boot=30.0, registration=60.0, pull=pull))

    arn = region.run_one()
    task = region.wait_for(arn, "RUNNING")

    pulled = task["pullStoppedAt"] - task["pullStartedAt"]
    assert pulled.total_seconds() == pytest.approx(seconds, abs=3)
