"""`relaunch deploy` and `relaunch uninstall` at the question: a no ends with 130, as that of every command."""

import boto3
import pytest
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
    monkeypatch.setattr("relaunch_cli.views.screen.can_ask", lambda: True)
    with mock_aws():
        yield


def test_a_no_deploys_nothing(monkeypatch):
    monkeypatch.setattr("relaunch_cli.deployment.deployment.survey", lambda *_: SURVEY)

    result = invoke("deploy", answer="n\n")

    assert result.exit_code == exit_codes.CANCELLED
    assert "relaunch: nothing was deployed" in result.stderr


def test_a_no_removes_nothing():
    create_stack("relaunch", STACK_OUTPUTS)

    result = invoke("uninstall", answer="n\n")

    assert result.exit_code == exit_codes.CANCELLED
    assert "relaunch: nothing was removed" in result.stderr
    assert len(boto3.client("cloudformation", "us-east-1").describe_stacks()["Stacks"]) == 1


def test_no_machines_at_most_is_asked_about_before_anything_is_looked_at():
    result = invoke("deploy", "MaxMachines=0", "--dry-run")

    assert (result.exit_code, result.stdout) == (exit_codes.USAGE, "")
    assert "did you mean MaxMachines=unlimited" in result.stderr
