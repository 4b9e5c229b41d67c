"""init: what is missing is made after one question, what is there is left alone, and the account follows the files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from fakes.aws import REGION, make_client
from fakes.cli_session import CliSession, flat
from fakes.training_stacks import APPLICATION, ROLE, create_stack
from unit.cli.commands.init_account import FILES, PLAN, Relaunch, account_of, make_repository, revisions, written

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def account(session: CliSession) -> Iterator[None]:
    with account_of(session):
        yield


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_repository(tmp_path / "repository")
    monkeypatch.chdir(folder)
    return folder


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
        pytest.param("My Training\n\n\nthree\n3\n\n\ny\n", 0, FILES, id="yes-after-two-answers-that-are-refused"),
        pytest.param("\n\n3\n\n\nn\n", 130, [], id="no"),
        pytest.param("\n\n3\n\n\n", 130, [], id="end-of-input-at-the-question"),
        pytest.param("\n", 130, [], id="end-of-input-in-the-form"),
    ],
)
def test_somebody_at_a_terminal_is_asked(relaunch, repository, monkeypatch, answers, exit_code, made):
    monkeypatch.setattr("relaunch_cli.commands.init.can_ask", lambda: True)

    outcome = relaunch("init", answer=answers)

    assert outcome.exit_code == exit_code, outcome.stderr
    assert sorted(written(repository)) == sorted(made)
    assert len(revisions()) == (1 if made else 0)
    if made:
        assert "gpu: {count: 3, memory: 16GiB}" in written(repository)["relaunch.yaml"]
        assert "Error: 'My Training' is no name of a job definition" in outcome.stderr
        assert "Error: 'three' is no whole number" in outcome.stderr
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
