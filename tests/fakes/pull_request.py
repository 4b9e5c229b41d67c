"""A pull request whose workflow uses the action in the mode plan, on GitHub as the fakes play it."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakes.action_services import (
    GITHUB_API_URL,
    PLAN_API_URL,
    ROLE,
    FakeServices,
    FakeTime,
    action_inputs,
    runner_environment,
)
from relaunch_action.inputs import VARIABLE
from relaunch_action.plan_text import marker_of
from relaunch_action.run import run
from relaunch_action.workflow_commands import Runner
from relaunch_local.simulation.notices.github_refusals import REFUSALS

MERGE = "c" * 40
HEAD = "a" * 40
BASE = "b" * 40
OLD_BASE = "d" * 40
FILE = "relaunch.yaml"
BEFORE = """\
jobs:
  resnet:
    task_definition: trainer
    accelerator: {gpu: {count: 1, memory: 16GiB}}
"""
AFTER = BEFORE.replace("16GiB", "20GiB")
MARKER = marker_of("acme/vision", FILE, PLAN_API_URL)


class PullRequest:
    """Runs the step as the runner of a workflow `on: pull_request` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services = FakeServices()
        self.repository = self.services.repository
        self.repository.files = {(MERGE, FILE): AFTER, (BASE, FILE): BEFORE}
        self.repository.parents = {MERGE: (BASE, HEAD)}
        self.head = "acme/vision"
        self.event = "pull_request"
        self.variables: dict[str, str] = {
            "ACTIONS_ID_TOKEN_REQUEST_URL": runner_environment()["ACTIONS_ID_TOKEN_REQUEST_URL"]
        }
        self.log = ""
        self.summary = ""

    def run(self, **given: Any) -> int:
        """Run a step; return its exit code."""
        given = {"url": PLAN_API_URL, "mode": "plan", "definition": "", "role_to_assume": ROLE, **given}
        files = {name: self.folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH")}
        repo = {"full_name": self.head} if self.head else None
        pull = {"number": 7, "head": {"sha": HEAD, "repo": repo}, "base": {"sha": OLD_BASE}}
        files["GITHUB_EVENT_PATH"].write_text(json.dumps({"action": "synchronize", "pull_request": pull}))
        files["GITHUB_STEP_SUMMARY"].write_text("")
        environment = runner_environment(
            GITHUB_API_URL=GITHUB_API_URL,
            GITHUB_EVENT_NAME=self.event,
            GITHUB_SHA=MERGE,
            **{name: str(file) for name, file in files.items()},
        )
        environment |= {**self.variables, VARIABLE: action_inputs(**given)[VARIABLE]}
        written = io.StringIO()
        self.time = FakeTime()
        code = run(environment, Runner(environment, written), self.services.send, self.time.patience())
        self.log = written.getvalue()
        self.summary = files["GITHUB_STEP_SUMMARY"].read_text()
        return code

    def refuse(self, name: str, method: str = "", *, times: int = 1_000) -> None:
        """Have GitHub refuse requests about comments, with this method or any."""
        left = times

        def answer(asked: str, path: str) -> tuple[int, Mapping[str, str], str] | None:
            nonlocal left
            if "/comments" not in path or asked != (method or asked) or left == 0:
                return None
            left -= 1
            return REFUSALS[name].answer

        self.services.github.refuse = answer

    @property
    def bodies(self) -> list[str]:
        """Return the bodies of all comments."""
        return [each["body"] for each in self.repository.comments]

    @property
    def warnings(self) -> list[str]:
        """Return the annotations of warnings."""
        return [line for line in self.log.splitlines() if line.startswith("::warning")]

    @property
    def errors(self) -> list[str]:
        """Return the annotations of errors."""
        return [line for line in self.log.splitlines() if line.startswith("::error")]
