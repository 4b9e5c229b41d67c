"""plan with real clients against moto: a stack, a table, and EC2's spot prices."""

from typing import Any

import boto3
import pytest
from moto import mock_aws

from fakes.aws import create_jobs_table
from fakes.cli_session import STACK_OUTPUTS, create_stack, invoke


@pytest.fixture
def _stack(_credentials):
    with mock_aws():
        create_stack("relaunch", STACK_OUTPUTS)
        create_jobs_table(boto3.client("dynamodb", "us-east-1"), "jobs")
        yield


def plan(*arguments: str) -> Any:
    result = invoke("plan", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return result.document


@pytest.mark.usefixtures("_stack")
def test_a_stacks_capacity_providers_are_on_offer_by_default():
    document = plan("--gpu", "1", "--gpu-memory", "24GiB")

    assert {row["capacity_provider"] for row in document["plans"][0]["offerings"]} == {"g5", "g5-spot"}
    assert document["is_offline"] is False


@pytest.mark.usefixtures("_stack")
def test_all_types_of_the_region_come_with_its_spot_prices():
    document = plan("--model", "A10G", "--purchase", "on-demand", "--all-types")  # moto has no spot placement scores

    rows = document["plans"][0]["offerings"]
    assert {"g5.xlarge", "g6.xlarge", "trn1.2xlarge"} <= {row["instance_type"] for row in rows}
    assert {row["zone"][:-1] for row in rows} == {"us-east-1"}
    assert [each["source"] for each in document["prices"]][1] == "EC2"


@pytest.mark.parametrize("by", ["option", "environment"])
@pytest.mark.usefixtures("_stack")
def test_a_stack_that_is_named_and_not_there_is_not_planned_offline(monkeypatch, by):
    if by == "environment":
        monkeypatch.setenv("RELAUNCH_STACK", "prod")

    result = invoke("plan", "--gpu", "1", *(("--stack", "prod") if by == "option" else ()))

    assert (result.exit_code, result.stdout) == (3, "")
    assert "there is no stack 'prod' in us-east-1" in result.stderr


@pytest.mark.usefixtures("_stack")
def test_without_a_stack_that_somebody_named_an_account_is_planned_with_its_own_spot_prices():
    boto3.client("cloudformation", "us-east-1").delete_stack(StackName="relaunch")

    result = invoke("plan", "--gpu", "1", "--json")
    shown = invoke("plan", "--gpu", "1")

    assert [each["source"] for each in result.document["prices"]][1] == "EC2"
    assert "there is no stack 'relaunch' in us-east-1: planned without a stack, for us-east-1" in shown.stderr
    assert "spot prices are not known" not in shown.stdout + shown.stderr


@pytest.mark.usefixtures("_stack")
def test_spot_prices_that_ec2_does_not_tell_stay_unknown_without_a_stack(monkeypatch):
    boto3.client("cloudformation", "us-east-1").delete_stack(StackName="relaunch")
    monkeypatch.setenv("AWS_ENDPOINT_URL_EC2", "http://127.0.0.1:1")

    result = invoke("plan", "--gpu", "1")

    assert result.exit_code == 0
    assert "spot prices are not known, so where it would run is not either" in " ".join(result.stdout.split())


@pytest.mark.usefixtures("_no_configuration")
def test_without_a_region_a_stack_that_is_named_is_not_planned_offline():
    result = invoke("plan", "--gpu", "1", "--stack", "prod")

    assert (result.exit_code, result.stdout) == (5, "")
    assert "no AWS region is set" in result.stderr
