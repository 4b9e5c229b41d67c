"""`make build` and `sam deploy` are run in the clone, with what they need and nothing of this command's own."""

import json
import os
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from fakes.repository import REPOSITORY
from fakes.stacks import FakeStacks
from relaunch_cli.deployment.application import SamDeploy
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import Source

PARAMETERS = {"ClusterName": "training", "CapacityProviders": ""}


class Clone:
    """A folder with a Makefile and a SAM CLI that write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self.sam("exit 0")
        record = folder / ".aws-sam"
        record.mkdir()
        built = {"key": "k", "runtime": "python3.13", "architecture": "arm64"}
        (record / "relaunch-build.json").write_text(json.dumps(built))

    def make(self, recipe: str) -> None:
        (self.folder / "Makefile").write_text(f"build:\n\t@{recipe}\n")

    def sam(self, script: str) -> None:
        command = self.folder / ".venv-sam" / "bin" / "sam"
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$@" >"{self.folder}/arguments"\nenv >"{self.folder}/env"\n{script}\n'
        )
        command.chmod(command.stat().st_mode | stat.S_IXUSR)

    @property
    def deploying(self) -> SamDeploy:
        return SamDeploy(Source(self.folder), "eu-central-1", self.lines.append, lambda _: None)

    @property
    def arguments(self) -> list[str]:
        return (self.folder / "arguments").read_text().splitlines()


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_parameters_are_those_of_the_build(clone: Clone) -> None:
    clone.make("true")

    assert clone.deploying.build() == {"Runtime": "python3.13", "Architecture": "arm64"}


def test_a_build_that_fails_is_told_with_its_output(clone: Clone) -> None:
    clone.make("echo no wheel for this platform; false")
    with pytest.raises(RefusedError, match=r"could not be built:\n.*no wheel for this platform"):
        clone.deploying.build()


def test_it_is_built_with_the_interpreter_of_the_command_where_python3_is_too_new(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the Makefile of this repository; what it runs notes its interpreter and arguments."""
    shutil.copy(REPOSITORY / "Makefile", clone.folder)
    ran = clone.folder / "ran"
    for name in ("requirements/build_environment.py", "local/relaunch_local/stack/build.py"):
        program = clone.folder / name
        program.parent.mkdir(parents=True)
        program.write_text(
            f"import json, sys\nopen({str(ran)!r}, 'a').write(json.dumps([sys.executable, *sys.argv[1:]]) + '\\n')\n"
        )
    too_new = clone.folder / "bin" / "python3"
    too_new.parent.mkdir()
    too_new.write_text("#!/bin/sh\necho 3.14\n")
    too_new.chmod(0o755)
    own = clone.folder / "of this command" / "python"
    own.parent.mkdir()
    own.symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{too_new.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(sys, "executable", str(own))

    clone.deploying.build()

    environment, application = map(json.loads, ran.read_text().splitlines())
    assert environment == [str(own), ".venv-sam", "--requirement", "requirements/sam.txt"]
    assert application[:5] == [str(own), "--sam", ".venv-sam/bin/sam", "--interpreter", str(own)]


def test_without_make_it_is_named(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(clone.folder))
    with pytest.raises(RefusedError, match="`make`, which is not installed"):
        clone.deploying.build()


def test_a_new_stack_is_deployed_without_a_second_question(clone: Clone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sys.path[0]))
    clone.deploying.create("relaunch", PARAMETERS, FakeStacks())

    assert clone.arguments == [
        "deploy",
        "--stack-name",
        "relaunch",
        "--region",
        "eu-central-1",
        "--no-confirm-changeset",
        "--no-progressbar",
        "--parameter-overrides",
        'ClusterName="training"',
        'CapacityProviders=""',
    ]
    environment = (clone.folder / "env").read_text()
    assert "AWS_DEFAULT_REGION=eu-central-1" in environment
    assert "PYTHONPATH" not in environment


def test_what_failed_first_in_cloudformation_is_the_reason(clone: Clone) -> None:
    class Failing(FakeStacks):
        def describe_stack_events(self, **_request: Any) -> dict[str, Any]:
            was_deployed = (clone.folder / "arguments").exists()
            return {"StackEvents": [failure] if was_deployed else []}

    failure = {
        "EventId": "1",
        "LogicalResourceId": "JobsTable",
        "ResourceType": "AWS::DynamoDB::Table",
        "ResourceStatus": "CREATE_FAILED",
        "ResourceStatusReason": "quota",
    }
    clone.sam("exit 1")
    with pytest.raises(RefusedError, match="the stack relaunch was not deployed: JobsTable: quota"):
        clone.deploying.create("relaunch", PARAMETERS, Failing())

    assert clone.lines == ["  CREATE_FAILED JobsTable (AWS::DynamoDB::Table): quota"]


def test_else_it_is_what_sam_says(clone: Clone) -> None:
    clone.sam("echo Error: no credentials >&2; exit 1")
    with pytest.raises(RefusedError, match="was not deployed: Error: no credentials"):
        clone.deploying.create("relaunch", PARAMETERS, FakeStacks())


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_an_update_is_confirmed_once(clone: Clone, *, is_confirmed: bool) -> None:
    clone.deploying.update("relaunch", PARAMETERS, FakeStacks(), is_confirmed=is_confirmed)

    assert ("--no-confirm-changeset" in clone.arguments) is is_confirmed
    assert "--no-fail-on-empty-changeset" in clone.arguments


def test_an_update_that_fails_has_told_why(clone: Clone) -> None:
    clone.sam("exit 1")
    with pytest.raises(RefusedError, match="was not updated"):
        clone.deploying.update("relaunch", PARAMETERS, FakeStacks(), is_confirmed=True)


def test_what_sam_says_is_no_result(clone: Clone, capfd: pytest.CaptureFixture[str]) -> None:
    clone.sam("echo Initiating deployment")

    clone.deploying.update("relaunch", PARAMETERS, FakeStacks(), is_confirmed=True)

    assert capfd.readouterr() == ("", "Initiating deployment\n")


def test_a_no_to_the_question_of_sam_is_no_update(clone: Clone) -> None:
    class Asking(FakeStacks):
        """SAM CLI has made its change set by the second look, and leaves it there after a no, with exit code 0."""

        def list_change_sets(self, **request: Any) -> dict[str, Any]:
            if len(self.calls) == 2:  # both pages of the first look
                self.change_sets["samcli-deploy1"] = {"StackName": "relaunch"}
            return super().list_change_sets(**request)

    stacks = Asking(change_sets={name: {"StackName": "relaunch"} for name in ("somebody-elses", "another")})

    with pytest.raises(RefusedError, match="the changes of relaunch were not confirmed: it is as it was") as refused:
        clone.deploying.update("relaunch", PARAMETERS, stacks, is_confirmed=False)

    assert refused.value.exit_code == 130
    assert set(stacks.change_sets) == {"somebody-elses", "another"}
