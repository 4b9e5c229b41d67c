from collections.abc import Mapping

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.cli_session import create_stack
from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.training_stack import read_training_stack

OUTPUTS = {
    "RepositoryName": "relaunch/trainer",
    "RepositoryUri": "111122223333.dkr.ecr.us-east-1.amazonaws.com/relaunch/trainer",
    "LogGroupName": "/relaunch/relaunch",
    "CheckpointBucketName": "acme-checkpoints",
    "DataBucketName": "acme-data",
    "TaskRoleArn": "arn:aws:iam::111122223333:role/relaunch/task",
    "ExecutionRoleArn": "arn:aws:iam::111122223333:role/relaunch/execution",
}
APPLICATION = {"TaskDefinitionFamilies": "vision-*,other", "JobApiUrl": "https://job-api.example.com/"}


def read(stacks: Mapping[str, Mapping[str, str]]):
    with aws_in_process():
        for name, outputs in stacks.items():
            create_stack(name, outputs)
        return read_training_stack("relaunch", "us-east-1", make_client("cloudformation"))


def test_the_outputs_of_both_stacks_are_read():
    found = read({"relaunch": APPLICATION, "relaunch-training": OUTPUTS})

    assert (found.repository_name, found.log_group) == ("relaunch/trainer", "/relaunch/relaunch")
    assert (found.checkpoint_bucket, found.data_bucket) == ("acme-checkpoints", "acme-data")
    assert (found.family_prefix, found.job_api_url) == ("vision-", "https://job-api.example.com/")
    assert (found.submit_role_arn, found.github_repository, found.webhook_url) == ("", "", "")


@pytest.mark.parametrize(
    ("families", "prefix"),
    [("relaunch-*", "relaunch-"), ("bert,vision_b-*, x-*", "vision_b-"), ("any", ""), ("bert,gpt", "")],
)
def test_a_training_gets_a_family_that_jobs_may_run_and_operators_may_register_in(families: str, prefix: str) -> None:
    found = read({"relaunch": {"TaskDefinitionFamilies": families}, "relaunch-training": OUTPUTS})

    assert found.family_prefix == prefix


@pytest.mark.parametrize(
    ("stacks", "message", "hint", "code"),
    [
        ({}, "there is no stack 'relaunch' in us-east-1", "relaunch deploy", exit_codes.NOT_FOUND),
        (
            {"relaunch": APPLICATION},
            "there is no stack 'relaunch-training', which has what trainings need",
            "relaunch deploy Training=on",
            exit_codes.NOT_FOUND,
        ),
        (
            {"relaunch": APPLICATION, "relaunch-training": {"RepositoryName": "x"}},
            "the stack relaunch-training has no output 'RepositoryUri': it is another one",
            "",
            exit_codes.USAGE,
        ),
    ],
)
def test_a_stack_that_is_missing_is_told_with_the_command_that_makes_it(stacks, message, hint, code):
    with pytest.raises(CommandError) as refused:
        read(stacks)

    assert refused.value.message == message
    assert hint in refused.value.hint
    assert refused.value.exit_code == code
