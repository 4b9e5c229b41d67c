from typing import Any

import pytest

from relaunch_local.iam.permission import Permission
from relaunch_local.iam.rights import Policies, Right, widened_patterns

QUEUE = "arn:aws:sqs:us-east-1:111122223333:relaunch-jobs"
OTHER = "arn:aws:sqs:us-east-1:111122223333:relaunch-other"
SENT = Permission("f", "sqs:SendMessage", QUEUE)
RUN = Permission("f", "ecs:RunTask", "arn:aws:ecs:us-east-1:111122223333:task-definition/train:7", {"ecs:cluster": "c"})


def policies(*statements: dict[str, Any]) -> Policies:
    document = {"Statement": [{"Effect": "Allow", **each} for each in statements]}
    return Policies([document], lambda _action, _resource, _key: False)


def test_each_action_on_each_resource_is_a_right() -> None:
    rights = policies({"Action": ["sqs:SendMessage", "sqs:DeleteMessage"], "Resource": [QUEUE, OTHER]}).rights()

    assert [(each.action, each.resource) for each in rights] == [
        ("sqs:SendMessage", QUEUE),
        ("sqs:SendMessage", OTHER),
        ("sqs:DeleteMessage", QUEUE),
        ("sqs:DeleteMessage", OTHER),
    ]


def test_a_right_is_needed_by_what_it_alone_allows() -> None:
    found = policies({"Action": ["sqs:SendMessage", "sqs:DeleteMessage"], "Resource": [QUEUE, OTHER]})

    assert list(found.users_of(Right((0, 0), "sqs:SendMessage", QUEUE), [SENT])) == [SENT]
    assert list(found.users_of(Right((0, 0), "sqs:SendMessage", OTHER), [SENT])) == []
    assert list(found.users_of(Right((0, 0), "sqs:DeleteMessage", QUEUE), [SENT])) == []


def test_a_right_that_another_one_covers_is_not_needed() -> None:
    found = policies({"Action": "sqs:SendMessage", "Resource": QUEUE}, {"Action": "sqs:*", "Resource": "*"})

    assert list(found.users_of(Right((0, 0), "sqs:SendMessage", QUEUE), [SENT])) == []


def test_a_condition_refuses_a_call_like_one_that_it_allows() -> None:
    held = {"Action": "ecs:RunTask", "Resource": "*", "Condition": {"StringEquals": {"ecs:cluster": "c"}}}
    found = policies(held)
    (restriction,) = found.restrictions()

    refused = found.refused_by(restriction, found.refused_neighbours([RUN]))

    assert restriction.what == "StringEquals ecs:cluster"
    assert refused is not None
    assert refused.context["ecs:cluster"] != "c"


def test_a_condition_beside_a_right_without_it_refuses_nothing() -> None:
    held = {"Action": "ecs:RunTask", "Resource": "*", "Condition": {"StringEquals": {"ecs:cluster": "c"}}}
    found = policies(held, {"Action": "ecs:RunTask", "Resource": "*"})
    (restriction,) = found.restrictions()

    assert found.refused_by(restriction, found.refused_neighbours([RUN])) is None


def test_a_literal_part_before_a_wildcard_refuses_other_names() -> None:
    found = policies({"Action": "ecs:RunTask", "Resource": "arn:aws:ecs:*:*:task-definition/train:*"})
    restrictions = list(found.restrictions())

    assert [each.what.partition(" in ")[0] for each in restrictions] == ["'train:'"]
    refused = found.refused_by(restrictions[0], found.refused_neighbours([RUN]))
    assert refused is not None
    assert "/train:" not in refused.resource


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("*", []),
        ("arn:aws:ecs:*:*:cluster/c", []),
        ("arn:aws:ecs:us-*:*:cluster/c", ["us-"]),
        ("arn:aws:s3:::acme/*", ["acme/"]),
        ("arn:aws:ecs:r:a:task-definition/relaunch-*--????:*", ["relaunch-", "--", ":"]),
    ],
)
def test_the_literal_parts_of_a_pattern(pattern: str, parts: list[str]) -> None:
    found = dict.fromkeys(part for _, part in widened_patterns(pattern))

    assert list(found) == [each for each in parts if each != ":"]
