"""An account and a repository for the tests of `init`."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from fakes.aws import aws_in_process, make_client
from fakes.builders import make_revision
from fakes.cli_session import CliSession, Outcome
from fakes.training_stacks import APPLICATION, PARAMETERS, TRAINING, create_stack

FILES = ["Dockerfile", ".dockerignore", ".github/workflows/train.yml", "task-definition.json", "relaunch.yaml"]
PLAN = ".github/workflows/plan.yml"
Relaunch = Callable[..., Outcome]


@contextmanager
def account_of(session: CliSession) -> Iterator[None]:
    """An account with both stacks; the command applies to the session, which finds the revision that init registers."""
    session.deps.revisions.active.append(make_revision("vision"))
    with aws_in_process():
        create_stack("relaunch", APPLICATION)
        create_stack("relaunch-training", TRAINING, **PARAMETERS)
        make_client("s3").create_bucket(Bucket="acme-data")
        yield


def make_repository(folder: Path) -> Path:
    """Make a clone of acme/vision; return its folder."""
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    subprocess.run(["git", "-C", folder, "remote", "add", "origin", "git@github.com:acme/vision.git"], check=True)
    return folder


def written(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def revisions() -> list[str]:
    found: list[str] = make_client("ecs").list_task_definitions(familyPrefix="vision")["taskDefinitionArns"]
    return found
