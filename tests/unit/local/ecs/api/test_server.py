import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.clock import FakeClock
from fakes.fleet_region import fleet_request, override
from fakes.simulated_region import INSTANCE_TYPES, container
from fakes.sources import ListLog
from fakes.unguarded import UnguardedRequests
from relaunch.adapters.aws.ec2.instance_types import read_type
from relaunch.adapters.aws.ec2.placement_scores import Ec2ZoneScores
from relaunch_local.attack.requests import Call
from relaunch_local.ecs import (
    AutoScalingGroup,
    Clock,
    EcsServer,
    EcsSimulator,
    Event,
    FleetSettings,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    Script,
    ScriptedProcesses,
    SimulatorSettings,
    SpotPrice,
)
from relaunch_local.iam.permission import Permission
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import RequestGuard

ROOT = Credentials("AKIALAUNCHER", "secret")
GUARD = RequestGuard(dict.fromkeys(["AKIALAUNCHER", "AKIASTRANGER"], "secret").get)


@dataclass
class Served:
    """A simulator under a virtual clock, served over HTTP."""

    simulator: EcsSimulator
    server: EcsServer
    clock: Clock
    ecs: Any
    ec2: Any
    events: list[Event] = field(default_factory=list)

    def advance(self, seconds: float) -> None:
        with self.clock.lock:
            self.clock.advance(seconds)

    def control(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        status, answer = self.controlled(name, arguments)
        assert status == 200
        return answer

    def controlled(self, name: str, arguments: dict[str, Any] | None = None) -> tuple[int, Any]:
        answer = self.call(name, arguments).sign(ROOT, "ecs").send()
        return answer.status, json.loads(answer.body)

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> Call:
        """Return a control call, not signed yet."""
        method = "GET" if arguments is None else "POST"
        body = b"" if arguments is None else json.dumps(arguments).encode()
        return Call(f"{self.server.url}/_relaunch/{name}", method, body)


@cache
def session_of(access_key: str) -> Any:
    # One session per caller: it loads the service models once.
    return boto3.Session(access_key, "secret", region_name="us-east-1")


def client(service: str, url: str, access_key: str = "AKIALAUNCHER") -> Any:
    config = Config(retries={"total_max_attempts": 1})
    return session_of(access_key).client(service, endpoint_url=url, config=config)


def may(permission: Permission) -> bool:
    return permission.access_key != "AKIASTRANGER"


@pytest.fixture
def served() -> Iterator[Served]:
    clock = Clock()
    prices = [SpotPrice("g5.xlarge", "us-east-1a", 0.412), SpotPrice("g5.xlarge", "us-east-1b", 0.5)]
    offerings = {"us-east-1a": ["g5.xlarge", "m7g.large"], "us-east-1b": ["g5.xlarge"]}
    template = LaunchTemplate("lt-1", "hosts", (LaunchTemplateVersion(), LaunchTemplateVersion(cluster="c")))
    fleet = FleetSettings([template], {"subnet-a": "us-east-1a", "subnet-b": "us-east-1b"})
    settings = SimulatorSettings(instance_types=INSTANCE_TYPES, spot_prices=prices, offerings=offerings, fleet=fleet)
    simulator = EcsSimulator(clock, ScriptedProcesses(clock, lambda _spec: Script(600.0)), settings, authorize=may)
    events: list[Event] = []
    server = EcsServer(simulator, GUARD, on_event=events.append)
    server.start()
    ecs, ec2 = client("ecs", server.url), client("ec2", server.url)
    ecs.create_cluster(clusterName="c")
    with clock.lock:
        group = AutoScalingGroup("asg", "g5.xlarge", Purchase.SPOT, ("us-east-1a",), max_size=1)
        simulator.add_capacity_provider("g5-spot", group, cluster="c")
    yield Served(simulator, server, clock, ecs, ec2, events)
    ecs.close()
    ec2.close()
    server.close()


def run(served: Served, **members: Any) -> str:
    served.ecs.register_task_definition(family="train", containerDefinitions=[container()])
    strategy = [{"capacityProvider": "g5-spot", "weight": 1}]
    answer = served.ecs.run_task(cluster="c", taskDefinition="train", capacityProviderStrategy=strategy, **members)
    return str(answer["tasks"][0]["taskArn"])


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


def test_ec2_answers_prices_offerings_types_and_instances(served: Served) -> None:
    run(served)
    served.advance(200)

    history = served.ec2.describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], ProductDescriptions=["Linux/UNIX"], StartTime=served.clock.now()
    )["SpotPriceHistory"]
    offered = served.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["m7g.large"]}]
    )["InstanceTypeOfferings"]
    everywhere = served.ec2.describe_instance_type_offerings()["InstanceTypeOfferings"]
    types = served.ec2.describe_instance_types(InstanceTypes=["g5.xlarge"])["InstanceTypes"]
    zones = served.ec2.describe_availability_zones()["AvailabilityZones"]
    spot = served.ec2.describe_instances(Filters=[{"Name": "instance-lifecycle", "Values": ["spot"]}])
    instance = spot["Reservations"][0]["Instances"][0]

    assert {(each["AvailabilityZone"], each["SpotPrice"]) for each in history} == {
        ("us-east-1a", "0.412000"),
        ("us-east-1b", "0.500000"),
    }
    assert offered == [{"InstanceType": "m7g.large", "LocationType": "availability-zone", "Location": "us-east-1a"}]
    assert [each["InstanceType"] for each in everywhere] == ["g5.xlarge", "m7g.large"]
    read = read_type("g5.xlarge", types[0], "EC2")
    assert read is not None
    assert (read.gpu_memory_mib, read.vcpus, read.is_bare_metal) == (22_888, 4, False)
    assert [(each["ZoneName"], each["ZoneId"]) for each in zones] == [
        ("us-east-1a", "use1-az1"),
        ("us-east-1b", "use1-az2"),
    ]
    assert (instance["State"]["Name"], instance["Placement"]["AvailabilityZone"]) == ("running", "us-east-1a")
    again = served.ec2.describe_instances(InstanceIds=[instance["InstanceId"]])
    assert again["Reservations"][0]["Instances"][0]["LaunchTime"] == instance["LaunchTime"]
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        served.ec2.describe_instances(InstanceIds=["i-0"])


