"""init: the workflows and the webhook that it makes, and how images are pushed where there are none."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.cli_session import CliSession, flat
from fakes.training_stacks import ROLE, create_stack
from relaunch_cli.deployment.findings import github_stack_name
from unit.cli.commands.init_account import FILES, PLAN, Relaunch, account_of, make_repository, written
from unit.cli.repository_setup.fake_gh import FakeGh


@pytest.fixture(autouse=True)
def account(session: CliSession) -> Iterator[None]:
    with account_of(session):
        yield


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_repository(tmp_path / "repository")
    monkeypatch.chdir(folder)
    return folder


def test_the_webhook_is_made_with_a_secret_of_its_own(
    relaunch: Relaunch, session: CliSession, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    gh = FakeGh(tmp_path, monkeypatch)

    outcome = relaunch("init", "--webhook", "--yes")

    assert outcome.exit_code == 0, outcome.stderr
    method, path, body = gh.calls[-1]
    assert (method, path, body["events"]) == ("POST", "repos/acme/vision/hooks", ["push"])
    assert body["config"]["url"] == "https://hook.example/acme/vision"
    assert body["config"]["secret"] in session.webhook.load().text
    assert "wait_for_image" in written(repository)["relaunch.yaml"]


@pytest.mark.parametrize(
    ("remote", "note"),
    [
        ("https://gitlab.com/acme/vision.git", "is not at GitHub: push images in another way"),
        (
            "https://github.com/acme/other.git",
            "only acme/vision is let in by the account: relaunch github add acme/other --images",
        ),
    ],
)
def test_a_repository_that_is_not_let_in_gets_no_workflow_and_is_told(relaunch, repository, remote, note):
    subprocess.run(["git", "remote", "set-url", "origin", remote], check=True)
    create_stack(github_stack_name("relaunch", "acme/mute"), {"SubmitRoleArn": ROLE}, GitHubRepository="acme/mute")

    outcome = relaunch("init", "--name", "vision", "--yes")

    assert outcome.exit_code == 0
    assert note in flat(outcome.stdout)
    assert sorted(written(repository)) == sorted(path for path in FILES if "workflows" not in path)


def test_what_could_not_be_written_before_is_written_when_it_can(relaunch: Relaunch, repository: Path):
    subprocess.run(["git", "remote", "rename", "origin", "upstream"], check=True)
    relaunch("init", "--name", "vision", "--yes")
    assert ".github/workflows/train.yml" not in written(repository)

    subprocess.run(["git", "remote", "rename", "upstream", "origin"], check=True)
    relaunch("init", "--yes")

    assert "TRAINING: vision" in written(repository)[".github/workflows/train.yml"]


def test_a_repository_with_roles_of_its_own_is_held_to_them(relaunch: Relaunch, repository: Path):
    subprocess.run(["git", "remote", "set-url", "origin", "https://github.com/acme/speech.git"], check=True)
    own = {"SubmitRoleArn": f"{ROLE}/speech", "PlanRoleArn": f"{ROLE}/speech-plan"}
    given = {"GitHubRepository": "acme/speech", "GitHubRef": "refs/heads/trunk", "ImageRepository": "relaunch/trainer"}
    create_stack(github_stack_name("relaunch", "acme/speech"), own, **given)

    relaunch("init", "--name", "vision", "--yes", "--action", f"acme/relaunch@{'0' * 40}")

    made = written(repository)
    assert f"    callers: [{ROLE}/speech]\n" in made["relaunch.yaml"]
    assert f"role-to-assume: {ROLE}/speech\n" in made[".github/workflows/train.yml"]
    assert 'branches: ["trunk"]' in made[".github/workflows/train.yml"]
    assert f"role-to-assume: {ROLE}/speech-plan\n" in made[PLAN]


def test_a_workflow_of_another_tool_is_never_replaced_and_is_told(relaunch: Relaunch, repository: Path):
    (repository / ".github" / "workflows").mkdir(parents=True)
    (repository / ".github" / "workflows" / "train.yml").write_text("name: theirs\n")
    (repository / PLAN).write_text("name: terraform plan\n")

    first = relaunch("init", "--yes")
    second = relaunch("init", "--gpu", "2", "--overwrite", "--yes")

    for outcome in (first, second):
        assert "train.yml is there for something else: rename it" in flat(outcome.stdout)
    assert written(repository)[".github/workflows/train.yml"] == "name: theirs\n"
    assert written(repository)[PLAN] == "name: terraform plan\n"


def test_in_a_local_world_nobody_is_warned_of_a_workflow_that_nothing_there_runs(
    relaunch: Relaunch, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("relaunch_cli.commands.init.is_loopback", lambda _url: True)
    subprocess.run(["git", "remote", "remove", "origin"], check=True)

    shown = flat(relaunch("init", "--name", "vision", "--yes").stdout)

    assert "no workflow is written: here `relaunch local push` pushes the image of your commit" in shown
    assert "GitHub" not in shown
