"""Repositories on GitHub beside the first one: a stack for each, whose roles reach nothing of another one."""

from collections.abc import Iterator
from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.change_set import ChangeSets
from relaunch_cli.deployment.findings import github_stack_name
from relaunch_cli.deployment.github_repository import RepositoryIds
from relaunch_cli.deployment.github_stacks import (
    AccessPlan,
    WantedAccess,
    deploy_access,
    find_github_stacks,
    plan_access,
    repository_of,
)
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.deployment.uninstallation import Uninstallation

IDS = RepositoryIds("11", "22")
TEMPLATE = find_source().github_repository
PROVIDER = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"


class Account:
    """An account with an application, whose stacks are fakes."""

    def __init__(self) -> None:
        self.stacks = FakeStacks()
        self.ids: RepositoryIds | None = IDS
        self.stacks.more_outputs = {
            "relaunch": {"PlanApiUrl": "https://plan.example/"},
            "relaunch-training": {"RepositoryName": "relaunch/trainer"},
        }
        self.have("relaunch")
        self.have("relaunch-training", GitHubRepository="acme/vision", RolePath="acme/")

    def have(self, name: str, **parameters: str) -> None:
        self.stacks.have(name, **parameters)
        self.stacks.stacks[name].template = "theirs"

    def client(self, service: str) -> Any:
        return self.stacks if service == "cloudformation" else make_client(service)

    def plan(self, repository: str = "acme/speech", **wanted: str) -> AccessPlan:
        return plan_access("relaunch", WantedAccess(repository, **wanted), self.client, lambda _: self.ids)

    def add(self, repository: str = "acme/speech", **wanted: str) -> dict[str, str]:
        change_sets = ChangeSets(self.stacks, lambda _: True, lambda _: None, lambda _: None)
        plan = self.plan(repository, **wanted)
        return dict(deploy_access(plan, TEMPLATE, make_client("iam"), change_sets).parameters)


@pytest.fixture
def account() -> Iterator[Account]:
    with aws_in_process():
        yield Account()


def test_a_repository_gets_a_stack_with_its_numbers_and_the_paths_of_the_application(account: Account) -> None:
    assert account.add() == {
        "ApplicationStack": "relaunch",
        "GitHubRepository": "acme/speech",
        "GitHubOwnerId": "11",
        "GitHubRepositoryId": "22",
        "GitHubOidcProviderArn": PROVIDER,
        "RolePath": "acme/",
    }
    (made,) = find_github_stacks("relaunch", account.stacks)
    assert (made.name, repository_of(made)) == (github_stack_name("relaunch", "acme/speech"), "acme/speech")


def test_the_name_is_githubs_own_and_the_branch_its_default(account: Account) -> None:
    account.ids = RepositoryIds("11", "22", "Acme/Speech", "master")

    made = account.add()

    assert (made["GitHubRepository"], made["GitHubRef"]) == ("Acme/Speech", "refs/heads/master")
    (found,) = find_github_stacks("relaunch", account.stacks)
    assert found.name == github_stack_name("relaunch", "acme/speech")


def test_a_repository_that_has_another_name_by_now_is_refused(account: Account) -> None:
    account.ids = RepositoryIds("11", "22", "acme/audio")

    with pytest.raises(RefusedError, match="acme/audio now: relaunch github add acme/audio"):
        account.add()


def test_again_it_changes_what_is_named_and_keeps_the_rest(account: Account) -> None:
    account.add(environment="training", images="relaunch/trainer")
    account.ids = None
    account.add(images="acme/speech")

    (made,) = find_github_stacks("relaunch", account.stacks)
    assert made.parameters["GitHubEnvironment"] == "training"
    assert made.parameters["ImageRepository"] == "acme/speech"
    assert made.parameters["GitHubRepositoryId"] == "22"