def test_boto3_launches_a_machine_once_per_token(served: Served) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "machine", "Value": "m-1"}]}]
    request = fleet_request(override(), override(subnet="subnet-b", Priority=0.0), TagSpecifications=tags)
    served.control("fleet", {"code": "InsufficientInstanceCapacity", "overrides": 1})

    answer = served.ec2.create_fleet(**request, ClientToken="t")
    again = served.ec2.create_fleet(**request, ClientToken="t")
    other = served.ec2.create_fleet(**request)

    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    assert answer["Errors"][0]["LaunchTemplateAndOverrides"]["Overrides"] == override()
    assert answer["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"]["Priority"] == 0.0
    assert again["Instances"] == answer["Instances"] != other["Instances"]


def test_boto3_finds_and_ends_machines(served: Served) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "machine", "Value": "m-1"}]}]
    answer = served.ec2.create_fleet(**fleet_request(market="spot", TagSpecifications=tags))
    (instance_id,) = answer["Instances"][0]["InstanceIds"]
    served.advance(100)

    by_tag = served.ec2.describe_instances(Filters=[{"Name": "tag:machine", "Values": ["m-1"]}])
    described = by_tag["Reservations"][0]["Instances"][0]
    (registered,) = served.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    ended = served.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"][0]

    assert (described["InstanceId"], described["State"]["Name"]) == (instance_id, "running")
    assert described["ClientToken"] == f"{answer['FleetId']}-0"
    assert (ended["CurrentState"]["Name"], ended["PreviousState"]["Name"]) == ("shutting-down", "running")
    after = served.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    assert after["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    gone = served.ecs.deregister_container_instance(cluster="c", containerInstance=registered)
    assert gone["containerInstance"]["status"] == "INACTIVE"
    assert served.control("bill")[0]["billing_ended_at"] is not None


def refusal(caller: Any, **request: Any) -> tuple[str, int]:
    """Return the code and the HTTP status with which CreateFleet is refused."""
    with pytest.raises(ClientError) as caught:
        caller.create_fleet(**request)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_ec2s_errors_have_its_codes_and_statuses(served: Served) -> None:
    served.control("fail", {"action": "CreateFleet", "code": "InternalError"})
    served.control("fail", {"action": "CreateFleet", "moment": "throttle"})
    stranger = client("ec2", served.server.url, "AKIASTRANGER")

    assert refusal(served.ec2, **fleet_request()) == ("InternalError", 500)
    assert refusal(served.ec2, **fleet_request()) == ("RequestLimitExceeded", 503)
    assert refusal(served.ec2, **fleet_request(DryRun=True)) == ("DryRunOperation", 412)
    assert refusal(served.ec2, **fleet_request(override(), override())) == ("InvalidFleetConfig", 400)
    assert refusal(stranger, **fleet_request()) == ("UnauthorizedOperation", 403)
    assert served.control("bill") == []


def test_a_fleet_whose_answer_is_lost_has_launched(served: Served) -> None:
    served.control("fail", {"action": "CreateFleet", "moment": "after", "drop_connection": True})

    with pytest.raises(ConnectionClosedError):
        served.ec2.create_fleet(**fleet_request())

    assert len(served.control("bill")) == 1


def test_ec2_pages(served: Served) -> None:
    first = served.ec2.describe_spot_price_history(MaxResults=1)
    second = served.ec2.describe_spot_price_history(MaxResults=1, NextToken=first["NextToken"])

    zones = [page["SpotPriceHistory"][0]["AvailabilityZone"] for page in (first, second)]
    assert zones == ["us-east-1a", "us-east-1b"]
    assert not second.get("NextToken")


def test_requests_are_kept_with_their_callers(served: Served) -> None:
    served.ecs.list_tasks(cluster="c")

    last = served.control("requests")[-1]

    assert (last["service"], last["action"], last["parameters"]) == ("ecs", "ListTasks", {"cluster": "c"})
    assert (last["access_key"], last["outcome"]) == ("AKIALAUNCHER", "ok")


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


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"cluster": 7}'])
def test_a_malformed_body_is_refused(served: Served, body: bytes) -> None:
    headers = {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks"}

    assert Call(f"{served.server.url}/", body=body, headers=headers).sign(ROOT, "ecs").send().status == 400


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


LIST_TASKS = {"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks"}
ATTACKS = {
    "unsigned": lambda call: call,
    "a wrong secret": lambda call: call.sign(Credentials("AKIALAUNCHER", "guessed"), "ecs"),
    "the emulator's usual key": lambda call: call.sign(Credentials("test", "test"), "ecs"),
    "twelve digits": lambda call: call.add(
        Authorization="AWS4-HMAC-SHA256 Credential=111122223333/20260101/r/s/aws4_request"
    ),
    "a foreign host": lambda call: call.add(Host="attacker.example").sign(ROOT, "ecs"),
    "a page": lambda call: call.sign(ROOT, "ecs").add(Origin="http://127.0.0.1:8000"),
    "a page without a name": lambda call: call.sign(ROOT, "ecs").add(Origin="null"),
    "a link of a page": lambda call: call.sign(ROOT, "ecs").add(Sec_Fetch_Site="cross-site"),
    "another body": lambda call: replace(call.sign(ROOT, "ecs"), body=call.body + b" "),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_a_guarded_server_does_nothing_for_whom_an_unguarded_one_does_everything(
    served: Served, attack: Callable[[Call], Call]
) -> None:
    control = attack(served.call("throttling", {"enabled": False}))
    listing = attack(Call(f"{served.server.url}/", body=b"{}", headers=LIST_TASKS))
    query = attack(Call(f"{served.server.url}/", body=b"Action=DescribeInstances&Version=2016-11-15"))
    before = len(served.simulator.requests)

    answers = [call.send() for call in (control, listing, query)]

    assert [answer.status for answer in answers] == [403, 403, 403]
    assert not any(name.lower().startswith("access-control") for answer in answers for name in answer.headers)
    assert served.simulator.limits.enabled
    assert len(served.simulator.requests) == before

    unguarded = EcsServer(served.simulator, UnguardedRequests({}.get))
    unguarded.start()
    try:
        assert replace(control, url=control.url.replace(served.server.url, unguarded.url)).send().status == 200
    finally:
        unguarded._server.shutdown()
        unguarded._server.server_close()
    assert not served.simulator.limits.enabled


def test_a_preflight_is_refused_and_allows_nothing(served: Served) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}

    answer = (
        Call(f"{served.server.url}/_relaunch/state", "OPTIONS", headers=asked).add(Origin="http://a.example").send()
    )

    assert answer.status in (403, 501)
    assert not any(name.lower().startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize("framing", ["Content-Length: 4096", "Transfer-Encoding: chunked"])
def test_a_body_that_is_refused_is_not_taken_for_a_request(served: Served, framing: str) -> None:
    hidden = served.call("throttling", {"enabled": False}).sign(ROOT, "ecs")
    fields = [f"{name}: {value}" for name, value in hidden.headers.items()]
    head = ["POST /_relaunch/throttling HTTP/1.1", *fields, f"Content-Length: {len(hidden.body)}", "", ""]
    page = ["POST / HTTP/1.1", f"Host: {urlsplit(served.server.url).netloc}", "Origin: null", framing, "", ""]

    with socket.create_connection(("127.0.0.1", urlsplit(served.server.url).port), timeout=60) as connection:
        connection.sendall("\r\n".join([*page[:-1], *head]).encode() + hidden.body)
        connection.shutdown(socket.SHUT_WR)
        answers = b"".join(iter(lambda: connection.recv(65_536), b""))

    assert answers.count(b"HTTP/1.1 ") == 1
    assert served.simulator.limits.enabled
    assert hidden.send().status == 200, "what was hidden is a request that would be taken"


def test_a_body_in_chunks_is_refused_and_said_to_be(served: Served) -> None:
    call = Call(f"{served.server.url}/", headers={"Transfer-Encoding": "chunked"}).sign(ROOT, "ecs")

    answer = call.send()

    assert answer.status == 403
    assert "Content-Length" in answer.body


@pytest.mark.parametrize("length", ["-1", "one", "1e3"])
def test_a_length_that_is_none_is_refused(served: Served, length: str) -> None:
    call = Call(f"{served.server.url}/", body=b"{}", headers={"Content-Length": length, **LIST_TASKS}).sign(ROOT, "ecs")

    assert call.send().status == 403


def test_boto3_reads_why_it_is_refused(served: Served) -> None:
    served.simulator.limits.enabled = False
    for service in ("ecs", "ec2"):
        nobody = client(service, served.server.url, "AKIANOBODY")
        with pytest.raises(ClientError, match=r"InvalidClientTokenId.*`make local` prints"):
            nobody.list_clusters() if service == "ecs" else nobody.describe_instances()


def test_scores_of_zones_are_unknown_and_that_is_no_error(served: Served) -> None:
    log = ListLog()
    scores = Ec2ZoneScores(served.ec2, "us-east-1", FakeClock(), log)

    assert scores.zone_scores(["g5.xlarge", "g5.2xlarge", "g5.4xlarge"]) == {}
    assert log.decisions == ["placement-scores-unknown"]
