"""init: what is missing is made after one question, what is there is left alone, and the account follows the files."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from fakes.aws import REGION, aws_in_process, make_client
from fakes.builders import make_revision
from fakes.cli_session import CliSession, Outcome, flat
from fakes.training_stacks import APPLICATION, PARAMETERS, ROLE, TRAINING, create_stack
from relaunch_cli.deployment.findings import github_stack_name
from relaunch_cli.views import screen
from unit.cli.repository_setup.fake_gh import FakeGh

PLAN = ".github/workflows/plan.yml"
FILES = ["Dockerfile", ".dockerignore", ".github/workflows/train.yml", "task-definition.json", "relaunch.yaml"]


@pytest.fixture
def account(session: CliSession) -> Iterator[None]:
    """An account with both stacks; the command applies to the session, which finds the revision that init registers."""
    session.deps.revisions.active.append(make_revision("vision"))
    with aws_in_process():
        create_stack("relaunch", APPLICATION)
        create_stack("relaunch-training", TRAINING, **PARAMETERS)
        make_client("s3").create_bucket(Bucket="acme-data")
        yield


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", "git@github.com:acme/vision.git"], check=True)
    monkeypatch.chdir(folder)
    return folder


Relaunch = Callable[..., Outcome]
pytestmark = pytest.mark.usefixtures("account")


def written(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def revisions() -> list[str]:
    found: list[str] = make_client("ecs").list_task_definitions(familyPrefix="vision")["taskDefinitionArns"]
    return found


def task_role(folder: Path) -> str:
    return str(json.loads(written(folder)["task-definition.json"])["taskRoleArn"])


def test_a_training_with_a_role_of_its_own_gets_it(relaunch: Relaunch, repository: Path):
    create_stack("relaunch-training-vision", {"TaskRoleArn": f"{ROLE}/trainings/relaunch/vision"})

    assert relaunch("init", "--yes", "--action", "", "--own-role").exit_code == 0
    assert task_role(repository) == f"{ROLE}/trainings/relaunch/vision"


def test_without_one_it_gets_that_of_all_trainings_unless_its_own_is_asked_for(relaunch: Relaunch, repository: Path):
    refused = relaunch("init", "--yes", "--action", "", "--own-role")

    assert refused.exit_code != 0
    assert "there is no stack 'relaunch-training-vision' with a role of vision" in flat(refused.stderr)
    assert "relaunch deploy --training vision, then relaunch init again" in flat(refused.stderr)
    assert relaunch("init", "--yes", "--action", "").exit_code == 0
    assert task_role(repository) == f"{ROLE}/task"


def test_a_training_that_mounts_buckets_is_refused_by_a_stack_that_gives_no_container_its_machine(
    relaunch: Relaunch, repository: Path
):
    result = relaunch("init", "--yes", "--mount", "--action", "")

    assert result.exit_code != 0
    assert "task-definition.json has add SYS_ADMIN: this gives a container its machine" in flat(result.stderr)
    assert "relaunch deploy HostAccess=on, then relaunch init again" in flat(result.stderr)
    assert (written(repository), revisions()) == ({}, [])


def test_a_training_that_mounts_buckets_is_made_where_the_stack_allows_it(relaunch: Relaunch, repository: Path):
    boto3.client("cloudformation", REGION).delete_stack(StackName="relaunch")
    create_stack("relaunch", {**APPLICATION, "HostAccess": "on"})

    result = relaunch("init", "--yes", "--mount", "--action", "")

    assert result.exit_code == 0, result.stderr
    assert "SYS_ADMIN" in written(repository)["task-definition.json"]
    assert "mount-s3.deb" in written(repository)["Dockerfile"]
    (repository / "Dockerfile").write_text("FROM acme\n")
    own = relaunch("init", "--dry-run").stdout
    assert "its Dockerfile does not install mount-s3. Add:" in flat(own)
    assert "\nRUN apt-get update && apt-get install --yes /tmp/mount-s3.deb" in own


def test_it_makes_what_is_missing_and_again_makes_nothing(relaunch: Relaunch, session: CliSession, repository: Path):
    first = relaunch("init", "--yes", "--action", f"acme/relaunch@{'0' * 40}")
    made = written(repository)
    second = relaunch("init", "--yes")

    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr + second.stderr
    assert sorted(made) == sorted([*FILES, PLAN])
    assert written(repository) == made
    assert len(revisions()) == 1
    assert f"uses: acme/relaunch@{'0' * 40}" in made[".github/workflows/train.yml"]
    assert f"  git add {' '.join([*FILES[:3], PLAN, *FILES[3:]])}\n" in first.stdout
    assert f"role-to-assume: {ROLE}/plan" in made[PLAN]
    assert "acme/vision has what a training needs" in second.stdout
    assert "git add" not in second.stdout
    assert [each.name for each in session.deps.definitions.list_definitions()] == ["resnet", "vision"]


def test_nothing_is_made_before_it_is_confirmed(relaunch: Relaunch, repository: Path):
    shown = relaunch("init", "--dry-run")
    document = relaunch("init", "--dry-run", "--json").document
    refused = relaunch("init")

    assert (shown.exit_code, refused.exit_code) == (0, 2)
    assert "What acme/vision needs for training" in shown.stdout
    assert "+    task_definition: vision" in shown.stdout
    assert "nobody can be asked here, and nothing was written" in refused.stderr
    assert {each["change"] for each in document["files"]} == {"create"}
    assert document["task_definition"] == {"family": "vision", "registered_revision": None, "needs_revision": True}
    assert written(repository) == {}
    assert revisions() == []


@pytest.mark.parametrize(
    ("answers", "exit_code", "made"),
    [
        pytest.param("\n\n3\n\n\ny\n", 0, FILES, id="yes"),
        pytest.param("\n\n3\n\n\nn\n", 130, [], id="no"),
        pytest.param("\n\n3\n\n\n", 130, [], id="end-of-input-at-the-question"),
        pytest.param("\n", 130, [], id="end-of-input-in-the-form"),
    ],
)
def test_somebody_at_a_terminal_is_asked(relaunch, repository, monkeypatch, answers, exit_code, made):
    monkeypatch.setattr(screen, "can_ask", lambda: True)

    outcome = relaunch("init", answer=answers)

    assert outcome.exit_code == exit_code, outcome.stderr
    assert sorted(written(repository)) == sorted(made)
    assert len(revisions()) == (1 if made else 0)
    if made:
        assert "gpu: {count: 3, memory: 16GiB}" in written(repository)["relaunch.yaml"]
    else:
        assert "nothing was written" in outcome.stderr


def test_files_that_are_there_are_changed_by_overwriting_alone(relaunch: Relaunch, repository: Path):
    relaunch("init", "--yes")
    made = written(repository)

    refused = relaunch("init", "--gpu", "4", "--yes")
    shown = relaunch("init", "--gpu", "4", "--overwrite", "--dry-run")
    document = relaunch("init", "--gpu", "4", "--overwrite", "--dry-run", "--json").document

    assert refused.exit_code == 2
    assert "options do not change relaunch.yaml and task-definition.json, which differ from them" in refused.stderr
    assert written(repository) == made
    assert "+      gpu: {count: 4, memory: 16GiB}" in shown.stdout
    assert [each["change"] for each in document["files"]] == ["none", "none", "none", "change", "change"]

    assert relaunch("init", "--gpu", "4", "--overwrite", "--yes").exit_code == 0
    assert "gpu: {count: 4" in written(repository)["relaunch.yaml"]
    assert len(revisions()) == 2


def test_the_account_follows_files_that_were_edited(relaunch: Relaunch, repository: Path):
    relaunch("init", "--yes")
    path = repository / "task-definition.json"
    path.write_text(path.read_text().replace('"memory": 8192', '"memory": 4096'))

    outcome = relaunch("init", "--yes")

    assert "register another revision: vision:1 differs" in flat(outcome.stdout)
    assert "registered vision:2" in outcome.stderr


def test_a_definition_that_is_there_keeps_its_name_and_family(relaunch: Relaunch, repository: Path):
    text = (
        "jobs:\n  resnet:\n    task_definition: trainer\n    container: main\n    accelerator: {gpu: {memory: 16GiB}}\n"
    )
    (repository / "relaunch.yaml").write_text(text)

    document = relaunch("init", "--dry-run", "--json").document

    assert document["files"][-1] == {"path": "relaunch.yaml", "change": "none", "difference": None}
    assert document["task_definition"]["family"] == "trainer"


def test_uploads_are_sent_to_event_bridge(relaunch: Relaunch, repository: Path):
    outcome = relaunch("init", "--uploads", "s3://acme-data/images/", "--yes")
    missing = relaunch("init", "--uploads", "s3://acme-nowhere", "--overwrite", "--yes")

    # moto forgets that it was switched on, which is noticed.
    assert "send its uploads to EventBridge" in flat(outcome.stdout)
    assert "bucket acme-data" in outcome.stdout
    assert missing.exit_code == 3
    assert "there is no bucket acme-nowhere" in missing.stderr
    assert "images/" in written(repository)["relaunch.yaml"]


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
    ("arguments", "lacks", "switch"),
    [
        (("--webhook",), "no webhook", "relaunch deploy Webhook=on, then relaunch init again"),
        (("--uploads", "s3://acme-data"), "no queue for uploads", "relaunch deploy Uploads=on, then"),
        (
            ("--webhook", "--uploads", "s3://acme-data"),
            "no webhook and no queue",
            "relaunch deploy Webhook=on Uploads=on",
        ),
    ],
)
def test_a_stack_that_was_deployed_without_says_how_to_get_it(relaunch, repository, arguments, lacks, switch):
    make_client("cloudformation").delete_stack(StackName="relaunch")
    create_stack("relaunch", {"JobApiUrl": "https://api.example/"})

    outcome = relaunch("init", *arguments, "--yes")

    assert outcome.exit_code == 2
    assert f"the stack has {lacks}" in outcome.stderr
    assert switch in outcome.stderr
    assert written(repository) == {}


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpu", "1", "--neuron", "1"), "exclude each other"),
        (("--gpu-share", "25", "--gpu", "1"), "exclude each other"),
        (("--action", "relaunch"), "'relaunch' is no Action: OWNER/NAME@COMMIT"),
        (("--action", "a/b@c\n  evil: x"), "is no Action"),
        (("--name", "Big"), "'Big' is no name of a job definition"),
    ],
)
def test_options_that_are_wrong_write_nothing(relaunch, repository, arguments, message):
    outcome = relaunch("init", *arguments, "--yes")

    assert outcome.exit_code == 2
    assert message in outcome.stderr
    assert written(repository) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "task-definition.json is no JSON"),
        ("[]", "it has no family"),
        ('{"family": 1}', "it has no family"),
        ("[" * 99_999, "is no JSON"),
        ('{"family": "a\\n  b"}', "other characters than letters"),
    ],
)
def test_a_task_definition_that_is_none_is_told(relaunch, repository, text, message):
    (repository / "task-definition.json").write_text(text)

    outcome = relaunch("init", "--yes")

    assert outcome.exit_code == 2
    assert message in outcome.stderr


def test_outside_of_a_repository_it_says_so(relaunch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    outcome = relaunch("init", "--yes")

    assert outcome.exit_code == 2
    assert "is in no git repository" in outcome.stderr


def test_json_has_what_was_registered(relaunch: Relaunch, repository: Path):
    document: Any = relaunch("init", "--yes", "--json").document

    assert document["made"]
    assert [each["change"] for each in document["definitions"]["definitions"]] == ["created"]
    assert (repository / "relaunch.yaml").is_file()


def test_a_run_that_failed_is_gone_on_with_by_the_same_command(relaunch: Relaunch, repository: Path):
    (repository / ".github").write_text("a file where a folder has to be")
    failed = relaunch("init", "--gpu", "2", "--yes")
    assert failed.exit_code == 2
    assert "relaunch.yaml" not in written(repository)

    (repository / ".github").unlink()
    first, second = (relaunch("init", "--gpu", "2", "--yes") for _ in range(2))

    assert sorted(written(repository)) == sorted(FILES)
    assert "gpu: {count: 2" in written(repository)["relaunch.yaml"]
    assert "acme/vision has what a training needs" in second.stdout
    assert "wrote relaunch.yaml" in first.stderr


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


def test_a_task_definition_that_is_there_gives_its_family(relaunch: Relaunch, repository: Path):
    (repository / "task-definition.json").write_text('{"family": "vision", "containerDefinitions": []}')

    relaunch("init", "--name", "other", "--dry-run")
    document = relaunch("init", "--name", "other", "--dry-run", "--json")

    assert document.exit_code == 2
    assert "options do not change task-definition.json" in document.stderr
    assert relaunch("init", "--dry-run", "--json").document["task_definition"]["family"] == "vision"


def test_the_command_to_copy_names_paths_from_where_somebody_is(
    relaunch: Relaunch, repository: Path, monkeypatch: pytest.MonkeyPatch
):
    (repository / "src").mkdir()
    monkeypatch.chdir(repository / "src")

    assert "git add ../Dockerfile ../.dockerignore" in relaunch("init", "--yes").stdout
