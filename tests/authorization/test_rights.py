"""Every right of every function's role is needed by a call, and every condition and wildcard refuses one."""

from collections.abc import Iterator

import pytest

from authorization.rights_page import write_page
from authorization.telling import FUNCTIONS, Told, is_of_a_name, page_of, tell_all
from fakes.aws import aws_in_process
from fakes.repository import REPOSITORY
from relaunch_local.iam.reference import check_permission, policy_errors


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    with aws_in_process():
        yield tell_all()


def test_no_call_is_refused(told: Told) -> None:
    assert [f"{each.access_key}: {each.action} on {each.resource}" for each in told.refused] == []


def test_what_aws_does_with_a_role_is_allowed(told: Told) -> None:
    assert [
        each for each in told.implied if not told.policies[each.permission.access_key].allows(each.permission)
    ] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_aws_has_what_is_called_and_what_is_written(told: Told, function: str) -> None:
    for permission in told.used_by(function):
        check_permission(permission)
    assert [error for each in told.policies[function].documents for error in policy_errors(each)] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_right_that_is_taken_away_is_missed(told: Told, function: str) -> None:
    """Each action on each resource is deleted in turn, and a call is refused that was not."""
    policies, used = told.policies[function], told.used_by(function)
    unneeded = [
        right
        for right in policies.rights()
        if not is_of_a_name(right)
        and next(policies.users_of(right, used), None) is None
        and page_of(function, right) is None
    ]

    assert [f"{each.action} on {each.resource}" for each in unneeded] == []


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_right_that_is_kept_for_a_page_is_used_by_no_call(told: Told, function: str) -> None:
    policies, used = told.policies[function], told.used_by(function)
    for right in policies.rights():
        if page_of(function, right) is not None:
            assert next(policies.users_of(right, used), None) is None, f"{right} needs no page"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_restriction_that_is_taken_away_lets_a_call_through(told: Told, function: str) -> None:
    """Each condition, and each literal part before a wildcard, refuses a call that nothing else refuses."""
    policies = told.policies[function]
    refused = policies.refused_neighbours(told.used_by(function))
    idle = [each.what for each in policies.restrictions() if policies.refused_by(each, refused) is None]

    assert idle == []


def test_the_page_is_what_was_told(told: Told) -> None:
    page = (REPOSITORY / "docs" / "rights.md").read_text(encoding="utf-8")

    assert page == write_page(told), "write it anew: python -m authorization.rights_page docs/rights.md"