def test_a_branch_takes_the_place_of_an_environment(account: Account) -> None:
    account.add(environment="training")
    made = account.add(ref="refs/heads/release")

    # The template would let in the environment alone, whatever the branch is.
    assert (made["GitHubRef"], made["GitHubEnvironment"]) == ("refs/heads/release", "")
    with pytest.raises(RefusedError, match="leave out --ref or --environment"):
        account.plan(ref="refs/heads/release", environment="training")


def test_an_environment_without_rules_is_warned_of(account: Account) -> None:
    (note,) = account.plan(environment="training").notes

    assert "the environment training lets in" in note
    assert "every branch if it has none" in note
    account.add(environment="training")
    assert account.plan().notes == []


def test_after_a_failure_it_goes_on(account: Account) -> None:
    account.stacks.failure = "Rate exceeded"
    with pytest.raises(RefusedError, match="Rate exceeded"):
        account.add()
    account.stacks.failure = ""
    account.add()

    assert [each.status for each in find_github_stacks("relaunch", account.stacks)] == ["CREATE_COMPLETE"]


def test_without_its_numbers_it_is_trusted_by_its_name_and_that_is_said(account: Account) -> None:
    account.ids = None

    (note,) = account.plan().notes
    assert "trusted by its name alone" in note
    assert "GitHubRepositoryId" not in account.add()


def test_images_that_all_trainings_share_are_pointed_out(account: Account) -> None:
    (note,) = account.plan(images="relaunch/trainer").notes

    assert "starts its jobs" in note
    assert account.plan(images="acme/speech").notes == []


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("ACME/Vision", "is let in by relaunch-training already"),
        ("vision", "write it like OWNER/NAME"),
        ("acme/vision/x", "write it like OWNER/NAME"),
        ("acme/..", "write it like OWNER/NAME"),
    ],
)
def test_what_cannot_be_let_in_is_refused(account: Account, repository: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        account.plan(repository)


def test_an_application_without_plans_is_to_be_deployed_first(account: Account) -> None:
    account.stacks.more_outputs["relaunch"] = {"JobApiUrl": "https://api.example/"}
    with pytest.raises(RefusedError, match="has no function plan_api yet: relaunch deploy"):
        account.plan()
    del account.stacks.stacks["relaunch"]
    with pytest.raises(RefusedError, match="is not there: relaunch deploy"):
        account.plan()


@pytest.mark.parametrize(
    ("one", "other"), [("acme/a-b", "acme-a/b"), ("acme/a.b", "acme/a-b"), ("acme/a_b", "acme/a-b")]
)
def test_names_that_are_nearly_the_same_are_two_stacks(one: str, other: str) -> None:
    assert github_stack_name("relaunch", one) != github_stack_name("relaunch", other)


def test_a_name_is_one_of_cloudformation_and_the_same_in_capitals() -> None:
    name = github_stack_name("relaunch", "Acme/" + "a" * 100)

    assert name == github_stack_name("relaunch", "acme/" + "A" * 100)
    assert len(name) <= 128
    assert name.replace("-", "").isalnum()


def test_stacks_of_other_applications_and_other_stacks_are_left_alone(account: Account) -> None:
    account.add()
    account.have("relaunch-github-acme-web-000000", ApplicationStack="relaunch", GitHubRepository="acme/web")
    other = github_stack_name("relaunch-b", "acme/web")
    account.have(other, ApplicationStack="relaunch-b", GitHubRepository="acme/web")

    assert [repository_of(each) for each in find_github_stacks("relaunch", account.stacks)] == ["acme/speech"]
    assert [each.name for each in find_github_stacks("relaunch-b", account.stacks)] == [other]


def test_they_go_with_the_application(account: Account) -> None:
    account.add()

    removal = Uninstallation("relaunch", account.client, lambda _: None, lambda _: None)
    assert [each.name for each in removal.find_stacks()] == [
        "relaunch",
        "relaunch-training",
        github_stack_name("relaunch", "acme/speech"),
    ]
