"""What keeps stacks apart: families and paths that follow from a name, and names that policies would mistake."""

import re
from itertools import permutations

import pytest

from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.separation import DEFAULT_STACK, check_name, family_prefix, overlaps, separate_names
from relaunch_cli.options import DEFAULT_STACK as DEFAULT_OF_COMMANDS
from relaunch_local.templates.document import read_template

NAMES = ("a", "a-b", "a-b-c", "ab", "relaunch", "relaunch-vision", "relaunch-v", "Vision", "vision")
OWN = {"TaskDefinitionFamilies": "vision_b-*", "TaskRolePath": "vision-b/tasks/", "RolePath": "vision-b/"}
TEMPLATES = ("template.yaml", "infrastructure/training.yaml", "infrastructure/machines.yaml")


def stack(name: str, **parameters: str) -> dict[str, Stack]:
    return {name: Stack(name, "CREATE_COMPLETE", parameters)}


def test_a_new_stack_has_families_and_roles_of_its_own() -> None:
    assert separate_names("vision-b", {}) == OWN


def test_the_default_stack_has_what_the_templates_say() -> None:
    declared = {
        name: each["Default"]
        for file in TEMPLATES
        for name, each in read_template(file).parameters.items()
        if name in OWN
    }

    assert separate_names(DEFAULT_STACK, {}) == {}
    assert DEFAULT_STACK == DEFAULT_OF_COMMANDS
    assert declared == {"TaskDefinitionFamilies": "relaunch-*", "TaskRolePath": "relaunch/", "RolePath": "relaunch/"}
    assert declared["TaskDefinitionFamilies"] == f"{family_prefix(DEFAULT_STACK)}*"


@pytest.mark.parametrize("name", NAMES)
def test_the_templates_take_what_follows_from_a_name(name: str) -> None:
    for file in TEMPLATES:
        for parameter, value in separate_names(name, {}).items():
            pattern = read_template(file).parameters.get(parameter, {"AllowedPattern": ".*"})["AllowedPattern"]
            assert re.fullmatch(pattern, value)


@pytest.mark.parametrize(("one", "other"), list(permutations(NAMES, 2)))
def test_what_follows_from_one_name_covers_nothing_of_another(one: str, other: str) -> None:
    defaults = {"TaskRolePath": "relaunch/", "RolePath": "relaunch/"}
    mine, theirs = ({**defaults, **separate_names(name, {})} for name in (one, other))

    assert not family_prefix(other).startswith(family_prefix(one))
    assert not theirs["RolePath"].startswith(mine["RolePath"])
    assert not theirs["TaskRolePath"].startswith(mine["TaskRolePath"])


def test_an_application_that_exists_keeps_what_it_has() -> None:
    assert separate_names("vision-b", stack("vision-b")) == {}


def test_a_deployment_that_failed_goes_on_with_what_its_stacks_have() -> None:
    there = stack("vision-b-training", **OWN, ClusterName="c")
    older = stack("vision-b-training", ClusterName="c")

    assert separate_names("vision-b", there) == OWN
    assert separate_names("vision-b", older) == {}
    assert "RolePath" not in separate_names("vision-b", {**there, **stack("vision-b-machines")})


@pytest.mark.parametrize("name", NAMES)
def test_usual_names_are_taken(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a-training", "choose a name without -training"),
        ("a-machines", "choose a name without -machines"),
        ("a-training-b", "roles of a stack a would reach the stack a-training-b"),
        ("a-IntakeQueue", "roles of a stack a would reach"),
        ("a-JobsTable-b", "roles of a stack a would reach"),
        ("a-b-JobApiFunction-c", "roles of a stack a-b would reach"),
    ],
)
def test_a_name_that_policies_of_another_stack_cover_is_refused(name: str, says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        check_name(name)


def test_what_an_older_stack_shares_with_the_default_one_is_told() -> None:
    families, roles = overlaps("vision", {}, {"ClusterName": "c"})

    assert "task definitions of relaunch-*" in families
    assert "roles under /relaunch/, which the stack relaunch may pass too" in roles
    assert list(overlaps("vision", {}, separate_names("vision", {}))) == []
    assert list(overlaps("vision", separate_names("vision", {}), {})) == []
    assert list(overlaps(DEFAULT_STACK, {}, {})) == []
    (anything,) = overlaps("vision", {"TaskDefinitionFamilies": "any"}, {"TaskRolePath": "vision/tasks/"})
    assert "task definitions of any" in anything
