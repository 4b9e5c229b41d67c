"""Failures of AWS and of ours as sentences; errors that are bugs keep their traceback."""

import json

import boto3
import pytest
from botocore import exceptions as boto
from moto import mock_aws
from typer.testing import CliRunner

from relaunch.ports import NoActiveRevisionError, PermanentError, StaleWriteError, TransientError
from relaunch_cli.app import app
from relaunch_cli.errors import CommandError, explain_failure


def client_error(code: str) -> boto.ClientError:
    return boto.ClientError({"Error": {"Code": code, "Message": "so it is"}}, "RunTask")


UNREACHABLE = 'AWS cannot be reached: Could not connect to the endpoint URL: "u"'


@pytest.mark.parametrize(
    ("error", "message", "exit_code"),
    [
        (CommandError("no", "yes", 3), "no", 3),
        (boto.NoCredentialsError(), "no AWS credentials: Unable to locate credentials", 5),
        (boto.ProfileNotFound(profile="x"), "no AWS credentials: The config profile (x) could not be found", 5),
        (boto.NoRegionError(), "no AWS region: You must specify a region.", 5),
        (boto.EndpointConnectionError(endpoint_url="u"), UNREACHABLE, 5),
        (boto.ReadTimeoutError(endpoint_url="u"), 'AWS cannot be reached: Read timeout on endpoint URL: "u"', 5),
        (boto.ParamValidationError(report="r"), "the call to AWS failed: Parameter validation failed:", 5),
        (client_error("AccessDeniedException"), "AWS denies RunTask: so it is", 5),
        (client_error("ExpiredToken"), "AWS does not accept the credentials (ExpiredToken): so it is", 5),
        (client_error("ThrottlingException"), "AWS throttles RunTask: so it is", 4),
        (client_error("ResourceNotFoundException"), "RunTask: so it is", 3),
        (client_error("Other"), "AWS refuses RunTask (Other): so it is", 5),
        (NoActiveRevisionError("the family x has no ACTIVE revision"), "the family x has no ACTIVE revision", 3),
        (StaleWriteError("changed"), "changed", 4),
        (TransientError("later"), "later", 4),
        (PermanentError("never"), "never", 5),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_a_failure_is_a_sentence_with_an_exit_code(error, message, exit_code):
    failure = explain_failure(error)

    assert failure is not None
    assert (failure.message, failure.exit_code) == (message, exit_code)


def test_what_aws_said_is_found_below_what_an_adapter_made_of_it():
    error = TransientError("saving job x: throttled")
    error.__cause__ = client_error("ThrottlingException")

    failure = explain_failure(error)

    assert failure is not None
    assert failure.message == "AWS throttles RunTask: so it is"
    assert failure.hint == "try again in a minute"


def test_an_unreachable_endpoint_names_the_variable_that_points_there(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", "http://127.0.0.1:9")

    failure = explain_failure(boto.EndpointConnectionError(endpoint_url="u"))

    assert failure is not None
    assert failure.hint.endswith("AWS_ENDPOINT_URL_ECS is http://127.0.0.1:9")


def test_a_bug_keeps_its_traceback():
    assert explain_failure(KeyError("x")) is None


@pytest.fixture
def _account(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@pytest.mark.usefixtures("_account")
def test_a_stack_that_is_not_there_is_named_with_its_region():
    with mock_aws():
        result = CliRunner().invoke(app, ["ps", "--stack", "other"])

    assert result.exit_code == 3
    assert "there is no stack 'other' in us-east-1" in result.stderr
    assert "RELAUNCH_STACK" in result.stderr


@pytest.mark.usefixtures("_account")
def test_a_stack_of_something_else_is_refused():
    template = '{"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}}'
    with mock_aws():
        boto3.client("cloudformation", "us-east-1").create_stack(StackName="shop", TemplateBody=template)
        result = CliRunner().invoke(app, ["ps"], env={"RELAUNCH_STACK": "shop"})

    assert result.exit_code == 3
    assert "stack 'shop': setting" in result.stderr
    assert "is it a stack of Relaunch" in result.stderr


@pytest.mark.usefixtures("_account")
def test_without_a_region_the_variable_to_set_is_named(monkeypatch):
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    result = CliRunner().invoke(app, ["ps"])

    assert result.exit_code == 5
    assert "set AWS_REGION" in result.stderr


OUTPUTS = {
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5-spot=g5.xlarge/spot",
    "MaxRunningJobs": "20",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.9",
    "ProvisioningDeadlineSeconds": "480",
}


@pytest.mark.usefixtures("_account")
def test_a_table_that_is_not_there_is_said_to_be_missing():
    outputs = {name: {"Value": value} for name, value in OUTPUTS.items()}
    template = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": outputs}
    with mock_aws():
        client = boto3.client("cloudformation", "us-east-1")
        client.create_stack(StackName="relaunch", TemplateBody=json.dumps(template))
        result = CliRunner().invoke(app, ["ps"])

    assert result.exit_code == 3
    assert "relaunch: Query: " in result.stderr
    assert "is this the right stack, region and account?" in result.stderr
