import re
from datetime import UTC, datetime

import pytest

from relaunch.core.task_definitions.query_language import UNKNOWN, ExpressionError, Value, parse_expression

INSTANCE: dict[str, Value] = {
    "attribute:ecs.instance-type": "g5.xlarge",
    "attribute:ecs.availability-zone": "us-east-1a",
    "attribute:stack": "prod",
    "attribute:cards": "4",
    "attribute:share": "0.10",
    "agentConnected": True,
    "agentVersion": "1.105.1",
    "ec2InstanceId": "i-0abc",
    "registeredAt": datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC),
    "runningTasksCount": 2,
    "task:group": frozenset({"family:train", "web"}),
}


def holds(text: str) -> bool | None:
    return parse_expression(text).holds(INSTANCE.get)


@pytest.mark.parametrize(
    "text",
    [
        "attribute:ecs.instance-type == g5.xlarge",
        "attribute:ecs.instance-type equals g5.xlarge",
        "attribute:ecs.instance-type != g5.2xlarge",
        "attribute:ecs.instance-type not_equals g5.2xlarge",
        "attribute:ecs.instance-type in [g5.xlarge, g6.xlarge]",
        "attribute:ecs.instance-type in ['g5.xlarge', \"g6.xlarge\"]",
        "attribute:ecs.instance-type !in [g6.xlarge]",
        "attribute:ecs.instance-type not_in [g6.xlarge]",
        "attribute:ecs.instance-type =~ g5.*",
        "attribute:ecs.instance-type =~ (g4dn|g5)\\..*",
        "attribute:ecs.instance-type matches g[56].*",
        'attribute:ecs.instance-type =~ "g[56].*"',
        "attribute:ecs.instance-type =~ 'g[56].*'",
        "attribute:ecs.instance-type !~ p.*",
        "attribute:ecs.instance-type not_matches p.*",
        "attribute:stack exists",
        "attribute:nothing !exists",
        "attribute:nothing not_exists",
        "attribute:nothing != anything",
        "attribute:cards > 3",
        "attribute:share < 0.9",
        "attribute:cards less_than_equal 4",
        "runningTasksCount >= 2",
        "runningTasksCount < 3",
        "agentVersion > 1.9.10",
        "agentConnected == true",
        "ec2InstanceId in [i-0abc, i-0def]",
        "registeredAt > 2026-02-18T18:46:10+00:00",
        "registeredAt > 2026-03-01",
        "registeredAt >= 2026-03-01T12:30:00",
        "registeredAt == 2026-03-01T12:30:00Z",
        "registeredAt equals 2026-03-01T14:30:00+02:00",
        "registeredAt != 2026-03-01",
        "registeredAt less_than 2026-03-01T12:30:01Z",
        "task:group == web",
        "not(task:group == database)",
        "attribute:stack == prod and attribute:cards == 4",
        "attribute:stack == test or attribute:cards == 4",
        "attribute:stack == prod && (attribute:cards == 5 || attribute:cards == 4)",
        "!(attribute:stack == test) and runningTasksCount == 2",
        "attribute:stack == test and attribute:cards == 5 or agentConnected == true",
    ],
)
def test_true_expressions_hold(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "attribute:ecs.instance-type == g5.xlarge2",
        "attribute:ecs.instance-type == G5.xlarge",
        "attribute:ecs.instance-type =~ g5",
        "attribute:nothing == anything",
        "attribute:nothing exists",
        "attribute:nothing > 1",
        "attribute:stack > 1",
        "task:group == database",
        "task:group != web",
        "agentVersion < 1.9.10",
        "registeredAt < 2026-03-01T12:30:00",
        "registeredAt > 2026-03-02",
        "registeredAt == 2026-03-01",
        "attribute:stack == prod and attribute:cards == 5",
        "not(attribute:stack == prod) or runningTasksCount == 3",
    ],
)
def test_false_expressions_do_not_hold(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("garbage", id="subject-only"),
        pytest.param("garbage == 1", id="unknown-subject"),
        pytest.param("attribute: == 1", id="attribute-without-name"),
        pytest.param("attribute:a = 1", id="half-an-operator"),
        pytest.param("attribute:a like 1", id="unknown-operator"),
        pytest.param("registeredAt in [2026-03-01]", id="no-operator-of-times"),
        pytest.param("registeredAt exists", id="times-always-exist"),
        pytest.param("runningTasksCount =~ 1", id="no-operator-of-numbers"),
        pytest.param("ec2InstanceId > i-0", id="no-operator-of-ids"),
        pytest.param("registeredAt > yesterday", id="no-time"),
        pytest.param("registeredAt > 20260301", id="another-format-of-dates"),
        pytest.param("registeredAt > 2026-03-01T12:30", id="time-without-seconds"),
        pytest.param("registeredAt > 2026-02-30", id="no-day-of-the-calendar"),
        pytest.param("registeredAt > '2026-03-01\n'", id="date-with-line-feed"),
        pytest.param("attribute:a ==", id="missing-argument"),
        pytest.param("attribute:a == 1 and", id="dangling-and"),
        pytest.param("attribute:a == 1 attribute:b == 2", id="two-without-join"),
        pytest.param("attribute:a in g5.xlarge", id="in-without-list"),
        pytest.param("attribute:a in []", id="empty-list"),
        pytest.param("attribute:a in [x", id="open-list"),
        pytest.param("attribute:a =~ (", id="no-regular-expression"),
        pytest.param("attribute:a =~ a{99999999999}", id="repetition-too-large"),
        pytest.param("(" * 900 + "attribute:a == 1" + ")" * 900, id="parentheses-too-deep"),
        pytest.param("not " * 300 + "attribute:a == 1", id="negations-too-deep"),
        pytest.param("attribute:a =~", id="missing-pattern"),
        pytest.param("(attribute:a == 1)", id="single-in-parentheses"),
        pytest.param("(attribute:a == 1 and attribute:b == 2", id="open-parenthesis"),
        pytest.param("attribute:a == 1)", id="stray-parenthesis"),
        pytest.param("attribute:a == " + "x" * 2_000, id="too-long"),
        pytest.param("attribute:" + "n" * 129 + " exists", id="name-too-long"),
    ],
)
def test_what_is_not_in_the_language_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("attribute:a in g5.xlarge", "expected '[', found 'g5.xlarge'"),
        ("attribute:a in [x", "expected ']', found 'nothing'"),
        ("attribute:a == 1 attribute:long-name-of-it == 2", "expected the end, found 'attribute:long-name'"),
        ("registeredAt > today", "not a date or time like 2018-06-18 or 2018-06-18T22:28:28Z: 'today'"),
    ],
)
def test_a_refusal_says_what_is_expected(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=f"^{re.escape(problem)}$"):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("attribute:zone == us-east-1a", None),
        ("attribute:zone exists", None),
        ("not(attribute:zone == us-east-1a)", None),
        ("attribute:zone == us-east-1a and attribute:stack == prod", None),
        ("attribute:zone == us-east-1a and attribute:stack == test", False),
        ("attribute:stack == test and attribute:zone == us-east-1a", False),
        ("attribute:zone == us-east-1a or attribute:stack == test", None),
        ("attribute:zone == us-east-1a or attribute:stack == prod", True),
        ("not(attribute:zone == us-east-1a and attribute:stack == test)", True),
    ],
)
def test_what_depends_on_an_unknown_value_is_unknown(text: str, expected: bool | None) -> None:
    instance = {"attribute:stack": "prod", "attribute:zone": UNKNOWN}

    assert parse_expression(text).holds(instance.__getitem__) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "g5.*",
        "p3\\..*",
        "(g4dn|g5)[.]x?large",
        "g[4-6]\\w{1,3}",
        "(?:p4|p5).+",
        "^g5.*$",
        "a*b+c?d{2}",
        "(?:a|b)c*d*e*f*",
    ],
)
def test_usual_patterns_mean_the_same_in_java(pattern: str) -> None:
    assert parse_expression(f"attribute:a =~ {pattern}").is_portable
    assert parse_expression(f"not(attribute:b exists) and attribute:a !~ {pattern}").is_portable


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a|b)*c", "(?i)G5.*", "g5.*?", "[a&b]", "\\bg5", ".*.*.*.*.*", "a{100}", "g5.*|(?!p).*"]
)
def test_a_pattern_that_java_may_read_otherwise_or_that_backtracks_is_not_portable(pattern: str) -> None:
    assert not parse_expression(f"attribute:a =~ {pattern}").is_portable
    assert not parse_expression(f"not(attribute:a =~ {pattern}) or attribute:b exists").is_portable
