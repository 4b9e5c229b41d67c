from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import TASK_STATE_CHANGE, SimulatedRegion
from relaunch_local.ecs import Event, Purchase, Script
from relaunch_local.ecs.engine.model import StateReason

WARNING = "EC2 Spot Instance Interruption Warning"
Training = tuple[SimulatedRegion, str, str]
"""A region, a running task, and the id of its instance."""
STATE_CHANGE = "EC2 Instance State-change Notification"


@pytest.fixture
def training(region: SimulatedRegion) -> Training:
    region.provider(max_size=1)
    region.register()
    region.script = lambda _spec: Script(runtime_seconds=None)
    arn = region.run_one("g5-spot", startedBy="job-1/1")
    region.wait_for(arn, "RUNNING")
    return region, arn, region.instance_of(arn)


def event(region: SimulatedRegion, detail_type: str) -> Event:
    return next(each for each in reversed(region.events) if each["detail-type"] == detail_type)


def test_ecs_lets_a_standalone_task_run_on_after_the_warning(training: Training) -> None:
    region, arn, instance_id = training
    region.simulator.interrupt(instance_id)

    region.clock.advance(119)

    assert event(region, WARNING)["detail"] == {"instance-id": instance_id, "instance-action": "terminate"}
    assert (region.task(arn)["lastStatus"], region.task(arn)["desiredStatus"]) == ("RUNNING", "RUNNING")


def test_tasks_of_a_terminated_instance_stop_with_a_termination_notice_and_no_exit_code(training: Training) -> None:
    region, arn, instance_id = training
    warned_at = region.clock.now()
    region.simulator.interrupt(instance_id)

    task = region.wait_for(arn, "STOPPED")

    assert (task["stopCode"], task["stoppedReason"]) == (
        "TerminationNotice",
        f"Host EC2 (instance {instance_id}) terminated.",
    )
    assert "exitCode" not in task["containers"][0]
    assert task["stoppedAt"] - warned_at == timedelta(seconds=120 + 20 + 10)
    states = [each["state"] for each in region.details(STATE_CHANGE)]
    assert states == ["pending", "running", "shutting-down", "terminated"]


