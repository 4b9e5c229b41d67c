"""What `make deploy` runs: the stack of machines, then SAM with the reservations that the account has room for."""

import io
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from fakes.repository import REPOSITORY
from relaunch_local.stack import deploy
from relaunch_cli.deployment.concurrency import RESERVATIONS

SETTINGS = {"stack_name": "relaunch", "region": "us-east-1"}
ARGUMENTS = ["Runtime=python3.13", "CapacityProviders=g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand"]


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


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> StubbedAws:
    stubbed = StubbedAws()
    clients = deploy.Clients(stubbed.functions.client, stubbed.stacks.client)
    monkeypatch.setattr(deploy, "_connect", lambda _settings: clients)
    return stubbed


def test_a_first_deployment_reserves_what_a_large_account_has(aws: StubbedAws) -> None:
    aws.answer_account(1000, 1000)
    aws.answer_no_stack()

    extra, notes = deploy.reservations(ARGUMENTS, SETTINGS)

    assert extra == ["WarningsReservedConcurrency=10", "WebhookReservedConcurrency=20"]
    assert len(notes) == 1


def test_a_stacks_own_reservations_are_available_to_it(aws: StubbedAws) -> None:
    aws.answer_account(130, 100)
    aws.answer_reserved(10, 20)

    assert deploy.reservations(ARGUMENTS, SETTINGS)[0] == [
        "WarningsReservedConcurrency=10",
        "WebhookReservedConcurrency=20",
    ]


def test_a_new_account_is_told_what_to_ask_for(aws: StubbedAws) -> None:
    aws.answer_account(10, 10)
    aws.answer_reserved(None, None)

    extra, notes = deploy.reservations(ARGUMENTS, SETTINGS)

    assert extra == ["WarningsReservedConcurrency=0", "WebhookReservedConcurrency=0"]
    assert "--quota-code L-B99A9384 --desired-value 130" in notes[1]


def test_what_the_user_names_is_neither_repeated_nor_read_for(aws: StubbedAws) -> None:
    aws.answer_account(1000, 1000)
    aws.answer_no_stack()

    assert deploy.reservations([*ARGUMENTS, "WebhookReservedConcurrency=0"], SETTINGS)[0] == [
        "WarningsReservedConcurrency=10"
    ]
    # Nothing is scripted for a second deployment: a call would fail.
    both = ["WebhookReservedConcurrency=5", "WarningsReservedConcurrency=none"]
    assert deploy.reservations(both, SETTINGS) == ([], ())


@pytest.mark.parametrize("code", ["AccessDeniedException", "TooManyRequestsException", "UnrecognizedClientException"])
def test_an_account_that_may_not_be_read_is_deployed_to_as_it_is(aws: StubbedAws, code: str) -> None:
    aws.functions.add_client_error("get_account_settings", code, "not you")

    extra, (note,) = deploy.reservations(ARGUMENTS, SETTINGS)

    assert extra == []
    assert code in note
    assert "lambda:GetAccountSettings" in note
    assert "name WarningsReservedConcurrency and WebhookReservedConcurrency in PARAMETERS" in note


def test_reservations_that_may_not_be_read_are_left_as_they_are(aws: StubbedAws) -> None:
    aws.answer_account(130, 100)
    aws.stacks.add_client_error("describe_stack_resource", "AccessDenied", "not you", 403)

    assert deploy.reservations(ARGUMENTS, SETTINGS)[0] == []


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

    assert len(deploy.reservations(ARGUMENTS, SETTINGS)[0]) == 2


@pytest.mark.parametrize(
    "answer", [{}, {"AccountLimit": {}}, {"AccountLimit": {"ConcurrentExecutions": 1000}}], ids=["no", "empty", "half"]
)
def test_an_answer_without_limits_changes_nothing(aws: StubbedAws, answer: dict[str, Any]) -> None:
    aws.functions.add_response("get_account_settings", answer)

    extra, (note,) = deploy.reservations(ARGUMENTS, SETTINGS)

    assert extra == []
    assert "GetAccountSettings answers no limits" in note


def test_the_stack_is_the_one_that_sam_deploys() -> None:
    assert deploy.read_sam_configuration(REPOSITORY / "samconfig.toml")["stack_name"] == "relaunch"


def test_region_and_profile_of_samconfig_are_used(tmp_path: Path) -> None:
    file = tmp_path / "samconfig.toml"
    file.write_text(
        '[default.global.parameters]\nstack_name = "a"\n[default.deploy.parameters]\nregion = "eu-west-1"\n'
    )

    assert deploy.read_sam_configuration(file) == {"stack_name": "a", "region": "eu-west-1"}


def run_deploy(folder: Path, *parameters: str) -> subprocess.CompletedProcess[str]:
    """Run the command of `make deploy`, without credentials, with a SAM CLI that prints its arguments."""
    sam = folder / "sam"
    sam.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    sam.chmod(sam.stat().st_mode | stat.S_IXUSR)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = {
        **kept,
        "PYTHONPATH": str(REPOSITORY / "local"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }
    return subprocess.run(
        [sys.executable, "-m", "relaunch_cli.deployment.reservations", "--sam", str(sam), *parameters],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_without_aws_and_machines_the_command_of_sam_is_run_with_what_turns_them_off(tmp_path: Path) -> None:
    run = run_deploy(tmp_path, *ARGUMENTS, "Machines=off")

    off = ['MachineSubnets=""', 'MachineLaunchTemplates=""', 'MachineInstanceRoleArn=""']
    assert run.stdout.splitlines() == ["deploy", "--parameter-overrides", *ARGUMENTS, *off]
    assert "cannot be read (Unable to locate credentials)" in run.stderr
    assert run.returncode == 0


def test_without_aws_machines_are_not_set_up_and_nothing_is_deployed(tmp_path: Path) -> None:
    run = run_deploy(tmp_path, *ARGUMENTS)

    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr == (
        "machines of our own cannot be set up: Unable to locate credentials; docs/machines.md says what it needs, and "
        "Machines=off deploys the application alone\n"
    )


def test_a_contradiction_is_told_and_nothing_is_deployed(tmp_path: Path) -> None:
    run = run_deploy(tmp_path, "Machines=off", "VpcId=vpc-0a")

    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr == "Machines=off contradicts VpcId: leave out one or the other\n"


@pytest.mark.parametrize(("typed", "is_yes"), [("y", True), (" YES ", True), ("n", False), ("", False), ("yo", False)])
def test_a_change_is_made_only_after_a_yes(monkeypatch: pytest.MonkeyPatch, typed: str, *, is_yes: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda _question: typed)

    assert deploy.ask("Deploy? ") is is_yes


def test_without_a_terminal_the_answer_is_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    assert not deploy.ask("Deploy? ")


def test_samconfig_asks_before_changes() -> None:
    assert deploy.read_sam_configuration(REPOSITORY / "samconfig.toml")["confirm_changeset"] is True
