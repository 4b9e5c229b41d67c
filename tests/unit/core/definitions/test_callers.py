"""Which callers of job_api a definition lists."""

import re

import pytest

from relaunch.core.definitions.callers import CALLER_PATTERN, is_listed

ACCOUNT = "111122223333"
ROLE = f"arn:aws:sts::{ACCOUNT}:assumed-role/ci-vision"
ADA = f"arn:aws:iam::{ACCOUNT}:user/people/ada"


@pytest.mark.parametrize(
    ("listed", "caller"),
    [
        (f"arn:aws:iam::{ACCOUNT}:role/ci-vision", ROLE),
        (f"arn:aws:iam::{ACCOUNT}:role/relaunch/team/ci-vision", ROLE),
        (f"arn:aws:iam::{ACCOUNT}:role/relaunch/ci-*", ROLE),
        (ROLE, ROLE),
        (f"arn:aws:sts::{ACCOUNT}:assumed-role/ci-v*", ROLE),
        (ADA, ADA),
        (f"arn:aws:iam::{ACCOUNT}:user/people/a*", ADA),
        (f"arn:aws:iam::{ACCOUNT}:root", f"arn:aws:iam::{ACCOUNT}:root"),
        ("arn:aws-us-gov:iam::111122223333:role/ci", "arn:aws-us-gov:sts::111122223333:assumed-role/ci"),
        ("invoke", "invoke"),
    ],
)
def test_a_caller_that_is_named_is_listed(listed: str, caller: str) -> None:
    assert re.fullmatch(CALLER_PATTERN, listed)
    assert is_listed(caller, ("arn:aws:iam::444455556666:root", listed))


@pytest.mark.parametrize(
    ("listed", "caller"),
    [
        (f"arn:aws:iam::{ACCOUNT}:role/ci-vision", f"{ROLE}-2"),
        (f"arn:aws:iam::{ACCOUNT}:role/ci-vision", ROLE.replace(ACCOUNT, "444455556666")),
        (f"arn:aws:iam::{ACCOUNT}:role/ci-vision", ROLE.replace("arn:aws:", "arn:aws-cn:")),
        (f"arn:aws:iam::{ACCOUNT}:role/ci-vision", f"arn:aws:iam::{ACCOUNT}:user/ci-vision"),
        (f"arn:aws:iam::{ACCOUNT}:role/CI-*", ROLE),
        (f"arn:aws:iam::{ACCOUNT}:user/ada", ADA),
        (f"arn:aws:iam::{ACCOUNT}:root", ADA),
        ("invoke", ROLE),
        (ROLE, "invoke"),
        (ROLE, ""),
    ],
)
def test_another_caller_is_not(listed: str, caller: str) -> None:
    assert not is_listed(caller, (listed,))


@pytest.mark.parametrize(
    "listed",
    [
        "*",
        "ci-vision",
        "arn:aws:iam::*:role/ci",
        f"arn:aws:iam::{ACCOUNT}:role/*",
        # Its callers are known without a path, so it would be every role of the account.
        f"arn:aws:iam::{ACCOUNT}:role/relaunch/*",
        f"arn:aws:iam::{ACCOUNT}:role/*/ci",
        f"arn:aws:iam::{ACCOUNT}:role/ci-*-main",
        f"{ROLE}/run-1",
        f"arn:aws:iam::{ACCOUNT}:*",
        f"{ROLE}\n",
    ],
)
def test_what_would_be_more_than_it_says_cannot_be_named(listed: str) -> None:
    assert re.fullmatch(CALLER_PATTERN, listed) is None
