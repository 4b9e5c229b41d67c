"""Which trust policies let tasks of ECS assume a role."""

from typing import Any

import pytest

from relaunch_cli.account_checks.roles import read_policy, trusts_tasks

TASKS = {"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}


@pytest.mark.parametrize(
    ("statement", "is_trusted"),
    [
        (TASKS, True),
        ([TASKS], True),
        ({**TASKS, "Principal": {"Service": ["ec2.amazonaws.com", "ecs-tasks.amazonaws.com"]}}, True),
        ({**TASKS, "Action": ["sts:TagSession", "sts:assumerole"]}, True),
        ({**TASKS, "Effect": "Deny"}, False),
        ({**TASKS, "Action": "sts:TagSession"}, False),
        ({**TASKS, "Principal": {"Service": "ec2.amazonaws.com"}}, False),
        ({**TASKS, "Principal": {"AWS": "arn:aws:iam::1:root"}}, False),
        ({**TASKS, "Principal": "*"}, False),
        ([], False),
        (None, False),
        ("nothing", False),
    ],
)
def test_tasks_are_trusted_by_name(statement: Any, is_trusted: bool) -> None:
    assert trusts_tasks({"Statement": statement}) is is_trusted


@pytest.mark.parametrize(
    ("document", "policy"),
    [
        ({"Statement": []}, {"Statement": []}),
        ("%7B%22Statement%22%3A%20%5B%5D%7D", {"Statement": []}),
        ("no JSON", {}),
        ("[]", {}),
        (None, {}),
    ],
)
def test_a_policy_is_read_decoded_or_not(document: Any, policy: Any) -> None:
    assert read_policy(document) == policy
