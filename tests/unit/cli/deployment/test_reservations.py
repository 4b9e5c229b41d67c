"""What a deployment reserves of the Lambda concurrency that the account has room for."""

from collections.abc import Mapping, Sequence
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from relaunch_cli.deployment.concurrency import RESERVATIONS
from relaunch_cli.deployment.reservations import reservations

GIVEN = {"Runtime": "python3.13", "CapacityProviders": "g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand"}


class StubbedAws:
    """Lambda and CloudFormation with scripted answers, whose parameters botocore checks."""

    def __init__(self) -> None:
        credentials = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
        self.functions = Stubber(boto3.client("lambda", **credentials))
        self.stacks = Stubber(boto3.client("cloudformation", **credentials))
        self.functions.activate()
        self.stacks.activate()

    def answer_account(self, limit: int, unreserved: int) -> None:
        limits = {"ConcurrentExecutions": limit, "UnreservedConcurrentExecutions": unreserved}
        self.functions.add_response("get_account_settings", {"AccountLimit": limits})

    def answer_reserved(self, *reserved: int | None) -> None:
        """Script a deployed stack whose functions have these reservations; None for none."""
        for reservation, amount in zip(RESERVATIONS, reserved, strict=True):
            detail = {
                "LogicalResourceId": reservation.function,
                "PhysicalResourceId": f"relaunch-{reservation.function}",
                "ResourceType": "AWS::Lambda::Function",
                "LastUpdatedTimestamp": "2026-11-03T12:00:00Z",
                "ResourceStatus": "CREATE_COMPLETE",
            }
            wanted = {"StackName": "relaunch", "LogicalResourceId": reservation.function}
            self.stacks.add_response("describe_stack_resource", {"StackResourceDetail": detail}, wanted)
            answer = {} if amount is None else {"ReservedConcurrentExecutions": amount}
            self.functions.add_response(
                "get_function_concurrency", answer, {"FunctionName": f"relaunch-{reservation.function}"}
            )

    def answer_no_stack(self) -> None:
        for _ in RESERVATIONS:
            self.stacks.add_client_error(
                "describe_stack_resource", "ValidationError", "Stack 'relaunch' does not exist", 400
            )

    def reservations(self, given: Mapping[str, str] = GIVEN) -> tuple[Mapping[str, str], Sequence[str]]:
        """What is reserved for the stack `relaunch` with these parameters."""
        return reservations(given, "relaunch", self.functions.client, self.stacks.client)


@pytest.fixture
def aws() -> StubbedAws:
    return StubbedAws()


def test_a_first_deployment_reserves_what_a_large_account_has(aws: StubbedAws) -> None:
    aws.answer_account(1000, 1000)
    aws.answer_no_stack()

    extra, notes = aws.reservations()

    assert extra == {"WarningsReservedConcurrency": "10", "WebhookReservedConcurrency": "20"}
    assert len(notes) == 1


def test_a_stacks_own_reservations_are_available_to_it(aws: StubbedAws) -> None:
    aws.answer_account(130, 100)
    aws.answer_reserved(10, 20)

    assert aws.reservations()[0] == {"WarningsReservedConcurrency": "10", "WebhookReservedConcurrency": "20"}


def test_a_new_account_is_told_what_to_ask_for(aws: StubbedAws) -> None:
    aws.answer_account(10, 10)
    aws.answer_reserved(None, None)

    extra, notes = aws.reservations()

    assert extra == {"WarningsReservedConcurrency": "0", "WebhookReservedConcurrency": "0"}
    assert "--quota-code L-B99A9384 --desired-value 1001 (it takes no less)" in notes[1]


def test_what_the_user_names_is_neither_repeated_nor_read_for(aws: StubbedAws) -> None:
    aws.answer_account(1000, 1000)
    aws.answer_no_stack()

    assert aws.reservations({**GIVEN, "WebhookReservedConcurrency": "0"})[0] == {"WarningsReservedConcurrency": "10"}
    # Nothing is scripted for a second deployment: a call would fail.
    both = {"WebhookReservedConcurrency": "5", "WarningsReservedConcurrency": "none"}
    assert aws.reservations(both) == ({}, ())


@pytest.mark.parametrize("code", ["AccessDeniedException", "TooManyRequestsException", "UnrecognizedClientException"])
def test_an_account_that_may_not_be_read_is_deployed_to_as_it_is(aws: StubbedAws, code: str) -> None:
    aws.functions.add_client_error("get_account_settings", code, "not you")

    extra, (note,) = aws.reservations()

    assert extra == {}
    assert code in note
    assert "lambda:GetAccountSettings" in note
    assert "name WarningsReservedConcurrency and WebhookReservedConcurrency" in note


def test_reservations_that_may_not_be_read_are_left_as_they_are(aws: StubbedAws) -> None:
    aws.answer_account(130, 100)
    aws.stacks.add_client_error("describe_stack_resource", "AccessDenied", "not you", 403)

    assert aws.reservations()[0] == {}


def test_a_function_that_was_deleted_by_hand_has_nothing_reserved(aws: StubbedAws) -> None:
    aws.answer_account(1000, 1000)
    for each in RESERVATIONS:
        detail = {
            "LogicalResourceId": each.function,
            "PhysicalResourceId": "gone",
            "ResourceType": "AWS::Lambda::Function",
            "LastUpdatedTimestamp": "2026-11-03T12:00:00Z",
            "ResourceStatus": "CREATE_COMPLETE",
        }
        aws.stacks.add_response("describe_stack_resource", {"StackResourceDetail": detail})
        aws.functions.add_client_error("get_function_concurrency", "ResourceNotFoundException", "no function", 404)

    assert len(aws.reservations()[0]) == 2


@pytest.mark.parametrize(
    "answer", [{}, {"AccountLimit": {}}, {"AccountLimit": {"ConcurrentExecutions": 1000}}], ids=["no", "empty", "half"]
)
def test_an_answer_without_limits_changes_nothing(aws: StubbedAws, answer: dict[str, Any]) -> None:
    aws.functions.add_response("get_account_settings", answer)

    extra, (note,) = aws.reservations()

    assert extra == {}
    assert "GetAccountSettings answers no limits" in note