def test_the_lead_time_of_a_warned_instance_may_be_over_at_once(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.finish_interruptions()
    assert region.simulator.instance(instance_id).is_alive

    region.simulator.interrupt(instance_id)
    region.simulator.finish_interruptions()

    assert not region.simulator.instance(instance_id).is_alive
    assert region.simulator.instance(instance_id).state_reason is StateReason.SPOT_TERMINATION


def test_a_task_stopped_in_time_keeps_its_exit_code_and_stop_code(training: Training) -> None:
    region, arn, instance_id = training
    region.simulator.interrupt(instance_id)

    region.ecs.stop_task(cluster="c", task=arn, reason="interruption")
    task = region.wait_for(arn, "STOPPED")
    region.clock.advance(300)

    assert (task["stopCode"], task["containers"][0]["exitCode"]) == ("UserInitiated", 143)
    assert region.task(arn) == task


def test_an_instance_can_be_terminated_without_a_warning(training: Training) -> None:
    region, arn, instance_id = training
    region.simulator.terminate(instance_id)
    region.simulator.terminate(instance_id)

    task = region.wait_for(arn, "STOPPED")

    assert task["stopCode"] == "TerminationNotice"
    assert region.details(WARNING) == []
    assert len([each for each in region.details(STATE_CHANGE) if each["state"] == "terminated"]) == 1


def test_a_task_whose_instance_is_terminated_during_the_pull_has_not_started(region: SimulatedRegion) -> None:
    region.provider(max_size=1)
    region.register()
    arn = region.run_one("g5-spot")
    region.wait_for(arn, "PENDING")
    region.simulator.terminate(region.instance_of(arn))

    task = region.wait_for(arn, "STOPPED")

    assert task["stopCode"] == "TerminationNotice"
    assert "startedAt" not in task
    assert region.processes.started == []


def test_a_lost_machine_is_replaced_by_its_group(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.terminate(instance_id)

    region.clock.advance(300)

    (arn,) = region.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    found = region.ecs.describe_container_instances(cluster="c", containerInstances=[arn])["containerInstances"][0]
    assert found["ec2InstanceId"] != instance_id


def test_a_group_may_be_told_not_to_replace(region: SimulatedRegion) -> None:
    region.provider(max_size=1, replaces_lost_instances=False)
    region.register()
    arn = region.run_one("g5-spot")
    region.wait_for(arn, "RUNNING")
    region.simulator.terminate(region.instance_of(arn))

    region.clock.advance(600)

    assert len(region.simulator.instances.bill) == 1


def test_an_instance_of_no_group_is_interrupted_and_placed_upon_likewise(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance(purchase=Purchase.SPOT)
    arn = region.run_one()
    region.simulator.interrupt(instance_id, lead_seconds=3.0, rebalance_first=True)

    assert region.wait_for(arn, "STOPPED")["stopCode"] == "TerminationNotice"
    rebalance = event(region, "EC2 Instance Rebalance Recommendation")
    assert rebalance["detail"] == {"instance-id": instance_id}


def test_no_capacity_refuses_the_launch_of_an_instance(region: SimulatedRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 1)
    region.instance(purchase=Purchase.SPOT)

    with pytest.raises(Exception, match="InsufficientInstanceCapacity"):
        region.instance(purchase=Purchase.SPOT)


def test_an_instance_that_goes_before_it_registers_leaves_no_trace(region: SimulatedRegion) -> None:
    instance_id = region.simulator.launch_instance("g5.xlarge", Purchase.SPOT, "us-east-1a", cluster="c")
    region.clock.advance(10)
    region.simulator.terminate(instance_id)
    region.clock.advance(600)

    assert region.details("ECS Container Instance State Change") == []
    assert region.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []


def test_a_task_that_waits_for_a_terminated_instance_is_placed_on_the_next(training: Training) -> None:
    region, _, instance_id = training
    region.register("big")
    waiting = region.run_one(
        "g5-spot", overrides={"containerOverrides": [{"name": "main", "cpu": 4_096}]}, taskDefinition="big"
    )
    region.simulator.terminate(instance_id)

    region.wait_for(waiting, "RUNNING")

    assert region.instance_of(waiting) != instance_id


def test_every_event_is_a_full_envelope_with_an_id_of_its_own(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.interrupt(instance_id)
    region.clock.advance(300)

    for each in region.events:
        assert set(each) == {
            "version", "id", "detail-type", "source", "account", "time", "region", "resources", "detail",
        }  # fmt: skip
        assert (each["version"], each["account"], each["region"]) == ("0", "111122223333", "us-east-1")
        assert each["time"].endswith("Z")
        assert "." not in each["time"]
        assert len(each["resources"]) == 1
    assert len({each["id"] for each in region.events}) == len(region.events)
    sources = {each["source"] for each in region.events}
    assert sources == {"aws.ecs", "aws.ec2"}


def test_a_task_state_change_has_iso_times_where_descriptions_have_datetimes(training: Training) -> None:
    region, arn, instance_id = training
    region.simulator.terminate(instance_id)
    task = region.wait_for(arn, "STOPPED")

    found = event(region, TASK_STATE_CHANGE)
    detail: dict[str, Any] = found["detail"]

    assert found["resources"] == [arn]
    assert detail["stoppedAt"] == task["stoppedAt"].isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert detail["updatedAt"] == detail["stoppedAt"]
    assert "tags" not in detail
    same = set(task) - {"tags"} - {name for name in task if name.endswith("At")}
    assert {name: detail[name] for name in same} == {name: task[name] for name in same}
    assert detail["startedBy"] == "job-1/1"
    assert detail["group"] == "family:train"


def test_a_container_instance_state_change_has_agent_and_resources(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.set_agent(instance_id, connected=False)

    details = region.details("ECS Container Instance State Change")

    assert [each["agentConnected"] for each in details] == [True, True, False]
    assert [each["version"] for each in details] == [1, 2, 3]
    free = {each["name"]: each.get("integerValue") for each in details[1]["remainingResources"]}
    assert free["CPU"] == 3_072
    assert details[0]["clusterArn"] == "arn:aws:ecs:us-east-1:111122223333:cluster/c"


def test_the_agent_of_a_host_that_is_cut_off_never_connects_again(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.set_agent(instance_id, connected=False)
    region.simulator.instances.by_id[instance_id].is_cut_off = True

    region.simulator.set_agent(instance_id, connected=True)

    details = region.details("ECS Container Instance State Change")
    assert [each["agentConnected"] for each in details] == [True, True, False]


def test_an_unknown_instance_cannot_be_interrupted(region: SimulatedRegion) -> None:
    with pytest.raises(Exception, match=r"InvalidInstanceID\.NotFound"):
        region.simulator.interrupt("i-0")


def test_ec2_describes_what_became_of_an_instance(training: Training) -> None:
    region, _, instance_id = training
    region.simulator.terminate(instance_id)

    described = region.simulator.call_ec2("DescribeInstances", {"InstanceIds": [instance_id]})

    instance = described["Reservations"][0]["Instances"][0]
    assert instance["State"]["Name"] == "shutting-down"
    assert (instance["InstanceType"], instance["InstanceLifecycle"]) == ("g5.xlarge", "spot")
    region.clock.advance(7_200)
    other = region.instance()
    region.simulator.terminate(other)
    region.clock.advance(7_200)
    region.simulator.terminate(region.instance())
    region.clock.advance(60)
    with pytest.raises(Exception, match=r"InvalidInstanceID\.NotFound"):
        region.simulator.call_ec2("DescribeInstances", {"InstanceIds": [instance_id]})


def test_the_tags_of_a_task_live_until_it_is_stopped_by_a_call(training: Training) -> None:
    region, arn, _ = training
    region.ecs.tag_resource(resourceArn=arn, tags=[{"key": "a", "value": "1"}, {"key": "b", "value": "2"}])
    region.ecs.untag_resource(resourceArn=arn, tagKeys=["b"])
    assert region.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == [{"key": "a", "value": "1"}]

    region.ecs.stop_task(cluster="c", task=arn)

    assert region.ecs.list_tags_for_resource(resourceArn=arn)["tags"] == []
    region.wait_for(arn, "STOPPED")
    with pytest.raises(ClientError, match="ResourceNotFound"):
        region.ecs.list_tags_for_resource(resourceArn=arn)


def test_tags_of_the_definition_and_of_ecs_are_propagated(region: SimulatedRegion) -> None:
    region.register(tags=[{"key": "team", "value": "vision"}, {"key": "own", "value": "definition"}])
    region.instance()

    arn = region.run_one(
        tags=[{"key": "own", "value": "request"}], propagateTags="TASK_DEFINITION", enableECSManagedTags=True
    )

    assert {each["key"]: each["value"] for each in region.task(arn)["tags"]} == {
        "own": "request",
        "team": "vision",
        "aws:ecs:clusterName": "c",
    }


def test_a_stop_by_the_user_keeps_its_stop_code_when_the_instance_is_terminated(training: Training) -> None:
    region, arn, instance_id = training
    region.simulator.interrupt(instance_id, lead_seconds=5.0)
    region.simulator.set_agent(instance_id, connected=False)
    region.ecs.stop_task(cluster="c", task=arn, reason="interruption")

    task = region.wait_for(arn, "STOPPED")

    assert (task["stopCode"], task["stoppedReason"]) == ("UserInitiated", "interruption")
    assert "exitCode" not in task["containers"][0]


def test_containers_end_with_their_machine(training: Training) -> None:
    region, arn, instance_id = training
    (task,) = region.simulator.clusters.get("c").tasks.values()
    kills: list[str] = []
    task.containers[0].handle = SimpleNamespace(kill=lambda: kills.append("kill"))

    region.simulator.terminate(instance_id)

    assert kills == ["kill"]
    assert region.task(arn)["lastStatus"] == "RUNNING"


def test_a_terminated_instance_makes_room_for_the_next(region: SimulatedRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 1, zone="us-east-1a")
    for _ in range(3):
        region.simulator.terminate(region.instance(purchase=Purchase.SPOT))

    assert len(region.simulator.instances.bill) == 3
