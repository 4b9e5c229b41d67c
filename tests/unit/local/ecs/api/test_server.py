import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.served_simulator import GUARD, Served, client, run
from relaunch_local.ecs import EcsServer, Event


def test_boto3_takes_a_task_through_its_life(served: Served) -> None:
    arn = run(served, startedBy="job-1/1", clientToken="t")
    served.advance(200)

    running = served.ecs.describe_tasks(cluster="c", tasks=[arn])["tasks"][0]
    (instance_arn,) = served.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    served.ecs.stop_task(cluster="c", task=arn, reason="enough")
    served.advance(60)
    stopped = served.ecs.describe_tasks(cluster="c", tasks=[arn])["tasks"][0]

    assert running["lastStatus"] == "RUNNING"
    assert running["containerInstanceArn"] == instance_arn
    assert running["startedAt"].timestamp() > running["createdAt"].timestamp() > 0
    assert (stopped["stopCode"], stopped["stoppedReason"], stopped["containers"][0]["exitCode"]) == (
        "UserInitiated",
        "enough",
        143,
    )


def test_errors_are_botocores_own_classes(served: Served) -> None:
    with pytest.raises(served.ecs.exceptions.ClusterNotFoundException):
        served.ecs.run_task(cluster="nope", taskDefinition="train")
    with pytest.raises(served.ecs.exceptions.InvalidParameterException):
        served.ecs.list_tasks(cluster="c", desiredStatus="DONE")
    run(served, clientToken="t")
    with pytest.raises(served.ecs.exceptions.ConflictException) as caught:
        run(served, clientToken="t", startedBy="other")
    assert caught.value.response["resourceIds"] == served.ecs.list_tasks(cluster="c")["taskArns"]


def test_an_unknown_caller_is_denied(served: Served) -> None:
    stranger = client("ecs", served.server.url, "AKIASTRANGER")

    with pytest.raises(stranger.exceptions.AccessDeniedException):
        stranger.list_clusters()
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        client("ec2", served.server.url, "AKIASTRANGER").describe_instances()


def test_requests_are_kept_with_their_callers(served: Served) -> None:
    served.ecs.list_tasks(cluster="c")

    last = served.control("requests")[-1]

    assert (last["service"], last["action"], last["parameters"]) == ("ecs", "ListTasks", {"cluster": "c"})
    assert (last["access_key"], last["outcome"]) == ("AKIALAUNCHER", "ok")


def test_what_is_beside_the_simulator_adds_controls_that_may_refuse(served: Served) -> None:
    def push(arguments: dict[str, object]) -> dict[str, object]:
        if not arguments["tag"]:
            raise ValueError("there is no tag")
        return {"pushed": arguments["tag"]}

    served.server.add_control("push", push)

    assert served.control("push", {"tag": "a"}) == {"pushed": "a"}
    assert served.controlled("push", {"tag": ""}) == (400, {"error": "BadArguments", "message": "there is no tag"})


def test_scripts_interrupt_terminate_and_disconnect(served: Served) -> None:
    run(served)
    served.advance(200)
    (instance,) = served.control("state")["instances"]
    chosen = {"instance_id": instance["instance_id"]}

    served.control("rebalance", chosen)
    served.control("agent", {**chosen, "connected": False})
    served.control("interrupt", {**chosen, "lead_seconds": 3})
    served.advance(40)
    state = served.control("state")

    assert [each["state"] for each in state["instances"]] == ["terminated"]
    assert [each["stopCode"] for each in state["stopped_tasks"]] == ["TerminationNotice"]
    assert served.control("bill")[0]["terminated_at"] is not None
    served.server.close()
    kinds = [each["detail-type"] for each in served.events]
    assert "EC2 Spot Instance Interruption Warning" in kinds
    assert "EC2 Instance Rebalance Recommendation" in kinds


def test_scripts_take_capacity_away(served: Served) -> None:
    served.control("capacity", {"instance_type": "g5.xlarge", "purchase": "spot", "instances": 0})
    arn = run(served)
    served.advance(600)

    assert served.ecs.describe_tasks(cluster="c", tasks=[arn])["tasks"][0]["lastStatus"] == "PROVISIONING"


def test_scripts_make_calls_fail(served: Served) -> None:
    served.control("fail", {"action": "ListTasks", "code": "ServerException", "times": 2})
    served.control("fail", {"action": "ListTasks", "moment": "throttle"})
    served.control("fail", {"action": "RunTask", "moment": "after", "drop_connection": True})

    for _ in range(2):
        with pytest.raises(served.ecs.exceptions.ServerException):
            served.ecs.list_tasks(cluster="c")
    with pytest.raises(ClientError, match="ThrottlingException"):
        served.ecs.list_tasks(cluster="c")
    with pytest.raises(ConnectionClosedError):
        run(served)
    assert len(served.ecs.list_tasks(cluster="c")["taskArns"]) == 1


def test_wrong_controls_are_said_to_be_wrong(served: Served) -> None:
    for name, arguments in (("nonsense", {}), ("interrupt", {}), ("interrupt", {"instance_id": "i-0"})):
        status, answer = served.controlled(name, arguments)
        assert status in (400, 404)
        assert answer["error"] in ("UnknownControl", "BadArguments", "InvalidInstanceID.NotFound")


def test_a_script_can_shut_the_server_down(served: Served) -> None:
    assert served.control("shutdown", {}) == {}

    assert served.server.closed.wait(300)


def test_events_are_delivered_in_order_outside_the_lock_though_one_subscriber_fails(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    statuses: list[str] = []

    def call_back(event: Event) -> None:
        if event["detail-type"] == "ECS Task State Change":
            arn = event["detail"]["taskArn"]
            statuses.append(event["detail"]["lastStatus"])
            served.ecs.describe_tasks(cluster="c", tasks=[arn])
            message = "a subscriber's own trouble"
            raise RuntimeError(message)

    second = EcsServer(served.simulator, GUARD, on_event=call_back)
    second.start()
    run(served)
    served.advance(1_000)
    second.close()

    assert statuses == ["PROVISIONING", "PENDING", "RUNNING", "DEPROVISIONING", "STOPPED"]
    assert capsys.readouterr().err.count("a subscriber's own trouble") >= 5
