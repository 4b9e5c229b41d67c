"""Stacks beside each other: no role, and no policy of a queue or of the documentation, reaches another stack's.

The names and ARNs are those that CloudFormation gives; `make test-neighbours` deploys these
stacks, and asks the same of what was made.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest

from fakes.repository import REPOSITORY
from relaunch_cli.deployment.separation import DEFAULT_STACK, family_prefix
from relaunch_local.attack.neighbours import NAMES, SHARED, deployed, reached_by, senders, somebody
from relaunch_local.iam.policies import PolicyDocument, listed
from relaunch_local.iam.reach import Reached, account_wide, reach
from relaunch_local.templates.deployed import DeployedStacks

PAIRS = list(permutations(NAMES, 2))
ROLES = sorted(deployed("a").roles)
DOCUMENTED = "vision"
DOCUMENTED_REGION = "eu-central-1"
NEIGHBOURS_OF_DOCUMENTED = ("vision-b", "relaunch-vision", "relaunch", "v")
# What a name of CloudFormation ends in: nobody widens by accident what is named to its last character.
SUFFIX = re.compile(r"-[0-9a-fA-F]{12}\b(?!.*\?)")


def documented() -> Iterator[tuple[str, PolicyDocument]]:
    """The policies of identities that pages show, and where."""
    for page in sorted((REPOSITORY / "docs").rglob("*.md")):
        for number, block in enumerate(re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)):
            if '"Effect"' not in block:
                continue
            found = json.loads(block if '"Statement"' in block else f'{{"Statement": [{block}]}}')
            statements = [each for each in found["Statement"] if "Resource" in each]
            if statements:
                yield f"{page.name} {number}", {"Statement": statements}


DOCUMENTS = dict(documented())


def policies(own: DeployedStacks) -> Iterator[tuple[str, Sequence[PolicyDocument]]]:
    yield from own.roles.items()


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_no_role_reaches_another_stack(own: str, other: str) -> None:
    found = {role: reached_by(role, deployed(own), deployed(other)) for role in ROLES}

    assert {role: reached for role, reached in found.items() if reached} == {}


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_no_queue_takes_the_events_of_another_stacks_rules(own: str, other: str) -> None:
    stacks = deployed(own)
    found = [each for policy in stacks.queue_policies.values() for each in senders(policy, stacks, deployed(other))]

    assert found == []


@pytest.mark.parametrize("where", DOCUMENTS)
@pytest.mark.parametrize("other", NEIGHBOURS_OF_DOCUMENTED)
def test_no_policy_of_the_documentation_reaches_another_stack(where: str, other: str) -> None:
    own = deployed(DOCUMENTED, DOCUMENTED_REGION)
    neighbour = somebody(deployed(other, DOCUMENTED_REGION))

    assert list(reach([DOCUMENTS[where]], neighbour, own.arns)) == []


def test_the_policies_of_the_documentation_are_found() -> None:
    assert {where.partition(" ")[0] for where in DOCUMENTS} == {
        "doctor.md",
        "github-action.md",
        "job-api.md",
        "security.md",
    }
    assert len([each for each in DOCUMENTS if each.startswith("security.md")]) == 6


@pytest.mark.parametrize("own", NAMES)
def test_each_role_reaches_what_is_its_own(own: str) -> None:
    stacks = deployed(own)
    reached = {role: list(reach(documents, somebody(stacks))) for role, documents in stacks.roles.items()}

    assert {role for role, found in reached.items() if not found} == set()
    assert Reached("ecs:RegisterTaskDefinition", own_revision(stacks)) in reached["OperatorRole"]
    assert any(each.action == "events:PutTargets" and "/relaunch-" in each.resource for each in reached["OperatorRole"])
    assert any(each.action == "iam:PassRole" and "-TaskRole-" in each.resource for each in reached["LaunchAttemptRole"])


def own_revision(stacks: DeployedStacks) -> str:
    return stacks.arn("ecs", f"task-definition/{stacks.family_prefix}resnet:1")


def test_of_what_no_policy_can_hold_to_a_resource_one_action_changes_something() -> None:
    """Whether a revision is its own reconcile tells by its tag and its family (docs/security.md)."""
    actions = {role: account_wide(documents) for role, documents in deployed("a").roles.items()}
    changing = {
        (role, action)
        for role, found in actions.items()
        for action in found
        if not re.search(":(Describe|List|Get|Discover)", action)
    }

    assert changing == {("ReconcileRole", "ecs:DeregisterTaskDefinition")}


def test_what_is_shared_is_looking_up_images() -> None:
    own = deployed("a")
    other = deployed("a-b")
    found = {(role, each.action) for role in ROLES for each in reach(own.roles[role], somebody(other), own.arns)}

    assert found == SHARED


# ── What a wildcard too many would do ──


def widened(document: Any, name: str) -> Iterator[tuple[str, PolicyDocument]]:
    """Yield a document with one `*` behind the stack's name in one of its patterns, and that pattern."""
    for position, statement in enumerate(listed(document["Statement"])):
        rest = list(listed(document["Statement"]))
        for changed, pattern in _widened_statements(statement, name):
            yield pattern, {"Statement": [*rest[:position], changed, *rest[position + 1 :]]}


