"""The names of concurrency groups, and the placeholders in them."""

import pytest

from relaunch.core.definitions.concurrency import Concurrency, find_unknown_placeholders, hash_of, write_group

MAIN = {"RELAUNCH_GIT_REF": "refs/heads/main", "RELAUNCH_GIT_REPOSITORY": "Acme/Vision"}


def name_of(group: str, environment: dict[str, str] | None = None, **inputs: str) -> str:
    return write_group(Concurrency(group), "resnet", MAIN if environment is None else environment, inputs)


@pytest.mark.parametrize(
    ("group", "name"),
    [
        ("gpu", "gpu"),
        ("{branch}", "main"),
        ("{repository}/{branch} {definition}", "acme/vision/main resnet"),
        ("{branch}-{branch}", "main-main"),
        ("{inputs.model}-{branch}", "large-main"),
        ("{inputs.note}", ""),
    ],
)
def test_each_placeholder_stands_for_its_value(group, name):
    assert name_of(group, model="large", note="") == name


def test_a_value_with_braces_is_no_placeholder():
    assert name_of("{inputs.model}", model="{branch}") == "{branch}"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"RELAUNCH_GIT_REF": "refs/tags/v1"},
        {"RELAUNCH_GIT_REF": "main"},
        {"RELAUNCH_GIT_REPOSITORY": "acme/vision"},
    ],
)
def test_what_has_no_branch_is_in_no_group_of_branches(environment):
    assert name_of("a-{branch}", environment) == ""
    assert name_of("a", environment) == "a"


def test_a_branch_keeps_its_case_and_its_slashes():
    assert name_of("{branch}", {"RELAUNCH_GIT_REF": "refs/heads/Fix/1"}) == "Fix/1"


def test_long_names_stay_different():
    longest = name_of("{inputs.a}", a="x" * 200)
    names = {name_of("{inputs.a}", a="x" * 200 + each) for each in ("", "1", "2")}
    assert longest == "x" * 200
    assert len(names) == 3
    assert max(map(len, names)) == 225


def test_unknown_placeholders_are_found():
    group = "{branch} {repository} {definition} {inputs.model} {inputs.size} {sha} {}"
    assert find_unknown_placeholders(group, ["model"]) == ["inputs.size", "sha", ""]
    assert find_unknown_placeholders("gpu } {", []) == []


def test_a_hash_is_the_same_for_the_same_name():
    assert hash_of("main") == hash_of("main") != hash_of("Main")
    assert len(hash_of("main")) == 24
