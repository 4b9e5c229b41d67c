from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.ecs_region import TASK_STATE_CHANGE, EcsWorld
from relaunch_local.ecs import Event, Purchase, Script

WARNING = "EC2 Spot Instance Interruption Warning"
STATE_CHANGE = "EC2 Instance State-change Notification"


@pytest.fixture
def training(world: EcsWorld) -> tuple[EcsWorld, str, str]:
    world.provider(max_size=1)
    world.register()
    world.script = lambda _spec: Script(runtime_seconds=None)
    arn = world.run_one("g5-spot", startedBy="job-1/1")
    world.wait_for(arn, "RUNNING")
    return world, arn, world.instance_of(arn)


def event(world: EcsWorld, detail_type: str) -> Event:
    return next(each for each in reversed(world.events) if each["detail-type"] == detail_type)


def test_ecs_lets_a_standalone_task_run_on_after_the_warning(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, instance_id = training
    world.simulator.interrupt(instance_id)

    world.clock.advance(119)

    assert event(world, WARNING)["detail"] == {"instance-id": instance_id, "instance-action": "terminate"}
    assert (world.task(arn)["lastStatus"], world.task(arn)["desiredStatus"]) == ("RUNNING", "RUNNING")


def test_when_the_host_goes_its_tasks_stop_with_a_termination_notice_and_no_exit_code(
    training: tuple[EcsWorld, str, str],
) -> None:
    world, arn, instance_id = training
    warned_at = world.clock.now()
    world.simulator.interrupt(instance_id)

    task = world.wait_for(arn, "STOPPED")

    assert (task["stopCode"], task["stoppedReason"]) == (
        "TerminationNotice",
        f"Host EC2 (instance {instance_id}) terminated.",
    )
    assert "exitCode" not in task["containers"][0]
    assert task["stoppedAt"] - warned_at == timedelta(seconds=120 + 20 + 10)
    assert [each["state"] for each in world.details(STATE_CHANGE)] == [
        "pending",
        "running",
        "shutting-down",
        "terminated",
    ]


def test_a_task_stopped_in_time_keeps_its_exit_code_and_stop_code(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, instance_id = training
    world.simulator.interrupt(instance_id)

    world.ecs.stop_task(cluster="c", task=arn, reason="interruption")
    task = world.wait_for(arn, "STOPPED")
    world.clock.advance(300)

    assert (task["stopCode"], task["containers"][0]["exitCode"]) == ("UserInitiated", 143)
    assert world.task(arn) == task


def test_a_host_can_go_without_a_warning(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, instance_id = training
    world.simulator.terminate(instance_id)
    world.simulator.terminate(instance_id)

    task = world.wait_for(arn, "STOPPED")

    assert task["stopCode"] == "TerminationNotice"
    assert world.details(WARNING) == []
    assert len([each for each in world.details(STATE_CHANGE) if each["state"] == "terminated"]) == 1


def test_a_task_on_a_host_that_goes_while_it_pulls_has_not_started(world: EcsWorld) -> None:
    world.provider(max_size=1)
    world.register()
    arn = world.run_one("g5-spot")
    world.wait_for(arn, "PENDING")
    world.simulator.terminate(world.instance_of(arn))

    task = world.wait_for(arn, "STOPPED")

    assert task["stopCode"] == "TerminationNotice"
    assert "startedAt" not in task
    assert world.processes.started == []


def test_a_lost_machine_is_replaced_by_its_group(training: tuple[EcsWorld, str, str]) -> None:
    world, _, instance_id = training
    world.simulator.terminate(instance_id)

    world.clock.advance(300)

    (arn,) = world.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    found = world.ecs.describe_container_instances(cluster="c", containerInstances=[arn])["containerInstances"][0]
    assert found["ec2InstanceId"] != instance_id


def test_a_group_may_be_told_not_to_replace(world: EcsWorld) -> None:
    world.provider(max_size=1, replaces_lost_instances=False)
    world.register()
    arn = world.run_one("g5-spot")
    world.wait_for(arn, "RUNNING")
    world.simulator.terminate(world.instance_of(arn))

    world.clock.advance(600)

    assert len(world.simulator.machines.bill) == 1


def test_an_instance_of_no_group_is_interrupted_and_placed_upon_likewise(world: EcsWorld) -> None:
    world.register()
    instance_id = world.instance(purchase=Purchase.SPOT)
    arn = world.run_one()
    world.simulator.interrupt(instance_id, lead_seconds=3.0, rebalance_first=True)

    assert world.wait_for(arn, "STOPPED")["stopCode"] == "TerminationNotice"
    rebalance = event(world, "EC2 Instance Rebalance Recommendation")
    assert rebalance["detail"] == {"instance-id": instance_id}


def test_no_capacity_refuses_the_launch_of_an_instance(world: EcsWorld) -> None:
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 1)
    world.instance(purchase=Purchase.SPOT)

    with pytest.raises(Exception, match="InsufficientInstanceCapacity"):
        world.instance(purchase=Purchase.SPOT)


def test_an_instance_that_goes_before_it_registers_leaves_no_trace(world: EcsWorld) -> None:
    instance_id = world.simulator.launch_instance("g5.xlarge", Purchase.SPOT, "us-east-1a", cluster="c")
    world.clock.advance(10)
    world.simulator.terminate(instance_id)
    world.clock.advance(600)

    assert world.details("ECS Container Instance State Change") == []
    assert world.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []


def test_a_task_that_waits_for_a_lost_host_goes_to_the_next(training: tuple[EcsWorld, str, str]) -> None:
    world, _, instance_id = training
    world.register("big")
    waiting = world.run_one(
        "g5-spot", overrides={"containerOverrides": [{"name": "main", "cpu": 4_096}]}, taskDefinition="big"
    )
    world.simulator.terminate(instance_id)

    world.wait_for(waiting, "RUNNING")

    assert world.instance_of(waiting) != instance_id


def test_every_event_is_a_full_envelope_with_an_id_of_its_own(training: tuple[EcsWorld, str, str]) -> None:
    world, _, instance_id = training
    world.simulator.interrupt(instance_id)
    world.clock.advance(300)

    for each in world.events:
        assert set(each) == {
            "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail",
        }  # fmt: skip
        assert (each["version"], each["account"], each["region"]) == ("0", "111122223333", "us-east-1")
        assert each["time"].endswith("Z")
        assert "." not in each["time"]
        assert len(each["resources"]) == 1
    assert len({each["id"] for each in world.events}) == len(world.events)
    sources = {each["source"] for each in world.events}
    assert sources == {"aws.ecs", "aws.ec2"}


def test_a_task_state_change_carries_iso_times_where_descriptions_carry_moments(
    training: tuple[EcsWorld, str, str],
) -> None:
    world, arn, instance_id = training
    world.simulator.terminate(instance_id)
    task = world.wait_for(arn, "STOPPED")

    found = event(world, TASK_STATE_CHANGE)
    detail: dict[str, Any] = found["detail"]

    assert found["resources"] == [arn]
    assert detail["stoppedAt"] == task["stoppedAt"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert detail["updatedAt"] == detail["stoppedAt"]
    assert "tags" not in detail
    same = set(task) - {"tags"} - {name for name in task if name.endswith("At")}
    assert {name: detail[name] for name in same} == {name: task[name] for name in same}
    assert detail["startedBy"] == "job-1/1"
    assert detail["group"] == "family:train"


def test_a_container_instance_state_change_tells_of_agent_and_resources(training: tuple[EcsWorld, str, str]) -> None:
    world, _, instance_id = training
    world.simulator.set_agent(instance_id, connected=False)

    details = world.details("ECS Container Instance State Change")

    assert [each["agentConnected"] for each in details] == [True, True, False]
    assert [each["version"] for each in details] == [1, 2, 3]
    free = {each["name"]: each.get("integerValue") for each in details[1]["remainingResources"]}
    assert free["CPU"] == 3_072
    assert details[0]["clusterArn"] == "arn:aws:ecs:us-east-1:111122223333:cluster/c"


def test_an_unknown_instance_cannot_be_interrupted(world: EcsWorld) -> None:
    with pytest.raises(Exception, match=r"InvalidInstanceID\.NotFound"):
        world.simulator.interrupt("i-0")


def test_ec2_describes_what_became_of_an_instance(training: tuple[EcsWorld, str, str]) -> None:
    world, _, instance_id = training
    world.simulator.terminate(instance_id)

    described = world.simulator.call_ec2("DescribeInstances", {"InstanceIds": [instance_id]})

    instance = described["Reservations"][0]["Instances"][0]
    assert instance["State"]["Name"] == "shutting-down"
    assert (instance["InstanceType"], instance["InstanceLifecycle"]) == ("g5.xlarge", "spot")
    world.clock.advance(7_200)
    other = world.instance()
    world.simulator.terminate(other)
    world.clock.advance(7_200)
    world.simulator.terminate(world.instance())
    world.clock.advance(60)
    with pytest.raises(Exception, match=r"InvalidInstanceID\.NotFound"):
        world.simulator.call_ec2("DescribeInstances", {"InstanceIds": [instance_id]})


def test_the_tags_of_a_task_live_until_it_is_stopped_by_a_call(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, _ = training
    world.ecs.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}])
    world.ecs.untag_resource(resourceArn=arn, tagKeys=["b"])
    assert world.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "1"}]

    world.ecs.stop_task(cluster="c", task=arn)

    assert world.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == []
    world.wait_for(arn, "STOPPED")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        world.ecs.list_tags_for_resource(resourceArn=arn)


