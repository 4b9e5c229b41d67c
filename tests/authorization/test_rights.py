"""Every right of every function's role is needed by a call, and every condition and wildcard refuses one."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from authorization.stories import STORIES, Stories
from fakes.aws import aws_in_process
from fakes.role_world import of_function
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.reference import check_permission, is_without_key, policy_errors
from relaunch_local.iam.rights import Policies, Right
from relaunch_local.templates.document import read_template
from relaunch_local.templates.implied_permissions import Implied, implied_permissions
from relaunch_local.templates.roles import roles_of_functions

FLEET = "https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html"
FUNCTIONS = (
    *("github_webhook", "submit_job", "job_api", "launch_attempt", "request_machine"),
    *("observe_capacity", "observe_task", "reconcile", "refresh_offerings"),
)
# Resources that CreateFleet has, and that no call of ours shows whether EC2 looks at.
KEPT = {
    ("request_machine", "ec2:CreateFleet", "capacity-reservation"): FLEET,
    ("request_machine", "ec2:RunInstances", "capacity-reservation"): FLEET,
    ("request_machine", "ec2:CreateFleet", "volume"): FLEET,
    ("request_machine", "ec2:CreateFleet", "image"): FLEET,
}
# `zone=subnet` and `kind=template:version` cannot be picked apart in a template; a zone, a kind or a version is no ID.
NAMING_NOTHING = (
    *("subnet/us-east-1a", "subnet/us-east-1b"),
    *("launch-template/gpu", "launch-template/neuron", "launch-template/2"),
)


@dataclass
class Told:
    """What all stories used, and what was refused."""

    used: list[Permission]
    refused: list[Permission]
    implied: list[Implied]
    policies: dict[str, Policies]


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    used: list[Permission] = []
    refused: list[Permission] = []
    with aws_in_process():
        for tell in STORIES:
            stories = Stories()
            tell(stories)
            used += stories.world.used
            refused += stories.world.refused
        template, world = read_template(), stories.world
        names = {each: world.name_of(each) for each in roles_of_functions(template)}
        implied = [
            each
            for logical_id, function in names.items()
            for each in implied_permissions(function, logical_id, template, world.resolver)
        ]
        policies = {name: Policies(each, is_without_key) for name, each in world.policies.items()}
        yield Told(used, refused, implied, policies)


def used_by(told: Told, function: str) -> list[Permission]:
    return of_function([*told.used, *(each.permission for each in told.implied)], function)


def page_of(function: str, right: Right) -> str | None:
    kind = right.resource.split(":")[-1].partition("/")[0]
    return KEPT.get((function, right.action, kind))


def test_no_call_is_refused(told: Told) -> None:
    assert [f"{each.access_key}: {each.action} on {each.resource}" for each in told.refused] == []


def test_what_aws_does_with_a_role_is_allowed(told: Told) -> None:
    assert [
        each for each in told.implied if not told.policies[each.permission.access_key].allows(each.permission)
    ] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_aws_has_what_is_called_and_what_is_written(told: Told, function: str) -> None:
    for permission in used_by(told, function):
        check_permission(permission)
    assert [error for each in told.policies[function].documents for error in policy_errors(each)] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_right_that_is_taken_away_is_missed(told: Told, function: str) -> None:
    """Each action on each resource is deleted in turn, and a call is refused that was not."""
    policies, used = told.policies[function], used_by(told, function)
    unneeded = [
        right
        for right in policies.rights()
        if not right.resource.endswith(NAMING_NOTHING)
        and next(policies.users_of(right, used), None) is None
        and page_of(function, right) is None
    ]

    assert [f"{each.action} on {each.resource}" for each in unneeded] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_right_that_is_kept_for_a_page_is_used_by_no_call(told: Told, function: str) -> None:
    policies, used = told.policies[function], used_by(told, function)
    for right in policies.rights():
        if page_of(function, right) is not None:
            assert next(policies.users_of(right, used), None) is None, f"{right} needs no page"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_restriction_that_is_taken_away_lets_a_call_through(told: Told, function: str) -> None:
    """Each condition, and each literal part before a wildcard, refuses a call that nothing else refuses."""
    policies, used = told.policies[function], used_by(told, function)
    idle = [each.what for each in policies.restrictions() if policies.refused_by(each, used) is None]

    assert idle == []
