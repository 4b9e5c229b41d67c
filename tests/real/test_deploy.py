"""From an empty account to a finished training, by the command as a user types it."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.deployment import read_stack
from relaunch_local.stack.empty_account import EmptyAccount, empty_account
from relaunch_local.stack.local_world import LocalWorld

COMMAND = Path(sys.executable).with_name("relaunch")
TIMEOUT_SECONDS = 90.0


@dataclass(frozen=True)
class User:
    """Somebody with a terminal, the command, and credentials of an account."""

    account: EmptyAccount
    folder: Path

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        """Run a command of relaunch; return what it prints."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RELAUNCH_"))}
        done = subprocess.run(
            [COMMAND, *arguments],
            env={**kept, **self.account.environment()},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def ask(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))


@pytest.fixture(scope="module")
def account(built: str) -> Iterator[EmptyAccount]:
    assert built
    with empty_account() as opened:
        yield opened


@pytest.fixture(scope="module")
def user(account: EmptyAccount, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(account, tmp_path_factory.mktemp("user"))


@pytest.fixture(scope="module")
def first(user: User) -> str:
    """What the first deployment prints."""
    return user.run("deploy", "--yes")


@pytest.fixture(scope="module")
def outputs(account: EmptyAccount, first: str) -> Mapping[str, str]:
    assert first
    return read_stack(account.emulator, "relaunch-training")[0]


@pytest.fixture(scope="module")
def world(account: EmptyAccount, outputs: Mapping[str, str]) -> LocalWorld:
    return account.join("relaunch", outputs)


def test_nothing_is_made_before_it_is_confirmed(user: User, account: EmptyAccount) -> None:
    shown = user.ask("deploy", "--dry-run")
    refused = user.run("deploy", exit_code=2)

    assert [each["exists"] for each in shown["stacks"]] == [False, False, False]
    assert "nobody can be asked here, and nothing was deployed" in refused
    assert account.client("cloudformation").describe_stacks()["Stacks"] == []


def test_a_parameter_that_no_stack_has_is_told_with_the_nearest(user: User) -> None:
    told = user.run("deploy", "ClusterNam=a", "--yes", exit_code=2)

    assert "no stack has a parameter 'ClusterNam': did you mean ClusterName" in told


def test_the_first_deployment_makes_all_stacks_and_says_what_comes_next(first: str, account: EmptyAccount) -> None:
    stacks = account.client("cloudformation").describe_stacks()["Stacks"]

    found = {each["StackName"]: each["StackStatus"] for each in stacks}
    for name in ("relaunch-training", "relaunch-machines", "relaunch"):
        assert found[name] == "CREATE_COMPLETE"
    assert "CREATE_COMPLETE Vpc (AWS::EC2::VPC)" in first
    assert "CREATE_COMPLETE JobsTable (AWS::DynamoDB::Table)" in first
    assert first.rstrip().endswith("relaunch init")


def test_deploying_again_changes_nothing(user: User, first: str) -> None:
    assert first
    again = user.run("deploy", "--yes")

    assert "relaunch-training: no change" in again
    assert "relaunch-machines: no change" in again


def test_a_training_runs_in_what_was_deployed(user: User, world: LocalWorld, outputs: Mapping[str, str]) -> None:
    push_image(world, outputs["RepositoryName"])
    register(world, outputs)
    definition = (REPOSITORY / "examples" / "relaunch.yaml").read_text()
    definition = definition.replace("relaunch-checkpoints", outputs["CheckpointBucketName"])
    definition = definition.replace("relaunch-datasets", outputs["DataBucketName"])
    (user.folder / "relaunch.yaml").write_text(definition)

    user.run("apply", "relaunch.yaml")
    job = user.ask("submit", "demo")["job_id"]

    states = []
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not states or states[-1] not in {"SUCCEEDED", "FAILED"}:
        assert time.monotonic() < deadline, user.run("explain", job)
        state = user.ask("show", job)["state"]
        states += [state] if states[-1:] != [state] else []
        time.sleep(0.5)
    assert states[-1] == "SUCCEEDED", user.run("explain", job)
    assert re.search(r'"event": ?"finished"', user.run("logs", job))


def push_image(world: LocalWorld, repository: str) -> None:
    """Push what CI would push, an index for this platform, with a tag that no other image ever gets."""
    media_type = "application/vnd.oci.image.index.v1+json"
    manifest = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "manifests": [{"digest": f"sha256:{'0' * 64}", "platform": {"os": "linux", "architecture": "amd64"}}],
    }
    world.client("ecr").put_image(
        repositoryName=repository,
        imageTag="3f2a9c1",
        imageManifest=json.dumps(manifest),
        imageManifestMediaType=media_type,
    )


def register(world: LocalWorld, outputs: Mapping[str, str]) -> None:
    """Register the example's task definition with what the stack made."""
    definition = json.loads((REPOSITORY / "examples" / "task-definition.json").read_text())
    definition |= {"taskRoleArn": outputs["TaskRoleArn"], "executionRoleArn": outputs["ExecutionRoleArn"]}
    container = definition["containerDefinitions"][0]
    container["image"] = f"{outputs['RepositoryUri']}:3f2a9c1"
    container["logConfiguration"]["options"]["awslogs-group"] = outputs["LogGroupName"]
    for variable in container["environment"]:
        if variable["name"] == "TRAIN_STEP_DELAY_SECONDS":
            variable["value"] = "0.01"
    world.client("ecs").register_task_definition(**definition)
