"""What the functions need of a namespace is what the repository's Role gives."""

from collections import defaultdict

import pytest
import yaml

from fakes.repository import REPOSITORY
from relaunch.core.kubernetes.role_rules import NEEDED, NEEDED_OF_GANGS, ROLE, Rule, missing_verbs


def rule(groups, resources, verbs):
    return Rule(frozenset(groups), frozenset(resources), frozenset(verbs))


def test_the_role_of_the_repository_is_what_is_needed():
    documents = yaml.safe_load_all((REPOSITORY / "infrastructure" / "kubernetes" / "role.yaml").read_text())
    role = next(each for each in documents if each["kind"] == "Role")
    given = defaultdict(set)
    for each in role["rules"]:
        for group in each["apiGroups"]:
            for resource in each["resources"]:
                given[group, resource] |= set(each["verbs"])

    assert role["metadata"]["name"] == ROLE
    needed = {key: NEEDED.get(key, frozenset()) | NEEDED_OF_GANGS.get(key, frozenset()) for key in given}
    assert given == needed
    assert given.keys() == NEEDED.keys() | NEEDED_OF_GANGS.keys()


def test_nothing_is_missing_where_all_is_allowed():
    assert missing_verbs([rule("*", "*", "*")]) == []


@pytest.mark.parametrize(
    ("jobs", "missing"),
    [
        (rule(["batch"], ["jobs"], ["create", "get", "list"]), ["patch jobs"]),
        (rule(["apps"], ["jobs"], ["*"]), ["create jobs", "get jobs", "list jobs", "patch jobs"]),
        (rule(["batch"], ["*"], ["create", "get", "list", "patch"]), []),
    ],
)
def test_what_no_rule_allows_is_named(jobs, missing):
    assert missing_verbs([jobs, rule([""], ["pods", "events"], ["list"])]) == missing
