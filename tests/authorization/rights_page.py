"""Writes docs/rights.md: `python -m authorization.rights_page docs/rights.md`, with tests/ on the path."""

import sys
from collections.abc import Iterator
from pathlib import Path

from authorization.telling import FUNCTIONS, Told, is_of_a_name, page_of, tell_all
from fakes.aws import aws_in_process
from relaunch_local.attack.neighbours import NAMES, deployed, reached_by
from relaunch_local.iam.reach import account_wide, allowed
from relaunch_local.iam.rights import Right

HEAD = """# Rights of the functions

Written by `python -m authorization.rights_page docs/rights.md` from what tests/authorization sees; a test holds it to
that. Each right of a role is an action on a resource. It is deleted in turn, and a call of the function has to be
refused for it. AWS uses some rights by itself, as the named page says. A right that is kept is one that no call shows
the need of, with the page that has its resource. Conditions and wildcards restrict rights: each of them refuses a call
that nothing else refuses. A right is missing when a call is refused.
"""

NEIGHBOURS = """## What roles reach in another stack

Every role of four deployments in one account, whose names begin with each other (`a` and `a-b`, `relaunch` and
`relaunch-vision`), is asked what it may do to everything that the other one has, whatever the caller puts into the
request. Left out is that three functions look up images in every repository: a task definition may name any.

| role | actions | reached in another stack | for the whole account, as AWS knows no resource of it |
|---|---|---|---|"""


def write_page(told: Told) -> str:
    """Return the page."""
    lines = [HEAD, "| function | rights | needed by calls | used by AWS | kept | missing | conditions and wildcards |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [_summary(told, function) for function in FUNCTIONS]
    lines += ["", *_neighbours()]
    for function in FUNCTIONS:
        lines += ["", f"## {function}", "", "| action | resource | needed by |", "|---|---|---|"]
        lines += sorted(set(_rows(told, function)))
    return "\n".join(lines) + "\n"


def _neighbours() -> Iterator[str]:
    """Yield the section about what the roles of a deployment reach in the next one."""
    yield from NEIGHBOURS.splitlines()
    for role in deployed(NAMES[0]).roles:
        actions = 0
        reached = 0
        whole: set[str] = set()
        for own, other in (NAMES[:2], NAMES[1::-1], NAMES[2:], NAMES[:1:-1]):
            stacks = deployed(own)
            actions = len({action for action, _ in allowed(stacks.roles[role])})
            reached += len(reached_by(role, stacks, deployed(other)))
            whole |= set(account_wide(stacks.roles[role]))
        yield f"| `{role}` | {actions} | {reached} | {', '.join(f'`{each}`' for each in sorted(whole))} |"


def _summary(told: Told, function: str) -> str:
    needs = [_need(told, function, right) for right in _rights(told, function)]
    by_aws, kept = sum("by AWS" in each for each in needs), sum("kept" in each for each in needs)
    missing = sum(each.access_key == function for each in told.refused)
    restrictions = sum(1 for _ in told.policies[function].restrictions())
    calls = len(needs) - by_aws - kept
    return f"| `{function}` | {len(needs)} | {calls} | {by_aws} | {kept} | {missing} | {restrictions} |"


def _rights(told: Told, function: str) -> list[Right]:
    return [each for each in told.policies[function].rights() if not is_of_a_name(each)]


def _rows(told: Told, function: str) -> Iterator[str]:
    for right in _rights(told, function):
        yield f"| `{right.action}` | `{right.resource}` | {_need(told, function, right)} |"


def _need(told: Told, function: str, right: Right) -> str:
    if page := page_of(function, right):
        return f"kept: [Service Authorization Reference]({page})"
    users = list(told.policies[function].users_of(right, told.used_by(function)))
    if any(each in told.called_by(function) for each in users):
        return "calls"
    (page,) = {each.page for each in told.implied if each.permission in users}
    return f"by AWS: [{page.rpartition('/')[2]}]({page})"


if __name__ == "__main__":
    with aws_in_process():
        Path(sys.argv[1]).write_text(write_page(tell_all()), encoding="utf-8")
