"""From an empty account to a finished training, by the command as a user types it."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from fakes.installed_command import install
from fakes.repository import REPOSITORY
from relaunch.adapters.aws.dynamodb.job_listing import UNSENT
from relaunch_local.attack.neighbours import NAMES, SHARED, deployed, somebody
from relaunch_local.iam.reach import Reached, Somebody, reach
from relaunch_local.stack.containers import EXAMPLES
from relaunch_local.stack.deployment import read_stack
from relaunch_local.stack.empty_account import EmptyAccount, empty_account
from relaunch_local.stack.emulator import REGION
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.templates.deployed import ACCOUNT as COMPUTED_ACCOUNT

COMMAND = Path(sys.executable).with_name("relaunch")
TIMEOUT_SECONDS = 300.0
POLL_SECONDS = 0.5
TRAINING = "python own.py --steps 20"
OWN = "import runpy; print('code of my own'); runpy.run_module('train', run_name='__main__')"


@dataclass(frozen=True)
class User:
    """Somebody with a terminal, the command, and credentials of an account."""

    account: EmptyAccount
    folder: Path
    programs: Path
    command: Path = COMMAND
    left_out: tuple[str, ...] = ("AWS_", "RELAUNCH_")

    def run(self, *arguments: str, exit_code: int = 0) -> str:
        """Run a command of relaunch; return what it prints."""
        done = self._run(arguments, exit_code)
        return done.stdout + done.stderr

    def _run(self, arguments: Sequence[str], exit_code: int) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(self.left_out)}
        path = (str(COMMAND.parent), str(self.programs), os.environ["PATH"])
        done = subprocess.run(
            [self.command, *arguments],
            env={**kept, **self.account.environment(), "PATH": os.pathsep.join(path)},
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_SECONDS,
        )
        assert done.returncode == exit_code, done.stdout + done.stderr
        return done

    def ask(self, *arguments: str, exit_code: int = 0) -> Any:
        """Return the JSON document of a command; what it notes beside is on standard error."""
        return json.loads(self._run((*arguments, "--json"), exit_code).stdout)


@pytest.fixture
def account(built: str) -> Iterator[EmptyAccount]:
    assert built
    with empty_account() as opened:
        yield opened


@pytest.fixture
def user(account: EmptyAccount, tmp_path: Path) -> User:
    opened = User(account, tmp_path / "training", tmp_path / "programs")
    opened.folder.mkdir()
    opened.programs.mkdir()
    python = opened.programs / "python"
    python.write_text(f'#!/bin/sh\necho python of my own\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    return opened


def stacks_of(account: EmptyAccount) -> dict[str, str]:
    """The states of the stacks in an account, but for that of SAM CLI."""
    found = account.client("cloudformation").describe_stacks()["Stacks"]
    states = {each["StackName"]: each["StackStatus"] for each in found}
    return {name: state for name, state in states.items() if name.startswith("relaunch")}


def test_nothing_is_made_before_it_is_confirmed(user: User, account: EmptyAccount) -> None:
    # An installed command deploys a clone that is named, and is of none itself.
    alone = replace(user, command=install(user.folder).program, left_out=(*user.left_out, "PYTHONPATH"))
    shown = alone.ask("deploy", "--dry-run", "--source", str(REPOSITORY))
    without_clone = alone.run("deploy", "--dry-run", exit_code=2)
    refused = user.run("deploy", exit_code=2)
    mistyped = user.run("deploy", "ClusterNam=a", "--yes", exit_code=2)

    assert [each["exists"] for each in shown["stacks"]] == [False, False, False]
    assert "nobody can be asked here, and nothing was deployed" in refused
    assert "is no clone of Relaunch" in without_clone
    assert "no stack has a parameter 'ClusterNam': did you mean ClusterName" in mistyped
    assert "there is no stack 'relaunch'" in user.run("uninstall", "--yes", exit_code=3)
    assert stacks_of(account) == {}
    assert account.client("iam").list_roles(PathPrefix="/aws-service-role/")["Roles"] == []


def test_from_an_empty_account_to_a_trained_model_and_back(user: User, account: EmptyAccount) -> None:
    first = user.run("deploy", "--github", "acme/vision", "GitHubOwnerId=11", "GitHubRepositoryId=22", "--yes")

    assert stacks_of(account) == dict.fromkeys(
        ("relaunch-training", "relaunch-machines", "relaunch"), "CREATE_COMPLETE"
    )
    assert "CREATE_COMPLETE Vpc (AWS::EC2::VPC)" in first
    assert "CREATE_COMPLETE JobsTable (AWS::DynamoDB::Table)" in first
    assert "0 vCPUs, 8 are requested" in " ".join(first.split())
    assert "Cannot start until AWS grants a quota" in first
    assert "Next, in the repository of your training: relaunch init" in first

    examine_roles(account)
    outputs = read_stack(account.emulator, "relaunch-training")[0]
    world = account.join("relaunch", outputs)
    set_up(user, outputs)
    train(user, world, outputs)
    examine(user)
    remove(user, account, world)


def set_up(user: User, outputs: Mapping[str, str]) -> None:
    """What a repository with code of its own needs is made by one command."""
    shutil.copytree(EXAMPLES / "train", user.folder / "train", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLES / "relaunch_training.py", user.folder)
    (user.folder / "own.py").write_text(OWN)
    git(user, "init", "--quiet")
    git(user, "remote", "add", "origin", "git@github.com:acme/vision.git")
    refused = user.run("init", exit_code=2)
    first = user.run("init", "--command", TRAINING, "--yes")
    files = {
        path.name: path.read_bytes() for path in user.folder.rglob("*") if ".git" not in path.parts and path.is_file()
    }
    again = user.run("init", "--yes")

    assert "nobody can be asked here, and nothing was written" in refused
    assert {"relaunch.yaml", "task-definition.json", "train.yml", "Dockerfile"} <= set(files)
    assert f"role-to-assume: {outputs['SubmitRoleArn']}".encode() in files["train.yml"]
    assert "registered relaunch-vision:1" in first
    assert "  relaunch local push\n" in first
    assert "git add Dockerfile .dockerignore .github/workflows/train.yml task-definition.json relaunch.yaml" in first
    assert "acme/vision has what a training needs" in again
    assert "registered relaunch-vision" not in again
    assert user.ask("ps", "--all")["jobs"] == []


def train(user: User, world: LocalWorld, outputs: Mapping[str, str]) -> None:
    """A commit is pushed, and trained in what was deployed until it has finished."""
    git(user, "add", ".")
    git(user, "commit", "--quiet", "--message", "Train with Relaunch")
    tag = f"vision-{git(user, 'rev-parse', 'HEAD')}"
    pushed = " ".join(user.run("local", "push").split())
    assert f"pushed {outputs['RepositoryName']}:{tag} and vision-latest" in pushed
    assert f"`python` is {user.programs / 'python'}, with the packages" in pushed
    job = user.ask("ps", "--all")["jobs"][0]["job_id"]
    assert f"started {job}: " in pushed
    # It ends with the job. To look again and again would start the command as often, for a second of a processor.
    written = user.run("logs", job, "--follow")
    assert user.ask("show", job)["state"] == "SUCCEEDED", user.run("explain", job)
    assert f"image {outputs['RepositoryName']}:{tag} pushed" in json.dumps(user.ask("explain", job))
    assert "python of my own" in written
    assert "code of my own" in written
    assert re.search(r'"event": ?"finished"', written)
    # A tag does not move: what was pushed starts nothing again.
    assert "was pushed before" in " ".join(user.run("local", "push").split())
    # EventBridge took every change of the job: the roles of functions may send them.
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while has_unsent_changes(world):
        assert time.monotonic() < deadline
        time.sleep(POLL_SECONDS)


def git(user: User, *arguments: str) -> str:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com")
    done = subprocess.run(["git", *identity, *arguments], cwd=user.folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def has_unsent_changes(world: LocalWorld) -> bool:
    found = world.client("dynamodb").query(
        TableName=world.deployment.outputs["TableName"],
        IndexName="due",
        KeyConditionExpression="due = :due",
        ExpressionAttributeValues={":due": {"S": UNSENT}},
    )
    return bool(found["Items"])


def examine(user: User) -> None:
    """All is well, the quotas that were requested too."""
    checks = user.ask("doctor")["checks"]

    assert len(checks) > 20
    assert [each for each in checks if each["verdict"] == "problem"] == []


def remove(user: User, account: EmptyAccount, world: LocalWorld) -> None:
    """All is removed but what is told, while a job runs, whose training takes hours as real ones do."""
    assert "nobody can be asked here, and nothing was removed" in user.run("uninstall", exit_code=2)
    definitions = user.folder / "relaunch.yaml"
    slowly = "    environment: {TRAIN_STEP_DELAY_SECONDS: '3600'}\n    purchase:"
    definitions.write_text(definitions.read_text().replace("    purchase:", slowly))
    user.run("apply", "relaunch.yaml")
    assert "3600" in definitions.read_text()
    job = user.ask("submit", "vision")["job_id"]
    told = user.run("uninstall", "--yes")

    assert f"cancelled {job}" in told
    assert stacks_of(account) == {}
    assert account.client("lambda").list_functions()["Functions"] == []
    assert account.client("events").list_rules(NamePrefix="relaunch")["Rules"] == []
    found = world.client("ec2").describe_instances()["Reservations"]
    assert {each["State"]["Name"] for group in found for each in group["Instances"]} <= {"terminated"}
    for what in ("bucket relaunch-training-newcheckpoint", "repository relaunch/trainer", "table relaunch-JobsTable"):
        assert what in " ".join(told.split())


# ── Two stacks, one of whose names begins with the other's ──

# What is behind `arn:aws:` and before the name that CloudFormation gives.
NAMED = {
    "AWS::DynamoDB::Table": "dynamodb:{region}:{account}:table/",
    "AWS::Lambda::Function": "lambda:{region}:{account}:function:",
    "AWS::S3::Bucket": "s3:::",
    "AWS::SQS::Queue": "sqs:{region}:{account}:",
}


@pytest.mark.neighbours
def test_stacks_beside_each_other_reach_nothing_of_each_other(user: User, account: EmptyAccount) -> None:
    """By the policies and the names of four deployments, both of which tests/authorization computes."""
    made = {}
    for stack in NAMES:
        user.run("deploy", "--stack", stack, "Uploads=on", "Webhook=on", "--yes")
        made[stack] = what_is_made(account, stack)

    for own, other in permutations(made, 2):
        assert reached(made[own], made[other]) == []
    for stack, each in made.items():
        assert {role for role, _ in reached(each, each)} >= {"OperatorRole", "LaunchAttemptRole", "TaskRole"}, stack


def examine_roles(account: EmptyAccount) -> None:
    """The roles that were deployed reach what is theirs, and nothing of a stack whose name begins alike."""
    made = what_is_made(account, "relaunch")
    other = Made(somebody(deployed("relaunch-vision", REGION)), {})

    assert {role for role, _ in reached(made, made)} >= {"OperatorRole", "LaunchAttemptRole", "TaskRole"}
    assert reached(made, other) == []


def reached(own: "Made", other: "Made") -> list[tuple[str, Reached]]:
    """What roles reach of a deployment, but for what is shared."""
    return [
        (role, each)
        for role, policies in own.policies.items()
        for each in reach(policies, other.somebody, own.somebody.arns)
        if (role, each.action) not in SHARED
    ]


@dataclass(frozen=True)
class Made:
    """What the stacks of a deployment have, and the policies of their roles by logical ID."""

    somebody: Somebody
    policies: dict[str, list[dict[str, Any]]]


def what_is_made(account: EmptyAccount, stack: str) -> Made:
    """Read the stacks of a deployment, and hold its names to what CloudFormation gives."""
    number = account.client("sts").get_caller_identity()["Account"]
    iam = account.client("iam")
    arns = []
    policies = {}
    for name in (stack, f"{stack}-training", f"{stack}-machines"):
        pages = account.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
        for each in (one for page in pages for one in page["StackResourceSummaries"]):
            kind, logical_id, physical = (
                each[key] for key in ("ResourceType", "LogicalResourceId", "PhysicalResourceId")
            )
            if kind == "AWS::IAM::Role":
                arns.append(iam.get_role(RoleName=physical)["Role"]["Arn"])
                policies[logical_id] = [
                    iam.get_role_policy(RoleName=physical, PolicyName=policy)["PolicyDocument"]
                    for policy in iam.list_role_policies(RoleName=physical)["PolicyNames"]
                ]
            elif kind in NAMED:
                short = physical.rpartition("/")[2]
                assert short.lower().startswith(f"{name}-{logical_id}-".lower()), physical
                arns.append(f"arn:aws:{NAMED[kind].format(region=REGION, account=number)}{short}")
    computed = somebody(deployed(stack, REGION))
    renamed = [each.replace(COMPUTED_ACCOUNT, number) for each in computed.arns]
    return Made(replace(computed, arns=[*renamed, *arns]), policies)
