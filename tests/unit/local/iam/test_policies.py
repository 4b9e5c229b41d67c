from typing import Any

import pytest

from relaunch_local.iam.conditions import PolicyError
from relaunch_local.iam.permission import ContextValue, Permission
from relaunch_local.iam.policies import PolicyAuthorizer

CLUSTER = "arn:aws:ecs:us-east-1:111122223333:cluster/c"


def allow(action: Any, resource: Any = "*", **others: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **others}


def deny(action: Any, resource: Any = "*", **others: Any) -> dict[str, Any]:
    return {"Effect": "Deny", "Action": action, "Resource": resource, **others}


def is_allowed(statements: list[dict[str, Any]], action: str, resource: str = "r", **context: ContextValue) -> bool:
    authorize = PolicyAuthorizer({"k": [{"Statement": statements}]})
    return authorize(
        Permission("k", action, resource, {key.replace("__", ":"): value for key, value in context.items()})
    )


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        pytest.param([], False, id="nothing-allows"),
        pytest.param([allow("ecs:RunTask")], True, id="allowed"),
        pytest.param([allow("ECS:runtask")], True, id="actions-ignore-case"),
        pytest.param([allow(["ecs:StopTask", "ecs:Run*"])], True, id="wildcard"),
        pytest.param([allow("ecs:Run?ask")], True, id="question-mark"),
        pytest.param([allow("ecs:*"), deny("ecs:RunTask")], False, id="deny-wins"),
        pytest.param([allow("ecs:RunTask", "other")], False, id="other-resource"),
        pytest.param([allow("ecs:RunTask", ["other", "r"])], True, id="one-of-resources"),
        pytest.param([allow("ecs:RunTask", "R")], False, id="resources-heed-case"),
        pytest.param([{"Effect": "Allow", "NotAction": "ecs:StopTask", "Resource": "*"}], True, id="not-action"),
        pytest.param([{"Effect": "Allow", "NotAction": "ecs:*", "Resource": "*"}], False, id="not-action-of-it"),
        pytest.param([{"Effect": "Allow", "Action": "*", "NotResource": "r"}], False, id="not-resource"),
        pytest.param([{"Effect": "Allow", "Action": "*", "NotResource": "s"}], True, id="not-resource-of-another"),
    ],
)
def test_policies_are_evaluated(statements: list[dict[str, Any]], *, expected: bool) -> None:
    assert is_allowed(statements, "ecs:RunTask") == expected


