"""What a removal keeps is listed with the command that deletes it, and what is not there is not."""

import re

from botocore import xform_name
from botocore.session import get_session

from relaunch_cli.deployment.account_roles import SERVICES
from relaunch_cli.deployment.findings import AccountRoles, Stack
from relaunch_cli.deployment.kept import SAM_STACK, kept_after

PROVIDER = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"
TRAINING_OUTPUTS = {
    "CheckpointBucketName": "made-a",
    "DataBucketName": "made-b",
    "RepositoryName": "relaunch/trainer",
    "LogGroupName": "/relaunch/relaunch",
}


def test_what_holds_work_is_kept_and_told_with_its_command() -> None:
    found = [
        Stack("relaunch", "CREATE_COMPLETE", {"TableDeletionPolicy": "Retain"}, {"TableName": "relaunch-JobsTable-1"}),
        Stack("relaunch-training", "CREATE_COMPLETE", {}, TRAINING_OUTPUTS),
    ]
    kept = {each.what: each for each in kept_after(found, "relaunch", AccountRoles((), PROVIDER), None)}

    assert kept["table relaunch-JobsTable-1"].command == "aws dynamodb delete-table --table-name relaunch-JobsTable-1"
    assert "--bucket made-a" in kept["bucket made-a"].command
    assert "bucket made-b" in kept
    assert kept["repository relaunch/trainer"].command.endswith("--repository-name relaunch/trainer")
    assert kept["log group /relaunch/relaunch"].why == "what trainings wrote, until it is 30 days old"
    assert all(each.why for each in kept.values())


def test_what_an_earlier_deployment_made_is_listed_again() -> None:
    bucket = "relaunch-training-newcheckpointbucket-1a2b"
    adopted = {"CheckpointBucket": bucket, "DataBucket": "mine", "ExistingRepository": "true"}
    outputs = {**TRAINING_OUTPUTS, "CheckpointBucketName": bucket, "DataBucketName": "mine"}
    found = [Stack("relaunch-training", "CREATE_COMPLETE", adopted, outputs)]
    kept = [each.what for each in kept_after(found, "relaunch", AccountRoles((), PROVIDER), None)]

    assert [f"bucket {bucket}", "repository relaunch/trainer"] == kept[:2]


def test_what_the_stacks_did_not_make_is_not_told() -> None:
    existing = {"CheckpointBucket": "mine", "DataBucket": "mine", "ExistingRepository": "true"}
    found = [
        Stack("relaunch", "CREATE_COMPLETE", {"TableDeletionPolicy": "Delete"}, {"TableName": "relaunch-JobsTable-1"}),
        Stack("relaunch-training", "CREATE_COMPLETE", existing, {**TRAINING_OUTPUTS, "RepositoryName": "mine"}),
    ]
    kept = [each.what for each in kept_after(found, "relaunch", AccountRoles((), PROVIDER), None)]

    assert not [what for what in kept if what.startswith(("bucket", "repository", "table"))]


def test_what_an_account_has_once_is_listed_if_it_is_there() -> None:
    packages = Stack(SAM_STACK, "CREATE_COMPLETE", outputs={"SourceBucket": "sam-1"})
    kept = {each.what: each for each in kept_after([], "relaunch", AccountRoles((), PROVIDER), packages)}
    none = [each.what for each in kept_after([], "relaunch", AccountRoles(SERVICES, ""), None)]

    for name in ("AWSServiceRoleForECS", "AWSServiceRoleForEC2Spot"):
        assert kept[f"service-linked role {name}"].command.endswith(f"--role-name {name}")
    assert kept["OIDC provider of GitHub"].command.endswith(f"-provider-arn {PROVIDER}")
    assert f"bucket sam-1 of the stack {SAM_STACK}" in kept
    assert none == ["task definitions"]


def test_every_command_has_the_arguments_that_the_aws_cli_requires() -> None:
    """By botocore's models of what is called."""
    outputs = {"TableName": "jobs", "NoticesPath": "/relaunch/relaunch/notices"}
    found = [
        Stack("relaunch", "CREATE_COMPLETE", {}, outputs),
        Stack("relaunch-training", "CREATE_COMPLETE", {}, TRAINING_OUTPUTS),
    ]
    packages = Stack(SAM_STACK, "CREATE_COMPLETE", outputs={"SourceBucket": "sam-1"})
    kept = kept_after(found, "relaunch", AccountRoles((), PROVIDER), packages)

    assert len(kept) == 11
    for each in kept:
        for command in re.findall(r"aws [^,]+", each.command):
            _, service, operation, *arguments = command.split()
            model = get_session().get_service_model(service.replace("s3api", "s3"))
            (name,) = (name for name in model.operation_names if xform_name(name, "-") == operation)
            required = {
                f"--{xform_name(member, '-')}" for member in model.operation_model(name).input_shape.required_members
            }
            assert required <= set(arguments), command
