"""What `sam deploy` does is done here without SAM CLI: archives are uploaded, and a stack is created of them."""

import io
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from relaunch_local.stack.deployment import STACK, DeploymentError, create_stack
from relaunch_local.stack.packages import upload_packages

FUNCTION = {"Type": "AWS::Serverless::Function", "Properties": {"CodeUri": "Function", "Handler": "a.handle"}}
LAYER = {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": "Layer"}}
AT = datetime(2026, 11, 28, tzinfo=UTC)
TABLE = {"Type": "AWS::DynamoDB::Table", "Properties": {"CodeUri": "none of these"}}


class Uploads(dict[str, bytes]):
    def put_object(self, **sent: Any) -> None:
        self[f"s3://{sent['Bucket']}/{sent['Key']}"] = sent["Body"]


def files_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_functions_and_layers_are_uploaded_and_named_and_nothing_else_of_the_template_changes(tmp_path: Path) -> None:
    for name in ("Function/a.py", "Layer/python/b/__pycache__/b.pyc"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(name.encode())
        # As SAM dates them, seen from where it is still 1979: a ZIP archive knows no such time.
        os.utime(tmp_path / name, (0, 0))
    template = {"Transform": "x", "Resources": {"Function": FUNCTION, "Layer": LAYER, "Table": TABLE}}
    uploads = Uploads()

    packaged = upload_packages(template, tmp_path, uploads, "packages")

    named = {
        "Function": {**FUNCTION, "Properties": {**FUNCTION["Properties"], "CodeUri": "s3://packages/Function.zip"}},
        "Layer": {**LAYER, "Properties": {"ContentUri": "s3://packages/Layer.zip"}},
    }
    assert packaged == {"Transform": "x", "Resources": {**named, "Table": TABLE}}
    assert {key: files_of(content) for key, content in uploads.items()} == {
        "s3://packages/Function.zip": {"a.py": b"Function/a.py"},
        "s3://packages/Layer.zip": {"python/b/__pycache__/b.pyc": b"Layer/python/b/__pycache__/b.pyc"},
    }


@pytest.fixture
def answers() -> Any:
    client = boto3.client("cloudformation", "eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")
    with Stubber(client) as stubbed:
        yield stubbed
        stubbed.assert_no_pending_responses()


def event(name: str, status: str, reason: str) -> dict[str, Any]:
    named = {"LogicalResourceId": name, "ResourceStatus": status, "ResourceStatusReason": reason}
    return {"StackId": "s", "EventId": name, "StackName": STACK, "Timestamp": AT, **named}


def test_a_template_that_cloudformation_refuses_is_answered_in_its_words(answers: Stubber) -> None:
    answers.add_client_error("create_stack", "ValidationError", "Parameters: [Clustr] do not exist in the template")

    with pytest.raises(DeploymentError, match=r"not created:\n.*\[Clustr\] do not exist"):
        create_stack(answers.client, "http://127.0.0.1/t", {"Clustr": "a"})


def test_of_a_stack_that_fails_each_resource_that_did_is_named(answers: Stubber) -> None:
    wanted = {
        "StackName": STACK,
        "TemplateURL": "http://127.0.0.1/t",
        "Parameters": [{"ParameterKey": "ClusterName", "ParameterValue": "a"}],
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
        "OnFailure": "DO_NOTHING",
    }
    answers.add_response("create_stack", {"StackId": "s"}, wanted)
    failed = {"StackName": STACK, "StackStatus": "CREATE_FAILED", "CreationTime": AT}
    answers.add_response("describe_stacks", {"Stacks": [failed]})
    events = [event("Queue", "CREATE_FAILED", "no such key"), event("Table", "CREATE_COMPLETE", "")]
    answers.add_response("describe_stack_events", {"StackEvents": events})

    with pytest.raises(DeploymentError) as refused:
        create_stack(answers.client, "http://127.0.0.1/t", {"ClusterName": "a"})

    assert str(refused.value).splitlines() == ["the stack was not created:", "Queue: no such key"]