def _widened_statements(statement: Mapping[str, Any], name: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    resources = listed(statement.get("Resource", ()))
    for number, resource in enumerate(resources):
        if (wide := widen(resource, name)) is not None:
            yield {**statement, "Resource": [*resources[:number], wide, *resources[number + 1 :]]}, wide
    for operator, keys in statement.get("Condition", {}).items():
        for key, values in keys.items():
            for number, value in enumerate(listed(values)):
                if not str(value).startswith("arn:") or (wide := widen(value, name)) is None:
                    continue
                more = {**keys, key: [*listed(values)[:number], wide, *listed(values)[number + 1 :]]}
                yield {**statement, "Condition": {**statement["Condition"], operator: more}}, wide


def widen(pattern: str, name: str) -> str | None:
    """Put a `*` behind the last place where a pattern has the stack's name; None if it has it nowhere."""
    if SUFFIX.search(pattern):
        return None
    beginning = len("arn:aws:service:region:")
    found = [
        each
        for each in re.finditer(rf"(?<![A-Za-z0-9_])({name}|{name.replace('-', '_')})(?![A-Za-z0-9_])", pattern)
        if each.start() > beginning
    ]
    return f"{pattern[: found[-1].end()]}*{pattern[found[-1].end() :]}" if found else None


@pytest.mark.parametrize(("own", "other"), [("a", "a-b"), ("relaunch", "relaunch-vision")])
def test_a_wildcard_behind_the_name_of_a_stack_reaches_the_next_one(own: str, other: str) -> None:
    stacks = deployed(own)
    neighbour = deployed(other)
    widened_patterns = 0
    unnoticed = []
    for role in ROLES:
        for number, document in enumerate(stacks.roles[role]):
            for pattern, wide in widened(document, own):
                documents = [*stacks.roles[role][:number], wide, *stacks.roles[role][number + 1 :]]
                found = reach(documents, somebody(neighbour), stacks.arns)
                widened_patterns += 1
                if not any((role, each.action) not in SHARED for each in found):
                    unnoticed.append((role, pattern))

    assert unnoticed == []
    assert widened_patterns > 60


@pytest.mark.parametrize(("own", "other"), [("a", "a-b"), ("relaunch", "relaunch-vision")])
def test_a_wildcard_in_the_policy_of_a_queue_lets_the_next_stacks_rules_in(own: str, other: str) -> None:
    stacks = deployed(own)
    neighbour = deployed(other)
    # Topics are named whole by whoever deploys, and are no part of a stack.
    wide = [
        each
        for policy in stacks.queue_policies.values()
        for pattern, each in widened(policy, own)
        if ":sns:" not in pattern
    ]

    assert len(wide) == 2
    assert all(list(senders(each, stacks, neighbour)) for each in wide)


def test_a_wildcard_in_a_policy_of_the_documentation_reaches_the_next_one() -> None:
    own = deployed(DOCUMENTED, DOCUMENTED_REGION)
    neighbour = deployed("vision-b", DOCUMENTED_REGION)
    wide = [
        (f"{where}: {pattern}", document)
        for where, policy in DOCUMENTS.items()
        for pattern, document in widened(policy, DOCUMENTED)
        if "EXAMPLE" not in pattern
    ]
    unnoticed = [pattern for pattern, each in wide if not list(reach([each], somebody(neighbour), own.arns))]

    assert unnoticed == []
    assert len(wide) > 30


# ── Names ──


@pytest.mark.parametrize(("own", "other"), PAIRS)
def test_no_family_begins_with_what_another_stacks_families_do(own: str, other: str) -> None:
    mine = deployed(own).family_prefix

    assert not deployed(other).family_prefix.startswith(mine)


def test_the_default_stacks_families_are_those_of_its_name() -> None:
    assert family_prefix(DEFAULT_STACK) == deployed(DEFAULT_STACK).family_prefix
