"""A deployment goes on with what is there: stacks of repositories on GitHub, and stacks that were never made.

It says before it makes anything what would stop it, or others.
"""

import pytest

from fakes.aws import make_client
from relaunch_cli.deployment.account_roles import GITHUB_ISSUER
from relaunch_cli.deployment.findings import ParameterChange, github_stack_name
from relaunch_cli.deployment.named_parameters import read_changes
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.views.deployment import survey_json
from unit.cli.deployment import test_deployment

account = test_deployment.account
SPEECH = github_stack_name("relaunch", "acme/speech")
GIVEN = {"ApplicationStack": "relaunch", "GitHubRepository": "acme/speech", "GitHubRef": "refs/heads/trunk"}


def test_the_stack_of_a_repository_gets_the_template_of_the_release_and_keeps_its_parameters(
    account: test_deployment.FakeAccount,
) -> None:
    account.deploy()
    account.stacks.have(SPEECH, **GIVEN)
    account.stacks.stacks[SPEECH].template = "of an earlier release"

    account.deploy()

    assert account.stacks.stacks[SPEECH].template == find_source().github_repository
    assert account.parameters(SPEECH) == GIVEN
    shown = survey_json(account.survey(), is_deployed=False)["stacks"]
    assert {"name": SPEECH, "exists": True} in shown
    assert read_changes(account.survey(), find_source()) == []
    changes = read_changes(account.survey(RepositoryName="vision", MaxMachines="5"), find_source())
    assert [(each.stack, each.name) for each in changes][1:] == [("relaunch", "MaxMachines")]
    assert changes[0] == ParameterChange("relaunch-training", "RepositoryName", "relaunch/trainer", "vision")


def test_those_of_another_application_are_not_touched(account: test_deployment.FakeAccount) -> None:
    account.deploy()
    account.stacks.have(SPEECH, **GIVEN)
    other = github_stack_name("relaunch-b", "acme/web")
    account.stacks.have(other, **{**GIVEN, "ApplicationStack": "relaunch-b", "GitHubRepository": "acme/web"})

    assert [each.name for each in account.survey().repositories] == [SPEECH]


def test_an_environment_is_warned_of_where_it_is_named_and_a_branch_beside_it(
    account: test_deployment.FakeAccount,
) -> None:
    named = account.survey(GitHubRepository="acme/vision", GitHubEnvironment="training")
    account.deploy(GitHubRepository="acme/vision", GitHubEnvironment="training")
    beside = account.survey(GitHubRef="refs/heads/release")

    (note,) = [each for each in named.notes if "environment" in each]
    assert (
        "the environment training lets in what its rules at GitHub let through, and every branch if it has none" in note
    )
    (note,) = [each for each in beside.notes if "environment" in each]
    assert note.startswith("GitHubRef has no effect, for the environment training says whose jobs are let in")
    assert not [each for each in account.survey().notes if "environment" in each]
    without = account.survey(GitHubRef="refs/heads/release", GitHubEnvironment="")
    assert not [each for each in without.notes if "environment" in each]


def test_stacks_whose_first_deployment_failed_are_made_again(account: test_deployment.FakeAccount) -> None:
    account.stacks.have("relaunch", "ROLLBACK_COMPLETE", MachineLaunchTemplates="gpu=lt-0c:1")
    account.stacks.have("relaunch-training", "ROLLBACK_COMPLETE", RepositoryName="vision")
    account.deploy()

    # SAM CLI makes no stack of a name that there is.
    assert account.stacks.calls.count("DeleteStack") == 2
    assert account.log.count("create relaunch") == 1
    assert {each.status for each in account.stacks.stacks.values()} == {"CREATE_COMPLETE"}
    assert account.parameters("relaunch-training")["RepositoryName"] == "vision"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"CheckpointBuckets": "nosuch"}, "CheckpointBuckets=nosuch: there is no such bucket"),
        (
            {"CapacityProviders": "a=inf2.xlarge/spot/managed-instances,b=inf1.xlarge/spot/managed-instances@a"},
            "CapacityProviders=b=inf1.xlarge/spot/managed-instances@a: ECS runs inf1.xlarge on EC2 alone",
        ),
        ({"Providers": "g5.xlage/spot"}, "there is no accelerated instance type 'g5.xlage': did you mean g5.xlarge"),
        ({"Webhook": "maybe"}, "Webhook=maybe is neither Webhook=on nor Webhook=off"),
    ],
)
def test_what_cannot_be_made_is_refused_before_anything_is_made(
    account: test_deployment.FakeAccount, given: dict[str, str], message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        account.deploy(**given)

    assert (account.log, account.stacks.stacks) == ([], {})


def test_the_0_of_an_earlier_release_is_asked_about_before_anything_is_made(
    account: test_deployment.FakeAccount,
) -> None:
    account.stacks.have("relaunch", MaxMachines="0")
    with pytest.raises(RefusedError, match="the stack has MaxMachines=0: did you mean"):
        account.deploy()

    assert account.log == []


def test_what_would_keep_workflows_out_is_said_in_the_plan(account: test_deployment.FakeAccount) -> None:
    make_client("iam").create_open_id_connect_provider(Url=f"https://{GITHUB_ISSUER}", ClientIDList=["another"])

    assert any("Incorrect token audience" in note for note in account.survey(GitHubRepository="acme/vision").notes)


def test_what_is_off_stays_off_in_what_an_update_shows(account: test_deployment.FakeAccount) -> None:
    account.deploy(Machines="off", Monitoring="false")

    again = account.survey()
    turned_on = account.survey(Machines="on", Monitoring="true")

    assert (again.has_machines, again.has_monitoring) == (False, False)
    assert (turned_on.has_machines, turned_on.has_monitoring) == (True, True)