def test_tags_of_the_definition_and_of_ecs_are_propagated(world: EcsWorld) -> None:
    world.register(tags=[{"key": "team", "value": "vision"}, {"key": "own", "value": "definition"}])
    world.instance()

    arn = world.run_one(
        tags=[{"key": "own", "value": "request"}], propagateTags="TASK_DEFINITION", enableECSManagedTags=True
    )

    assert {each["key"]: each["value"] for each in world.task(arn)["tags"]} == {
        "own": "request",
        "team": "vision",
        "aws:ecs:clusterName": "c",
    }


def test_a_stop_that_was_under_way_when_the_host_went_stays_the_users(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, instance_id = training
    world.simulator.interrupt(instance_id, lead_seconds=5.0)
    world.simulator.set_agent(instance_id, connected=False)
    world.ecs.stop_task(cluster="c", task=arn, reason="interruption")

    task = world.wait_for(arn, "STOPPED")

    assert (task["stopCode"], task["stoppedReason"]) == ("UserInitiated", "interruption")
    assert "exitCode" not in task["containers"][0]


def test_containers_end_with_their_machine(training: tuple[EcsWorld, str, str]) -> None:
    world, arn, instance_id = training
    (task,) = world.simulator.clusters.get("c").tasks.values()
    kills: list[str] = []
    task.containers[0].handle = _Recorder(kills)

    world.simulator.terminate(instance_id)

    assert kills == ["kill"]
    assert world.task(arn)["lastStatus"] == "RUNNING"


class _Recorder:
    def __init__(self, kills: list[str]) -> None:
        self._kills = kills

    def terminate(self) -> None:
        self._kills.append("terminate")

    def kill(self) -> None:
        self._kills.append("kill")


def test_a_terminated_instance_makes_room_for_the_next(world: EcsWorld) -> None:
    world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 1, zone="us-east-1a")
    for _ in range(3):
        world.simulator.terminate(world.instance(purchase=Purchase.SPOT))

    assert len(world.simulator.machines.bill) == 3