@pytest.mark.parametrize(
    ("pattern", "resource", "expected"),
    [
        ("arn:aws:ecs:*:*:cluster/c", CLUSTER, True),
        ("arn:aws:ecs:us-east-?:111122223333:cluster/*", CLUSTER, True),
        ("arn:aws:ecs:*:cluster/c", CLUSTER, False),  # a wildcard spans no colon before the last component
        ("arn:aws:ecs:*:*:task-definition/f:*", "arn:aws:ecs:us-east-1:111122223333:task-definition/f:7", True),
        ("arn:aws:ecs:*:*:*", "*", False),  # a call that names no resource needs a statement for all
        ("*", "*", True),
    ],
)
def test_each_component_of_an_arn_is_matched_by_itself(pattern: str, resource: str, *, expected: bool) -> None:
    assert is_allowed([allow("ecs:RunTask", pattern)], "ecs:RunTask", resource) == expected


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        ({"ArnEquals": {"ecs:cluster": CLUSTER}}, {"ecs__cluster": CLUSTER}, True),
        ({"ArnEquals": {"ecs:cluster": [CLUSTER, "x"]}}, {"ecs__cluster": CLUSTER}, True),
        ({"ArnLike": {"ecs:cluster": "arn:aws:ecs:*:*:cluster/c"}}, {"ecs__cluster": CLUSTER}, True),
        ({"ArnLike": {"ecs:cluster": "arn:*:cluster/c"}}, {"ecs__cluster": CLUSTER}, False),
        ({"ArnNotLike": {"ecs:cluster": "arn:aws:ecs:*:*:cluster/d"}}, {"ecs__cluster": CLUSTER}, True),
        ({"StringEquals": {"ecs:cluster": CLUSTER}}, {"ecs__cluster": CLUSTER + "d"}, False),
        ({"StringEquals": {"ecs:cluster": "arn:*"}}, {"ecs__cluster": CLUSTER}, False),
        ({"StringEquals": {"ECS:Cluster": CLUSTER}}, {"ecs__cluster": CLUSTER}, True),  # keys ignore case
        ({"StringLike": {"ecs:cluster": "*/c"}}, {"ecs__cluster": CLUSTER}, True),
        ({"StringNotEquals": {"k": "a"}}, {"k": "a"}, False),
        ({"StringNotEquals": {"k": ["a", "b"]}}, {"k": "b"}, False),
        ({"StringNotEquals": {"k": ["a", "b"]}}, {"k": "c"}, True),
        ({"StringNotLike": {"k": "a*"}}, {"k": None}, True),  # negated operators hold where there is no key
        ({"StringEqualsIgnoreCase": {"k": "A"}}, {"k": "a"}, True),
        ({"StringNotEqualsIgnoreCase": {"k": "A"}}, {"k": "a"}, False),
        ({"StringEquals": {"ecs:cluster": CLUSTER}}, {"ecs__cluster": None}, False),
        ({"StringEqualsIfExists": {"ecs:cluster": CLUSTER}}, {"ecs__cluster": None}, True),
        ({"StringEquals": {"aws:RequestTag/a": "1"}}, {"aws__RequestTag/": None}, False),
        ({"NumericLessThanEquals": {"k": 300}}, {"k": "300"}, True),
        ({"NumericLessThan": {"k": "300"}}, {"k": "300"}, False),
        ({"NumericGreaterThan": {"k": "9"}}, {"k": "10"}, True),
        ({"NumericGreaterThanEquals": {"k": "10"}}, {"k": "9"}, False),
        ({"NumericEquals": {"k": "1.0"}}, {"k": "1"}, True),
        ({"NumericNotEquals": {"k": "1"}}, {"k": "1"}, False),
        ({"DateLessThan": {"k": "2026-01-01T00:00:00Z"}}, {"k": "2025-12-31T23:59:59Z"}, True),
        ({"DateGreaterThanEquals": {"k": "1767225600"}}, {"k": "2026-01-01"}, True),
        ({"DateNotEquals": {"k": "2026-01-01"}}, {"k": "2026-01-01T00:00:00Z"}, False),
        ({"IpAddress": {"k": "10.0.0.0/8"}}, {"k": "10.1.2.3"}, True),
        ({"IpAddress": {"k": "2001:db8::/32"}}, {"k": "10.1.2.3"}, False),
        ({"NotIpAddress": {"k": "10.0.0.0/8"}}, {"k": "10.1.2.3"}, False),
        ({"BinaryEquals": {"k": "QUJD"}}, {"k": "QUJD"}, True),
        ({"Null": {"k": "true"}}, {"k": None}, True),
        ({"Null": {"k": "false"}}, {"k": None}, False),
        ({"Null": {"k": False}}, {"k": "v"}, True),
        ({"ForAllValues:StringEquals": {"k": ["a", "b"]}}, {"k": ("a", "b")}, True),
        ({"ForAllValues:StringEquals": {"k": ["a"]}}, {"k": ("a", "b")}, False),
        ({"ForAllValues:StringEquals": {"k": ["a"]}}, {"k": None}, True),  # no values are all values
        ({"ForAnyValue:StringLike": {"k": ["b*"]}}, {"k": ("a", "bc")}, True),
        ({"ForAnyValue:StringLike": {"k": ["b*"]}}, {"k": None}, False),
        ({"ForAnyValue:StringNotEquals": {"k": ["a"]}}, {"k": ("a", "b")}, True),
        ({"ForAllValues:StringNotEquals": {"k": ["a"]}}, {"k": ("a", "b")}, False),
        ({"StringEquals": {"k": "a"}, "StringLike": {"l": "b"}}, {"k": "a", "l": "c"}, False),  # all have to hold
        ({"Bool": {"ec2:IsLaunchTemplateResource": "true"}}, {"ec2__IsLaunchTemplateResource": "true"}, True),
        ({"Bool": {"ec2:IsLaunchTemplateResource": True}}, {"ec2__IsLaunchTemplateResource": "true"}, True),
        ({"Bool": {"ec2:IsLaunchTemplateResource": "true"}}, {"ec2__IsLaunchTemplateResource": "false"}, False),
        ({"Bool": {"ec2:IsLaunchTemplateResource": "true"}}, {"ec2__IsLaunchTemplateResource": None}, False),
        ({"BoolIfExists": {"ec2:IsLaunchTemplateResource": "true"}}, {"ec2__IsLaunchTemplateResource": None}, True),
    ],
)
def test_conditions_are_evaluated(
    condition: dict[str, Any], context: dict[str, ContextValue], *, expected: bool
) -> None:
    assert is_allowed([allow("*", Condition=condition)], "ecs:RunTask", **context) == expected


@pytest.mark.parametrize(
    ("condition", "context", "message"),
    [
        pytest.param({"StringIs": {"k": "a"}}, {"k": "a"}, "StringIs", id="operator"),
        pytest.param({"ForSomeValues:StringEquals": {"k": "a"}}, {"k": "a"}, "ForSomeValues", id="set operator"),
        pytest.param({"NullIfExists": {"k": "true"}}, {"k": "a"}, "NullIfExists", id="null if exists"),
        pytest.param({"StringEquals": {"k": "a"}}, {}, "the value of k", id="key"),
        pytest.param({"StringEquals": {"k": "a"}}, {"k": ("a", "b")}, "needs ForAllValues", id="several"),
        pytest.param({"StringEquals": {"k": "${aws:username}"}}, {"k": "a"}, "aws:username", id="variable"),
    ],
)
def test_what_is_not_known_is_an_error(condition: dict[str, Any], context: dict[str, str], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        is_allowed([allow("*", Condition=condition)], "ecs:RunTask", **context)


def test_an_element_that_identity_policies_do_not_have_is_an_error() -> None:
    with pytest.raises(PolicyError, match="Principal"):
        is_allowed([allow("*", Principal="*")], "ecs:RunTask")


def test_a_policy_variable_is_replaced_by_what_the_request_says() -> None:
    statement = allow("s3:GetObject", "arn:aws:s3:::b/${aws:PrincipalTag/team}/*")

    assert is_allowed([statement], "s3:GetObject", "arn:aws:s3:::b/red/x", **{"aws__PrincipalTag/team": "red"})
    assert not is_allowed([statement], "s3:GetObject", "arn:aws:s3:::b/blue/x", **{"aws__PrincipalTag/team": "red"})
    assert not is_allowed([statement], "s3:GetObject", "arn:aws:s3:::b/red/x", **{"aws__PrincipalTag/team": None})


def test_an_unknown_caller_may_do_nothing() -> None:
    assert not PolicyAuthorizer({})(Permission("k", "ecs:RunTask", "r"))
