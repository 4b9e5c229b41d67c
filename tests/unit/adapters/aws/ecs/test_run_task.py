import json
from dataclasses import replace

import pytest
from botocore.config import Config
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import make_launch_request, task_id
from fakes.scripted_aws import ScriptedAws
from relaunch.adapters.aws.ecs.run_task import client_token
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchRefused,
    LaunchUncertain,
    PlacementFailed,
    Shortage,
    TaskPlaced,
)
from relaunch.ports import PermanentError

URL = "http://127.0.0.1:9"
INSTANCE_ARN = "arn:aws:ecs:us-east-1:111122223333:container-instance/relaunch/1"


def test_request_says_everything_that_was_frozen(ecs, target):
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])

    outcome = target.launch(make_launch_request())

    assert outcome == TaskPlaced(task_id())
    assert ecs.sent("RunTask") == [
        {
            "cluster": "relaunch",
            "taskDefinition": "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7",
            "count": 1,
            "capacityProviderStrategy": [{"capacityProvider": "g5-xlarge-spot", "weight": 1}],
            "placementConstraints": [{"type": "memberOf", "expression": "attribute:ecs.instance-type == g5.xlarge"}],
            "overrides": {
                "containerOverrides": [
                    {
                        "name": "main",
                        "command": ["python", "-m", "train"],
                        "environment": [
                            {"name": "RELAUNCH_ATTEMPT", "value": "1"},
                            {"name": "RELAUNCH_JOB_ID", "value": "resnet-1f2e3d4c"},
                        ],
                        "resourceRequirements": [{"type": "GPU", "value": "1"}],
                    }
                ]
            },
            "startedBy": "resnet-1f2e3d4c/1",
            "clientToken": client_token("resnet-1f2e3d4c", 1, 1),
            "propagateTags": "TASK_DEFINITION",
            "enableExecuteCommand": False,
        }
    ]


def test_awsvpc_revision_gets_the_network_of_the_settings(ecs, target):
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])

    target.launch(make_launch_request(network_mode="awsvpc"))

    network = ecs.sent("RunTask")[0]["networkConfiguration"]["awsvpcConfiguration"]
    assert network == {"subnets": ["subnet-1", "subnet-2"], "securityGroups": ["sg-1"], "assignPublicIp": "DISABLED"}


@pytest.mark.parametrize("mode", ["bridge", "host", "none"])
def test_other_network_modes_get_no_network(ecs, target, mode):
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])

    target.launch(make_launch_request(network_mode=mode))

    assert "networkConfiguration" not in ecs.sent("RunTask")[0]


def test_task_on_a_machine_of_our_own_is_kept_from_every_other_instance(ecs, target):
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])
    request = make_launch_request(capacity_provider="", instance_id="i-0aaa", avoided_instances=("i-0bbb",))

    assert target.launch(request) == TaskPlaced(task_id())

    (sent,) = ecs.sent("RunTask")
    expression = "ec2InstanceId == i-0aaa and attribute:ecs.instance-type == g5.xlarge"
    assert sent["launchType"] == "EC2"
    assert "capacityProviderStrategy" not in sent
    assert sent["placementConstraints"] == [{"type": "memberOf", "expression": expression}]


@given(st.text(max_size=300), st.integers(min_value=1), st.integers(min_value=1))
def test_client_token_keeps_to_the_limits_of_ecs(job_id, attempt, placement):
    token = client_token(job_id, attempt, placement)

    assert 0 < len(token) <= 64
    assert all(33 <= ord(character) <= 126 for character in token)


def test_client_token_is_the_same_each_time():
    assert client_token("resnet-1f2e", 2, 3) == client_token("resnet-1f2e", 2, 3)


def test_client_tokens_of_different_tries_differ():
    tries = [("a", 1, 1), ("a", 1, 2), ("a", 2, 1), ("b", 1, 1), ("a", 11, 1), ("a", 1, 11), ("a/1", 1, 1)]

    assert len({client_token(*each) for each in tries}) == len(tries)


@pytest.mark.parametrize(
    "reason",
    [
        *("RESOURCE:CPU", "RESOURCE:MEMORY", "RESOURCE:PORTS", "RESOURCE:ENI", "RESOURCE:GPU"),
        *("AGENT", "ATTRIBUTE", "LOCATION", "NO ACTIVE INSTANCES", "EMPTY CAPACITY PROVIDER"),
        "MemberOf placement constraint unsatisfied.",
    ],
)
def test_failure_of_ecs_is_a_failed_placement(ecs, target, reason):
    ecs.answer("RunTask", tasks=[], failures=[{"arn": INSTANCE_ARN, "reason": reason}])

    outcome = target.launch(make_launch_request())

    known = {"RESOURCE:GPU": Shortage.GPU, "RESOURCE:PORTS": Shortage.PORTS, "AGENT": Shortage.AGENT}
    known |= {f"RESOURCE:{each}": Shortage.ROOM for each in ("CPU", "MEMORY", "ENI")}
    shortage = known.get(reason, Shortage.OTHER)
    assert outcome == PlacementFailed((reason,), shortages=frozenset({shortage}))


