"""plan with real clients against moto: a stack, a table, and EC2's spot prices."""

import json
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from fakes.aws import create_jobs_table
from relaunch_cli.app import app

OUTPUTS = {
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand",
    "MaxRunningJobs": "20",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.9",
    "ProvisioningDeadlineSeconds": "480",
}


@pytest.fixture
def _stack(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    outputs = {name: {"Value": value} for name, value in OUTPUTS.items()}
    template = {"Resources": {"Queue": {"Type": "AWS::SQS::Queue"}}, "Outputs": outputs}
    with mock_aws():
        client = boto3.client("cloudformation", "us-east-1")
        client.create_stack(StackName="relaunch", TemplateBody=json.dumps(template))
        create_jobs_table(boto3.client("dynamodb", "us-east-1"), "jobs")
        yield


def plan(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["plan", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    shape: dict[str, Any] = json.loads(result.stdout)
    return shape


@pytest.mark.usefixtures("_stack")
def test_a_stacks_capacity_providers_are_on_offer_by_default():
    shape = plan("--gpu", "1", "--memory", "24GiB")

    assert {row["capacity_provider"] for row in shape["plans"][0]["offerings"]} == {"g5", "g5-spot"}
    assert shape["is_offline"] is False


@pytest.mark.usefixtures("_stack")
def test_all_types_of_the_region_come_with_its_spot_prices():
    shape = plan("--model", "A10G", "--purchase", "on-demand", "--all-types")  # moto has no odds of spot

    rows = shape["plans"][0]["offerings"]
    assert {"g5.xlarge", "g6.xlarge", "trn1.2xlarge"} <= {row["instance_type"] for row in rows}
    assert {row["zone"][:-1] for row in rows} == {"us-east-1"}
    assert [each["source"] for each in shape["prices"]][1] == "EC2"
