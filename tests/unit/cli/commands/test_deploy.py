"""`relaunch deploy` and `relaunch uninstall` at the question: a no ends with 130, as that of every command."""

from dataclasses import replace

import boto3
import pytest
import typer
from moto import mock_aws

from fakes.cli_session import STACK_OUTPUTS, create_stack, invoke
from relaunch_cli import exit_codes
from relaunch_cli.deployment.findings import AccountRoles, QuotaState, Survey

SURVEY = Survey(
    stack="relaunch",
    account="111122223333",
    region="us-east-1",
    given={},
    training=None,
    has_machines=True,
    before={},
    roles=AccountRoles(missing=(), github_provider_arn=""),
    quotas=QuotaState(),
)


@pytest.fixture(autouse=True)
def _terminal(_credentials, monkeypatch):
    for command in ("deploy", "uninstall"):
        monkeypatch.setattr(f"relaunch_cli.commands.{command}.can_ask", lambda: True)
    with mock_aws():
        yield


# Without an answer the input ends, which typer takes as it takes Ctrl-C.
@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_no_deploys_nothing(monkeypatch, answer):
    monkeypatch.setattr("relaunch_cli.commands.deploy.survey", lambda *_: SURVEY)

    result = invoke("deploy", answer=answer)

    assert result.exit_code == exit_codes.CANCELLED
    assert "relaunch: nothing was deployed" in result.stderr


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_no_removes_nothing(answer):
    create_stack("relaunch", STACK_OUTPUTS)

    result = invoke("uninstall", answer=answer)

    assert result.exit_code == exit_codes.CANCELLED
    assert "relaunch: nothing was removed" in result.stderr
    assert len(boto3.client("cloudformation", "us-east-1").describe_stacks()["Stacks"]) == 1


def test_a_removal_closes_the_stack_then_ends_its_jobs_then_deletes_it(monkeypatch):
    steps = []
    for name in ("close", "drain", "delete", "remove_rules"):
        step = f"relaunch_cli.deployment.uninstallation.Uninstallation.{name}"
        monkeypatch.setattr(step, lambda *_, name=name: steps.append(name))
    rules = {"UploadRulePrefix": "relaunch-relaunch-", "IntakeDeadLetterQueueArn": "arn:2"}
    create_stack("relaunch", STACK_OUTPUTS | rules)

    assert invoke("uninstall", "--yes").exit_code == 0
    # The stacks of capacity providers first.
    assert steps == ["close", "drain", "delete", "remove_rules", "delete"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, typer.Abort])
def test_ctrl_c_says_that_the_same_command_goes_on(monkeypatch, error):
    def interrupted(*_arguments):
        raise error

    monkeypatch.setattr("relaunch_cli.commands.deploy.survey", lambda *_: SURVEY)
    monkeypatch.setattr("relaunch_cli.deployment.deployment.Deployment.run", interrupted)
    monkeypatch.setattr("relaunch_cli.deployment.uninstallation.Uninstallation.delete", interrupted)
    create_stack("relaunch", {})

    deployed = invoke("deploy", "--yes")
    removed = invoke("uninstall", "--yes")

    assert (deployed.exit_code, removed.exit_code) == (exit_codes.CANCELLED, exit_codes.CANCELLED)
    assert "after that the same command goes on from there" in deployed.stderr
    assert "after that the same command goes on from there" in removed.stderr


def test_no_machines_at_most_is_asked_about_before_anything_is_looked_at():
    result = invoke("deploy", "MaxMachines=0", "--dry-run")

    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert "did you mean MaxMachines=unlimited" in result.stderr


def test_more_than_the_environment_of_a_function_takes_is_refused_before_anything_is_shown(monkeypatch):
    providers = ",".join(f"group-of-the-vision-team-{number}=g5.xlarge/spot/200GiB" for number in range(99))
    plan = replace(SURVEY, given={"CapacityProviders": providers})
    monkeypatch.setattr("relaunch_cli.commands.deploy.survey", lambda *_: plan)

    result = invoke("deploy", "--dry-run")

    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert "and Lambda takes 4,096: shorten CapacityProviders" in result.stderr
