"""github: repositories are let in, listed and removed, by a stack for each."""

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

from fakes.cli_session import Outcome, flat
from fakes.stacks import FakeStacks
from fakes.training_stacks import APPLICATION, PARAMETERS, ROLE, TRAINING
from relaunch_cli.aws import account as aws_account
from relaunch_cli.deployment.findings import github_stack_name
from relaunch_cli.deployment.github_repository import RepositoryIds
from relaunch_cli.deployment.uninstallation import Uninstallation

Relaunch = Callable[..., Outcome]
SPEECH = github_stack_name("relaunch", "acme/speech")
PROVIDER = "arn:aws:iam::111122223333:oidc-provider/token.actions.githubusercontent.com"


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> FakeStacks:
    stacks = FakeStacks()
    stacks.more_outputs = {
        "relaunch": APPLICATION,
        "relaunch-training": TRAINING,
        SPEECH: {"SubmitRoleArn": f"{ROLE}/speech", "PlanRoleArn": f"{ROLE}/speech-plan"},
    }
    for name, parameters in (("relaunch", {}), ("relaunch-training", PARAMETERS)):
        stacks.have(name, **parameters)
        stacks.stacks[name].template = "theirs"
    iam = MagicMock()
    iam.list_open_id_connect_providers.return_value = {"OpenIDConnectProviderList": [{"Arn": PROVIDER}]}
    iam.get_open_id_connect_provider.return_value = {"ClientIDList": ["sts.amazonaws.com"]}
    clients: dict[str, Any] = {"cloudformation": stacks, "iam": iam}
    monkeypatch.setattr(aws_account.AwsAccount, "client", lambda _, service: clients[service])
    monkeypatch.setattr("relaunch_cli.commands.github.find_repository_ids", lambda _: RepositoryIds("11", "22"))
    monkeypatch.setattr(
        Uninstallation, "delete", lambda _, found: [stacks.stacks.pop(each.name) for each in found] and None
    )
    return stacks


def test_a_repository_is_let_in_listed_and_removed(relaunch: Relaunch, stacks: FakeStacks) -> None:
    added = relaunch("github", "add", "acme/speech", "--environment", "training", "--yes", "--json").document
    (note,) = added.pop("notes")
    listed = relaunch("github", "list", "--json").document["repositories"]
    removed = relaunch("github", "remove", "ACME/speech", "--yes")
    after = relaunch("github", "list")

    assert added == {
        "repository": "acme/speech",
        "stack": SPEECH,
        "lets_in": "environment training",
        "repository_id": "22",
        "images": None,
        "submit_role_arn": f"{ROLE}/speech",
        "plan_role_arn": f"{ROLE}/speech-plan",
    }
    assert "every branch if it has none" in note
    assert [each["repository"] for each in listed] == ["acme/vision", "acme/speech"]
    assert listed[0]["submit_role_arn"] == f"{ROLE}/submit"
    assert "acme/speech is let in no more" in removed.stdout
    assert SPEECH not in stacks.stacks
    assert "acme/speech" not in after.stdout
    assert "acme/vision" in after.stdout


def test_nothing_is_made_or_removed_before_it_is_confirmed(relaunch: Relaunch, stacks: FakeStacks) -> None:
    refused = relaunch("github", "add", "acme/speech")
    assert SPEECH not in stacks.stacks
    relaunch("github", "add", "acme/speech", "--yes")
    kept = relaunch("github", "remove", "acme/speech")

    assert refused.exit_code == kept.exit_code != 0
    assert "add --yes to deploy without a question" in flat(refused.stderr)
    assert "add --yes to remove it without a question" in flat(kept.stderr)
    assert SPEECH in stacks.stacks


@pytest.mark.usefixtures("stacks")
@pytest.mark.parametrize("repository", ["acme/vision", "acme/other"])
def test_a_repository_without_a_stack_of_its_own_is_not_removed(relaunch: Relaunch, repository: str) -> None:
    outcome = relaunch("github", "remove", repository, "--yes")

    assert outcome.exit_code == 3
    assert "has no stack of its own" in outcome.stderr


@pytest.mark.usefixtures("stacks")
def test_what_is_printed_has_what_a_workflow_needs(relaunch: Relaunch) -> None:
    shown = relaunch("github", "add", "acme/speech", "--images", "relaunch/trainer", "--yes", columns=200)

    assert "refs/heads/main" in shown.stdout
    assert f"{ROLE}/speech-plan" in shown.stdout
    assert "starts its jobs, and is what they run" in flat(shown.stderr)
