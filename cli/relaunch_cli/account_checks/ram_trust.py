"""Whom the RAM role of Alibaba Cloud lets in: the functions of the stack, and nobody else of the AWS account."""

from relaunch.core.checks import Check, is_ok, problem, unknown

NAME = "trust of the RAM role"
_PAGE = "docs/kubernetes.md#how-the-functions-sign-in"
# Of a trust policy that does not match; a parameter that is wrong has the same code ("ImplicitDeny", reports of users).
_NO_PERMISSION = "AuthenticationFail.NoPermission"
_WRONG_PARAMETER = "Parameter "


def check_assumed(role_arn: str, subjects: str) -> Check:
    """Return the check of a role that let the caller in, who is none of the functions."""
    named = ", ".join(subjects.split(",")) or "the output AlibabaSubjects of the stack"
    text = (
        f"{role_arn} let you in: whoever of this AWS account may sts:GetWebIdentityToken has the cluster and its Jobs"
    )
    return problem(NAME, text, f"in its trust policy, StringEquals oidc:sub: {named} ({_PAGE})")


def check_refused(role_arn: str, code: str, message: str) -> Check:
    """Return the check of a role that did not let the caller in, with the error code and message of RAM's STS."""
    if code == _NO_PERMISSION and _WRONG_PARAMETER not in message:
        return is_ok(NAME, f"{role_arn} did not let you in, who are none of the functions")
    return unknown(NAME, f"RAM refused for another reason than its trust policy: {message}", _PAGE)


def not_asked(reason: str) -> Check:
    """Return the check that could not be made, because AWS gave the caller no token."""
    to_do = f"look at its trust policy in the console of RAM ({_PAGE}), or grant sts:GetWebIdentityToken"
    return unknown(NAME, f"it can be asked only with a token of AWS: {reason}", to_do)
