"""What the status of a stack means, and what to do about it."""

import pytest

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.stack import check_cluster, check_stack


@pytest.mark.parametrize(
    ("status", "verdict", "to_do"),
    [
        ("CREATE_COMPLETE", Verdict.OK, ""),
        ("UPDATE_COMPLETE", Verdict.OK, ""),
        (None, Verdict.PROBLEM, "relaunch deploy"),
        ("UPDATE_IN_PROGRESS", Verdict.PROBLEM, "describe-stacks"),
        ("UPDATE_ROLLBACK_FAILED", Verdict.PROBLEM, "continue-update-rollback"),
        ("UPDATE_ROLLBACK_COMPLETE", Verdict.PROBLEM, "relaunch deploy"),
        ("ROLLBACK_COMPLETE", Verdict.PROBLEM, "describe-stack-events"),
        ("DELETE_FAILED", Verdict.PROBLEM, "describe-stack-events"),
    ],
)
def test_a_stack_is_ok_once_it_is_settled(status: str | None, verdict: Verdict, to_do: str) -> None:
    check = check_stack("relaunch", status)

    assert (check.verdict, to_do in check.to_do) == (verdict, True)


def test_a_cluster_that_is_inactive_has_its_status() -> None:
    assert check_cluster("training", "INACTIVE").text == "it is INACTIVE: no job can start"
