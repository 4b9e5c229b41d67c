"""Connecting to a stack: regions, credentials, outputs."""

import time
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest
from moto import mock_aws
from moto.cloudformation.models import cloudformation_backends

from fakes.aws import aws_in_process
from fakes.builders import make_definition
from fakes.cli_session import STACK_OUTPUTS, create_stack, invoke
from relaunch.core.definitions.definition import S3Trigger
from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.aws.connection import AwsConnection, _one_at_a_time
from relaunch_cli.errors import CommandError, NotConnectedError


@pytest.mark.usefixtures("_credentials")
def test_a_missing_stack_is_named_with_its_region():
    with mock_aws():
        result = invoke("ps", "--stack", "other")

    assert result.exit_code == 3
    assert "there is no stack 'other' in us-east-1" in result.stderr
    assert "`relaunch deploy` makes one; name yours with --stack or RELAUNCH_STACK" in result.stderr


@pytest.mark.usefixtures("_credentials")
def test_a_stack_of_something_else_is_refused(monkeypatch):
    monkeypatch.setenv("RELAUNCH_STACK", "shop")
    with mock_aws():
        create_stack("shop", {})
        results = {name: invoke(*name.split()) for name in ("definitions", "ps")}

    assert [result.exit_code for result in results.values()] == [3, 3]
    assert "stack 'shop': setting" in results["definitions"].stderr
    assert "stack 'shop': output TableName is missing" in results["ps"].stderr
    assert all("is it a stack of Relaunch" in result.stderr for result in results.values())


@pytest.mark.usefixtures("_credentials")
def test_without_a_region_the_variable_to_set_is_named(monkeypatch):
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")

    result = invoke("ps")

    assert result.exit_code == 5
    assert "set AWS_REGION" in result.stderr


@pytest.mark.usefixtures("_credentials")
@pytest.mark.parametrize("command", ["ps", "submit resnet"])
def test_a_stack_that_is_being_removed_takes_no_more_jobs(command):
    with mock_aws():
        create_stack("relaunch", STACK_OUTPUTS)
        (backend,) = cloudformation_backends["123456789012"].values()
        (stack,) = backend.stacks.values()
        stack.status = "DELETE_IN_PROGRESS"
        result = invoke(*command.split())

    assert result.exit_code == 3
    assert "the stack 'relaunch' is being removed" in result.stderr


@pytest.mark.usefixtures("_credentials")
def test_a_missing_table_is_not_found():
    with mock_aws():
        create_stack("relaunch", STACK_OUTPUTS)
        result = invoke("ps")

    assert result.exit_code == 3
    assert "relaunch: Query: " in result.stderr
    assert "check the stack, the region and the account" in result.stderr


@pytest.mark.usefixtures("_no_configuration")
def test_a_configured_profile_without_a_region_is_no_region_either(tmp_path):
    (tmp_path / "config").write_text("[default]\noutput = json\n")

    with pytest.raises(NotConnectedError, match="no AWS region"):
        _ = AwsConnection("relaunch").deps


@pytest.mark.parametrize("region", ["eu-wset-1", "nowhere"])
def test_an_unknown_region_is_refused_before_aws_is_called(region):
    with pytest.raises(CommandError, match=f"there is no region '{region}'"):
        AwsConnection("relaunch").amis(region)


@pytest.mark.parametrize(
    ("region", "partition"),
    [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("eusc-de-east-1", "aws-eusc")],
)
def test_other_partitions_are_refused_in_one_sentence(monkeypatch, region, partition):
    monkeypatch.setenv("AWS_REGION", region)

    for connection in (AwsConnection("relaunch", region), AwsConnection("relaunch")):
        with pytest.raises(CommandError, match=f"{region} is in the partition {partition}.*not supported there"):
            connection.amis("")
    # As `relaunch deploy` has it, before it makes anything.
    with pytest.raises(CommandError, match=f"{region} is in the partition {partition}"):
        _ = AwsAccount().region


def test_a_stack_from_before_there_were_rules_for_uploads_is_named(monkeypatch):
    outputs = {"UploadRulePrefix": "relaunch-new-", "UploadsQueueArn": "arn:1", "IntakeDeadLetterQueueArn": "arn:2"}
    with aws_in_process():
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        create_stack("new", outputs)
        create_stack("old", STACK_OUTPUTS)

        rules = AwsConnection("new").upload_rules
        assert (rules.name_prefix, rules.list_rules()) == ("relaunch-new-", [])
        with pytest.raises(CommandError, match="stack 'old': output UploadRulePrefix is missing") as refused:
            _ = AwsConnection("old").upload_rules
    assert "not older than this command" in refused.value.hint


def test_a_stack_without_uploads_and_webhook_says_how_to_get_them(monkeypatch):
    with aws_in_process():
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        create_stack("relaunch", {"UploadRulePrefix": "relaunch-relaunch-", "IntakeDeadLetterQueueArn": "arn:2"})
        connection = AwsConnection("relaunch")
        definition = make_definition(triggers=(S3Trigger("acme-data"),))

        assert connection.upload_rules.list_rules() == []
        assert not connection.upload_rules.takes_uploads
        with pytest.raises(CommandError, match="has no webhook") as refused:
            _ = connection.webhook
        checks = {each.name: each for each in connection.check_watched([definition])}
    assert refused.value.hint == "relaunch deploy Webhook=on"
    assert checks["uploads"].to_do == "relaunch deploy Uploads=on"
    assert checks["uploads to acme-data"].to_do == "aws s3 mb s3://acme-data"


def test_a_stack_names_its_dead_letter_queues_in_its_outputs(monkeypatch):
    with aws_in_process():
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        create_stack("relaunch", {"IntakeDeadLetterQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/intake-dead"})
        create_stack("other", {})

        (queue,) = AwsConnection("relaunch").dead_letters.queues()
        assert (queue.name, queue.source_url) == ("intake", None)
        with pytest.raises(CommandError, match="has no dead-letter queues"):
            _ = AwsConnection("other").dead_letters


@pytest.mark.usefixtures("_credentials")
def test_the_webhook_needs_the_outputs_of_this_version():
    with mock_aws():
        create_stack("relaunch", STACK_OUTPUTS)
        result = invoke("webhook", "list")
        assert result.exit_code == 3
        assert "output WebhookUrl is missing" in result.stderr

        outputs = {"WebhookUrl": "https://hook", "WebhookSecretArn": "arn", "WebhookPreviousSecretHours": "2"}
        create_stack("newer", {**STACK_OUTPUTS, **outputs})
        store = AwsConnection("newer").webhook
    assert (store.url, store.previous_seconds) == ("https://hook/", 7200.0)


@pytest.mark.usefixtures("_credentials")
def test_the_caller_is_the_role_without_the_session():
    with mock_aws():
        user = AwsConnection("relaunch").caller
        assumed = boto3.client("sts").assume_role(
            RoleArn="arn:aws:iam::123456789012:role/Deploy", RoleSessionName="run-4711"
        )["Credentials"]
        session = boto3.Session(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"])
        connection = AwsConnection("relaunch")
        connection._session = session
        role = connection.caller

    assert user == "arn:aws:sts::123456789012:user/moto"
    assert role == "arn:aws:sts::123456789012:assumed-role/Deploy"


def test_clients_are_made_one_at_a_time_in_whichever_threads():
    making = []

    def make(name):
        making.append(name)
        time.sleep(0.001)
        assert making == [name]
        making.remove(name)
        return name

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(_one_at_a_time(make), "abcdefgh")) == list("abcdefgh")
