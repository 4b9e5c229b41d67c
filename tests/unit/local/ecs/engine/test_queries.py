from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion, member_of

TASK = "0" * 32


def put(region: SimulatedRegion, instance_id: str, *attributes: dict[str, Any]) -> dict[str, Any]:
    target = region.simulator.instance(instance_id).arn
    answer = region.ecs.put_attributes(cluster="c", attributes=[{"targetId": target, **each} for each in attributes])
    return dict(answer)


@pytest.mark.parametrize("task_id", [TASK, "01234567-0123-0123-0123-0123456789ab"])
def test_a_task_id_has_32_or_36_characters(region: SimulatedRegion, task_id: str) -> None:
    answer = region.ecs.describe_tasks(cluster="c", tasks=[task_id])

    assert answer["failures"][0]["reason"] == "MISSING"
    for other in (task_id[:-1], task_id + "0", "z" * 32):
        error = region.error("describe_tasks", cluster="c", tasks=[other])
        assert error == "InvalidParameterException: taskId length should be one of [32,36]"


@pytest.mark.parametrize(
    ("method", "request_", "message"),
    [
        ("describe_tasks", {"tasks": [TASK] * 101}, "taskIds can have at most 100 items."),
        (
            "describe_container_instances",
            {"containerInstances": [TASK] * 101},
            "instanceIds can have at most 100 items.",
        ),
        (
            "update_container_instances_state",
            {"containerInstances": [TASK] * 11, "status": "ACTIVE"},
            "instanceIds can have at most 10 items.",
        ),
        ("list_tasks", {"family": "train:2"}, r"family must match ^[a-zA-Z0-9\-_]+$"),
        ("list_tasks", {"family": "train\n"}, r"family must match ^[a-zA-Z0-9\-_]+$"),
    ],
)
def test_a_refusal_has_the_text_of_ecs(
    region: SimulatedRegion, method: str, request_: dict[str, Any], message: str
) -> None:
    assert region.error(method, cluster="c", **request_) == f"InvalidParameterException: {message}"


def test_attributes_are_set_replaced_and_matched_by_constraints(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()
    put(region, instance_id, {"name": "stack", "value": "green"})

    answer = put(region, instance_id, {"name": "stack", "value": "blue"}, {"name": "fast"})

    arn = region.simulator.instance(instance_id).arn
    assert answer["attributes"] == [
        {"name": "stack", "value": "blue", "targetId": arn},
        {"name": "fast", "targetId": arn},
    ]
    described = region.ecs.describe_container_instances(cluster="c", containerInstances=[arn])
    attributes = described["containerInstances"][0]["attributes"]
    assert {"name": "stack", "value": "blue"} in attributes
    assert {"name": "fast"} in attributes
    for expression, tasks in (("attribute:stack == blue", 1), ("attribute:stack == green", 0)):
        assert len(region.run(placementConstraints=member_of(expression))["tasks"]) == tasks


def test_an_attribute_lets_a_waiting_task_be_placed(offered: SimulatedRegion) -> None:
    first = offered.run_one("g5-spot")
    offered.wait_for(first, "RUNNING")
    offered.ecs.stop_task(cluster="c", task=first)
    instance_id = offered.instance_of(first)
    offered.wait_for(first, "STOPPED")
    waiting = offered.run_one("g5-spot", placementConstraints=member_of("attribute:stack == blue"))
    assert offered.task(waiting)["lastStatus"] == "PROVISIONING"

    put(offered, instance_id, {"name": "stack", "value": "blue"})

    assert offered.instance_of(waiting) == instance_id


def test_either_all_attributes_are_set_or_none(region: SimulatedRegion) -> None:
    instance_id = region.instance()
    arn = region.simulator.instance(instance_id).arn
    put(region, instance_id, *({"name": f"a{number}"} for number in range(9)))
    before = dict(region.simulator.instance(instance_id).attributes)

    unknown = {"name": "stack", "targetId": TASK, "targetType": "container-instance"}
    codes = [
        region.error_code("put_attributes", cluster="c", attributes=[{"name": "b", "targetId": arn}, other])
        for other in (unknown, {"name": "c", "targetId": arn}, {"name": "a b", "targetId": arn})
    ]

    assert codes == ["TargetNotFoundException", "AttributeLimitExceededException", "InvalidParameterException"]
    assert region.simulator.instance(instance_id).attributes == before


def deregister(region: SimulatedRegion, instance_id: str, **members: Any) -> dict[str, Any]:
    arn = region.simulator.instance(instance_id).arn
    answer = region.ecs.deregister_container_instance(cluster="c", containerInstance=arn, **members)
    found: dict[str, Any] = answer["containerInstance"]
    return found


def test_a_deregistered_container_instance_is_gone_and_its_ec2_instance_lives(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()

    answer = deregister(region, instance_id)

    assert (answer["status"], answer["ec2InstanceId"]) == ("INACTIVE", instance_id)
    assert region.details("ECS Container Instance State Change")[-1]["status"] == "INACTIVE"
    assert region.ecs.list_container_instances(cluster="c")["containerInstanceArns"] == []
    assert region.error_code("run_task", cluster="c", taskDefinition="train") == "InvalidParameterException"
    assert region.simulator.instance(instance_id).is_alive
    assert region.error_code(
        "deregister_container_instance", cluster="c", containerInstance=answer["containerInstanceArn"]
    )


def test_a_container_instance_with_tasks_is_deregistered_by_force_only(region: SimulatedRegion) -> None:
    region.register()
    instance_id = region.instance()
    arn = region.run_one()
    region.wait_for(arn, "RUNNING")
    instance_arn = region.simulator.instance(instance_id).arn
    refused = region.error("deregister_container_instance", cluster="c", containerInstance=instance_arn)
    assert refused == "InvalidParameterException: Found running tasks on the instance."

    deregister(region, instance_id, force=True)

    assert region.task(arn)["lastStatus"] == "STOPPED"


def test_a_ghost_is_deregistered_and_its_end_finds_nothing_to_do(region: SimulatedRegion) -> None:
    instance_id = region.instance()
    region.simulator.terminate(instance_id)
    deregister(region, instance_id)
    count = len(region.details("ECS Container Instance State Change"))

    region.clock.advance(3_600)

    assert len(region.details("ECS Container Instance State Change")) == count
