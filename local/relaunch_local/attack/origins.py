"""Attacks of strangers who may comment on, watch or fork a repository: workflow runs that they cause start no job."""

import copy
import random
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import load_samples
from relaunch_local.attack.stack import REPOSITORY, AttackedStack, signed_headers, to_body

_START = frozenset(("push", "schedule", "workflow_dispatch", "release"))
# GitHub Docs, "Events that trigger workflows", and values that are none.
_EVENTS: tuple[object, ...] = (
    *("branch_protection_rule", "check_run", "check_suite", "create", "delete", "deployment", "deployment_status"),
    *("discussion", "discussion_comment", "fork", "gollum", "image_version", "issue_comment", "issues", "label"),
    *("merge_group", "milestone", "page_build", "project", "project_card", "project_column", "public"),
    *("pull_request", "pull_request_comment", "pull_request_review", "pull_request_review_comment"),
    *("pull_request_target", "push", "registry_package", "release", "repository_dispatch", "schedule", "status"),
    *("watch", "workflow_call", "workflow_dispatch", "workflow_run", "dynamic"),
    *("", "PUSH", "push ", " push", "push,watch", "pus\u04bb", None, True, 0, ["push"], {"push": "push"}),
)
_HEADS: tuple[Any, ...] = (REPOSITORY, "stranger/vision", "ACME/VISION-2", "acme", None)


def workflow_runs(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Deliver runs of every event, from the repository and from forks; only four events of our own may start a job."""
    stack = AttackedStack()
    run = load_samples()["github.workflow_run.completed.json"]
    tries = list(product(_EVENTS, _HEADS))
    for number in range(max(count, len(tries))):
        event, head = tries[number] if number < len(tries) else dice.choice(tries)
        payload = copy.deepcopy(run)
        payload["workflow_run"] |= {"id": number, "event": event}
        payload["workflow_run"]["head_repository"] = {"full_name": head} if head is not None else None
        is_ours = head == REPOSITORY and isinstance(event, str) and event in _START
        what = f"a run of {event!r} with its head in {head}"
        yield attempt(what, partial(_deliver, stack, payload, is_allowed=is_ours))


def _deliver(stack: AttackedStack, payload: Any, *, is_allowed: bool) -> str | None:
    before = len(stack.jobs())
    body = to_body(payload)
    stack.messages.clear()
    stack.post(signed_headers("workflow_run", body, str(payload["workflow_run"]["id"])), body)
    for message in stack.messages:
        stack.handle(message)
    started = len(stack.jobs()) - before
    if started and not is_allowed:
        return f"started {started} job"
    return "started nothing, although it may" if is_allowed and not started else None
