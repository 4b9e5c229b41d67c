"""The pull request that a workflow runs for, from the runner's variables and the payload of its event.

Sources: "Events that trigger workflows" (pull_request) and "Variables reference", GitHub Docs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relaunch_action.errors import ActionError

_EVENT = "pull_request"
_SHA = re.compile(r"[0-9a-f]{40,64}")


@dataclass(frozen=True)
class PullRequest:
    """A pull request of a repository; `merge_sha` is what the workflow runs for: the merge of its head into its base.

    `is_from_fork`: another repository has its branch, or had, so that its workflow gets no token for AWS unless the
    owner lets forks have one.
    """

    number: int
    head_sha: str
    base_sha: str
    merge_sha: str
    is_from_fork: bool


def read_pull_request(environment: Mapping[str, str]) -> PullRequest:
    """Read the event of the workflow run.

    Raises:
        ActionError: it is another event, or its payload cannot be read.
    """
    event = environment.get("GITHUB_EVENT_NAME", "")
    if event != _EVENT:
        # A job of pull_request_target has the rights of the base branch, and must not use what a stranger wrote.
        raise ActionError(
            f"the mode plan is for workflows that start `on: pull_request`, and this one was started by {event or '?'}"
        )
    payload = _load(environment.get("GITHUB_EVENT_PATH", ""))
    pull = _member(payload, "pull_request")
    number = pull.get("number")
    head = _member(pull, "head")
    base = _member(pull, "base")
    shas = [head.get("sha"), base.get("sha"), environment.get("GITHUB_SHA")]
    if not isinstance(number, int) or not all(isinstance(sha, str) and _SHA.fullmatch(sha) for sha in shas):
        raise ActionError("the payload of the event pull_request has no number or no commits")
    # A deleted fork is null.
    name = _member(head, "repo").get("full_name")
    is_own = isinstance(name, str) and name.lower() == environment.get("GITHUB_REPOSITORY", "").lower()
    head_sha, base_sha, merge_sha = (str(sha) for sha in shas)
    return PullRequest(number, head_sha, base_sha, merge_sha, not is_own)


def _load(path: str) -> Mapping[str, Any]:
    try:
        payload = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ActionError(f"the payload of the event, GITHUB_EVENT_PATH, cannot be read: {error}") from error
    return payload if isinstance(payload, dict) else {}


def _member(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    return value if isinstance(value, dict) else {}