def test_failures_of_several_machines_are_said_once_each(ecs, target):
    reasons = ["RESOURCE:GPU", "AGENT", "RESOURCE:GPU"]
    ecs.answer("RunTask", tasks=[], failures=[{"arn": INSTANCE_ARN, "reason": reason} for reason in reasons])

    assert target.launch(make_launch_request()) == PlacementFailed(
        ("RESOURCE:GPU", "AGENT"), shortages=frozenset({Shortage.GPU, Shortage.AGENT})
    )


def test_failure_without_a_reason_is_a_failed_placement(ecs, target):
    ecs.answer("RunTask", tasks=[], failures=[{"arn": INSTANCE_ARN}])

    assert target.launch(make_launch_request()) == PlacementFailed(("no reason given",))


def test_neither_task_nor_failure_is_uncertain(ecs, target):
    ecs.answer("RunTask", tasks=[], failures=[])

    assert isinstance(target.launch(make_launch_request()), LaunchUncertain)


def test_more_tasks_than_asked_for_are_all_made_known(ecs, target):
    ecs.answer("RunTask", tasks=[{"taskArn": task_id(1)}, {"taskArn": task_id(2)}], failures=[])

    assert target.launch(make_launch_request()) == LaunchConflict((task_id(1), task_id(2)))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("ThrottlingException", "Rate exceeded", id="throttled"),
        pytest.param("Throttling", "Rate exceeded", id="throttled-by-another-name"),
        pytest.param("RequestLimitExceeded", "Request limit exceeded.", id="request-limit"),
        pytest.param("ClientException", "Tasks provisioning capacity limit exceeded.", id="provisioning-quota"),
        pytest.param(
            "ClientException",
            "You've reached the limit on the number of tasks you can run in the PROVISIONING state.",
            id="provisioning-quota-in-other-words",
        ),
        pytest.param(
            "InvalidParameterException",
            "Error retrieving security group information for [sg-1]: Request limit exceeded. "
            "(ErrorCode: RequestLimitExceeded)",
            id="ec2-throttled-behind-ecs",
        ),
    ],
)
def test_call_that_ecs_does_not_want_now_is_deferred(ecs, target, code, message):
    ecs.refuse("RunTask", code, message)

    assert target.launch(make_launch_request()) == LaunchDeferred(f"{code}: {message}")


@pytest.mark.parametrize("name", ["g5", "a" * 255])
def test_a_provider_that_is_being_made_or_deleted_has_no_capacity(ecs, target, name):
    message = (
        f"The specified capacity provider '{name}' is not in an ACTIVE state. Specify a valid capacity provider and "
        "try again."
    )
    ecs.refuse("RunTask", "InvalidParameterException", message)

    assert target.launch(make_launch_request()) == PlacementFailed((f"InvalidParameterException: {message}",))


def test_a_refusal_of_a_capacity_provider_names_it(ecs, target):
    ecs.refuse("RunTask", "InvalidParameterException", "The capacity provider g5 cannot be used with this cluster.")

    outcome = target.launch(make_launch_request())

    assert isinstance(outcome, LaunchRefused)
    assert outcome.is_about_provider


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ClientException", "TaskDefinition not found."),
        ("InvalidParameterException", "TaskDefinition is inactive"),
        ("InvalidParameterException", "AccountIDs mismatch"),
        ("InvalidParameterException", "Invalid placement constraint expression"),
        ("InvalidParameterException", "Override for container named x is not a container in the TaskDefinition."),
        ("UnsupportedFeatureException", "The specified task is not supported in this Region."),
        ("PlatformUnknownException", "The specified platform version does not exist."),
        ("PlatformTaskDefinitionIncompatibilityException", "no such capability"),
    ],
)
def test_request_that_ecs_will_not_take_is_refused(ecs, target, code, message):
    ecs.refuse("RunTask", code, message)

    outcome = target.launch(make_launch_request())

    assert outcome == LaunchRefused(f"{code}: {message}", is_about_revision="TaskDefinition" in f"{code} {message}")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDeniedException", "User is not authorized to perform: iam:PassRole"),
        (
            "AccessDeniedException",
            "User: u is not authorized to perform: ecs:RunTask on resource: r:task-definition/t:1",
        ),
        ("UnrecognizedClientException", "The security token included in the request is invalid."),
        ("ClusterNotFoundException", "Cluster not found."),
        ("BlockedException", "Your account is blocked."),
        ("ClientException", "ECS was unable to assume the role 'r' that was provided for this task."),
        ("InvalidParameterException", "The subnet ID 'subnet-1' does not exist (ErrorCode: InvalidSubnetID.NotFound)"),
        ("InvalidParameterException", "The security group 'sg-1' does not exist (ErrorCode: InvalidGroup.NotFound)"),
    ],
)
def test_what_somebody_can_grant_or_mend_may_heal(ecs, target, code, message):
    ecs.refuse("RunTask", code, message)

    assert target.launch(make_launch_request()) == LaunchRefused(f"{code}: {message}", may_heal=True)


