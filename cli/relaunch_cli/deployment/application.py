"""Builds the application's stack, and deploys it with SAM CLI."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaunch_cli import exit_codes
from relaunch_cli.deployment.machine_parameters import for_sam
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import Source
from relaunch_cli.deployment.stack_events import StackEvents, progress_line

_POLL_SECONDS = 2.0
_SHOWN_LINES = 30
_STANDARD_ERROR = 2


@dataclass(frozen=True)
class SamDeploy:
    """Runs `make build` and `sam deploy` in the clone, for one region."""

    source: Source
    region: str
    tell: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep

    def build(self) -> Mapping[str, str]:
        """Build if the sources have changed since the last time; return the parameters that the build was made for.

        It is built with this command's own interpreter, which is of a version that Lambda has: `python3` may be newer.

        Raises:
            RefusedError: it failed; the message has the end of its output.
        """
        # The Makefile has it in lines of the shell.
        interpreter = f"PYTHON={shlex.quote(sys.executable)}"
        command = ["make", "--no-print-directory", "--directory", str(self.source.folder), interpreter, "build"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=False,
                env=_environment(self.region),
            )
        except FileNotFoundError as error:
            raise RefusedError("the application is built by `make`, which is not installed") from error
        if done.returncode != 0:
            raise RefusedError(f"the application could not be built:\n{_tail(done.stdout + done.stderr)}")
        record = json.loads((self.source.folder / ".aws-sam" / "relaunch-build.json").read_text(encoding="utf-8"))
        return {"Runtime": record["runtime"], "Architecture": record["architecture"]}

    def create(self, stack: str, parameters: Mapping[str, str], stacks: Any) -> None:
        """Create the stack, which was confirmed, and tell what is done.

        Raises:
            RefusedError: SAM CLI failed; the message says what failed first.
        """
        events = StackEvents(stacks, stack)
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                self._command(stack, parameters, "--no-confirm-changeset", "--no-progressbar"),
                cwd=self.source.folder,
                env=_environment(self.region),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                while process.poll() is None:
                    self._follow(events)
                    self.sleep(_POLL_SECONDS)
            finally:
                if process.poll() is None:
                    # Of Ctrl-C SAM CLI was told too; the deployment goes on in CloudFormation.
                    process.wait()
            self._follow(events)
            if process.returncode != 0:
                log.seek(0)
                output = _tail(log.read().decode(errors="replace"))
                raise RefusedError(f"the stack {stack} was not deployed: {events.first_failure or output}")

    def update(self, stack: str, parameters: Mapping[str, str], stacks: Any, *, is_confirmed: bool) -> None:
        """Update the stack; SAM CLI shows the changes and asks, unless they are confirmed already.

        Raises:
            RefusedError: SAM CLI failed, and has said why; or the answer was no.
        """
        options = ["--no-fail-on-empty-changeset", *(["--no-confirm-changeset"] if is_confirmed else [])]
        command = self._command(stack, parameters, *options)
        before = set() if is_confirmed else _left(stack, stacks)
        # Standard output has the result of this command alone.
        done = subprocess.run(
            command, check=False, cwd=self.source.folder, env=_environment(self.region), stdout=_STANDARD_ERROR
        )
        if done.returncode != 0:
            raise RefusedError(f"the stack {stack} was not updated (see above)", exit_codes.REFUSED)
        # After a no it ends with 0, as after an update, and leaves its change set.
        declined = set() if is_confirmed else _left(stack, stacks) - before
        for each in declined:
            stacks.delete_change_set(StackName=stack, ChangeSetName=each)
        if declined:
            raise RefusedError(f"the changes of {stack} were not confirmed: it is as it was", exit_codes.CANCELLED)

    def _command(self, stack: str, parameters: Mapping[str, str], *options: str) -> Sequence[str | Path]:
        return [
            self.source.sam,
            "deploy",
            *("--stack-name", stack),
            *("--region", self.region),
            *options,
            "--parameter-overrides",
            *for_sam(parameters),
        ]

    def _follow(self, events: StackEvents) -> None:
        for event in events.read():
            if line := progress_line(event):
                self.tell(line)


def _left(stack: str, stacks: Any) -> set[str]:
    """Return the change sets of a stack that could be executed."""
    found: set[str] = set()
    more: dict[str, str] = {}
    while True:
        answer = stacks.list_change_sets(StackName=stack, **more)
        found |= {each["ChangeSetId"] for each in answer["Summaries"] if each.get("ExecutionStatus") == "AVAILABLE"}
        if not answer.get("NextToken"):
            return found
        more = {"NextToken": answer["NextToken"]}


def _environment(region: str) -> Mapping[str, str]:
    """Return the environment of make and SAM CLI, which has an interpreter and packages of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {**kept, "AWS_REGION": region, "AWS_DEFAULT_REGION": region, "SAM_CLI_TELEMETRY": "0"}


def _tail(output: str) -> str:
    return "\n".join(output.strip().splitlines()[-_SHOWN_LINES:])
