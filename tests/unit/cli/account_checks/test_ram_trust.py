"""What follows from the answer of RAM for the role's trust policy."""

import pytest

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.ram_trust import check_assumed, check_refused

ROLE = "acs:ram::113511544585:role/relaunch"
DENIED = "AuthenticationFail.NoPermission"


def test_a_role_that_lets_others_in_is_a_problem_with_the_subjects_to_name() -> None:
    check = check_assumed(ROLE, "arn:aws:iam::1:role/a,arn:aws:iam::1:role/b")

    assert (check.verdict, check.name) == (Verdict.PROBLEM, "trust of the RAM role")
    assert "StringEquals oidc:sub: arn:aws:iam::1:role/a, arn:aws:iam::1:role/b" in check.to_do
    assert "the output AlibabaSubjects" in check_assumed(ROLE, "").to_do


@pytest.mark.parametrize(
    ("code", "message", "verdict"),
    [
        (DENIED, "You are not authorized to do this action (ImplicitDeny, AssumeRolePolicy)", Verdict.OK),
        (DENIED, "Parameter OIDCProviderArn is not valid", Verdict.UNKNOWN),
        ("AuthenticationFail.OIDCToken.Expired", "This JsonWebToken is expired.", Verdict.UNKNOWN),
        ("EntityNotExist.Role", "The role not exists", Verdict.UNKNOWN),
        ("", "no message", Verdict.UNKNOWN),
    ],
)
def test_only_a_refusal_by_the_trust_policy_says_that_it_is_right(code: str, message: str, verdict: Verdict) -> None:
    check = check_refused(ROLE, code, message)

    assert check.verdict is verdict
    assert verdict is Verdict.OK or message in check.text