def test_deregistered_revision_is_refused_and_named_as_the_cause(region):
    region.provider("g5-xlarge-spot")
    arn = region.register("trainer")["taskDefinitionArn"]
    region.ecs.deregister_task_definition(taskDefinition=arn)
    target = EcsTarget(region.ecs, "c", subnets=[], security_groups=[])

    outcome = target.launch(make_launch_request(revision_arn=arn))

    assert outcome == LaunchRefused("InvalidParameterException: TaskDefinition is inactive", is_about_revision=True)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("InvalidParameterException", "No Container Instances were found in your capacity provider."),
        ("ClientException", "Capacity is unavailable at this time. Please try again later"),
    ],
)
def test_error_that_means_no_capacity_is_a_failed_placement(ecs, target, code, message):
    ecs.refuse("RunTask", code, message)

    assert target.launch(make_launch_request()) == PlacementFailed((f"{code}: {message}",))


def test_conflict_names_the_tasks_of_the_token(ecs, target):
    ecs.refuse("RunTask", "ConflictException", "The token is in use.", resourceIds=[task_id(4)])

    assert target.launch(make_launch_request()) == LaunchConflict((task_id(4),))


def test_conflict_over_a_token_that_placed_nothing_spends_the_try(ecs, target):
    ecs.refuse("RunTask", "ConflictException", "The token is in use.", resourceIds=[])

    assert target.launch(make_launch_request()) == PlacementFailed(("ConflictException: The token is in use.",))


@pytest.mark.parametrize(
    ("code", "status"),
    [("ServerException", 500), ("ServiceUnavailableException", 503), ("", 502), ("ExpiredTokenException", 400)],
)
def test_fault_of_the_service_is_uncertain(ecs, target, code, status):
    ecs.refuse("RunTask", code, "Service Unavailable. Please try again later.", status)

    assert isinstance(target.launch(make_launch_request()), LaunchUncertain)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ReadTimeoutError(endpoint_url=URL), id="time-out-after-the-request-was-sent"),
        pytest.param(ConnectionClosedError(endpoint_url=URL), id="connection-reset"),
        pytest.param(ConnectTimeoutError(endpoint_url=URL), id="connect-time-out"),
        pytest.param(EndpointConnectionError(endpoint_url=URL), id="connection-refused"),
        pytest.param(NoCredentialsError(), id="no-credentials"),
    ],
)
def test_call_without_an_answer_is_uncertain(ecs, target, error):
    ecs.fail("RunTask", error)

    assert isinstance(target.launch(make_launch_request()), LaunchUncertain)


def test_sending_again_sends_the_same(ecs, target):
    request = make_launch_request(environment={"B": "2", "A": "1"})
    ecs.fail("RunTask", ReadTimeoutError(endpoint_url=URL))
    ecs.answer("RunTask", tasks=[{"taskArn": task_id()}], failures=[])

    target.launch(request)
    outcome = target.launch(replace(request, environment={"A": "1", "B": "2"}))

    first, second = (json.dumps(sent) for sent in ecs.sent("RunTask"))
    assert first == second
    assert outcome == TaskPlaced(task_id())


def test_retry_of_the_sdk_carries_the_same_token_and_hides_no_outcome():
    ecs = ScriptedAws("ecs", Config(retries={"mode": "standard", "total_max_attempts": 2}))
    target = EcsTarget(ecs.client, "relaunch")
    ecs.fail("RunTask", ReadTimeoutError(endpoint_url=URL))
    ecs.refuse("RunTask", "ThrottlingException", "Rate exceeded")

    outcome = target.launch(make_launch_request())

    first, second = ecs.sent("RunTask")
    assert first == second
    assert outcome == LaunchDeferred("ThrottlingException: Rate exceeded")


def test_refusal_of_a_retry_of_the_sdk_says_that_an_earlier_send_may_have_taken_effect():
    ecs = ScriptedAws("ecs", Config(retries={"mode": "standard", "total_max_attempts": 2}))
    ecs.fail("RunTask", ReadTimeoutError(endpoint_url=URL))
    ecs.refuse("RunTask", "AccessDeniedException", "not authorized to perform: ecs:RunTask")

    outcome = EcsTarget(ecs.client, "relaunch").launch(make_launch_request())

    refused = "AccessDeniedException: not authorized to perform: ecs:RunTask"
    assert outcome == LaunchRefused(refused, may_heal=True, was_repeated=True)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(make_launch_request(attempt=AttemptKey("job:1", 1)), id="documented-limit"),
        pytest.param(make_launch_request(revision_arn=None), id="no-revision"),
    ],
)
def test_request_that_breaks_a_limit_is_not_sent(ecs, target, request_):
    with pytest.raises(PermanentError, match="launching"):
        target.launch(request_)

    assert ecs.requests == []
