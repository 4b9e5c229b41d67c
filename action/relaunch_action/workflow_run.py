"""The workflow run that the step belongs to, from the runner's variables, and the keys that it gives to its jobs.

Source: "Variables reference", GitHub Docs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from relaunch_action.errors import ActionError

_LONGEST_SESSION = 64


@dataclass(frozen=True)
class WorkflowRun:
    """A workflow run: `attempt` is 1, and one more each time that it is re-run under the same `run_id`."""

    server_url: str
    repository: str
    run_id: str
    attempt: int
    job: str

    @property
    def url(self) -> str:
        """Return its page."""
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"

    @property
    def session_name(self) -> str:
        """Return the name of its sessions of a role, which CloudTrail records."""
        return f"relaunch-{self.run_id}-{self.attempt}"[:_LONGEST_SESSION]

    def keys(self, definition: str, inputs: Mapping[str, str], image_tag: str = "") -> list[str]:
        """Return the idempotency keys of a submission, one for each attempt of the workflow run so far, in order.

        Two jobs of a workflow run, of a matrix for example, have different keys if they differ in definition, inputs,
        image or the job's name.
        """
        told = json.dumps([self.job, definition, sorted(inputs.items()), *([image_tag] if image_tag else [])])
        digest = hashlib.sha256(told.encode()).hexdigest()[:16]
        begin = f"github/{self.repository}/{self.run_id}"
        return [f"{begin}/{number}/{digest}" for number in range(1, self.attempt + 1)]


def read_workflow_run(environment: Mapping[str, str]) -> WorkflowRun:
    """Read the runner's variables.

    Raises:
        ActionError: the step is run by no runner.
    """
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB")
    missing = [name for name in names if not environment.get(name)]
    if missing or not re.fullmatch(r"[1-9][0-9]{0,8}", environment["GITHUB_RUN_ATTEMPT"]):
        wrong = ", ".join(missing) or "GITHUB_RUN_ATTEMPT"
        raise ActionError(f"{wrong} of the runner is missing: run the action in a workflow of GitHub Actions")
    server, repository, run_id, attempt, job = (environment[name] for name in names)
    return WorkflowRun(server, repository, run_id, int(attempt), job)
