"""Lambda's concurrency: what to reserve, and how much of it to ask for."""

from relaunch.core.checks import Verdict
from relaunch_cli.account_checks.concurrency import check_concurrency
from relaunch_cli.deployment.concurrency import Account

NAMES = ("WarningsReservedConcurrency", "WebhookReservedConcurrency")


def test_a_new_account_asks_for_what_service_quotas_takes() -> None:
    check = check_concurrency(Account(10, 10), dict.fromkeys(NAMES, 0))

    assert "runs 10 functions at once" in check.text
    assert (
        "--desired-value 1001 (it takes no less), or a case at AWS Support for 130; once it is granted" in check.to_do
    )


def test_an_account_that_others_have_reserved_asks_for_more_than_it_has() -> None:
    check = check_concurrency(Account(1000, 100), dict.fromkeys(NAMES, 0))

    assert "--desired-value 1030;" in check.to_do


def test_where_there_is_room_a_deployment_reserves_it() -> None:
    check = check_concurrency(Account(1000, 1000), {NAMES[0]: 10, NAMES[1]: 0})

    assert (check.verdict, check.to_do) == (Verdict.PROBLEM, "relaunch deploy")
    assert "GithubWebhookFunction" in check.text
    assert "ObserveCapacityFunction" not in check.text


def test_the_least_is_enough() -> None:
    assert check_concurrency(Account(1000, 985), {NAMES[0]: 10, NAMES[1]: 5}).verdict is Verdict.OK


def test_a_stack_without_a_webhook_reserves_nothing_for_it() -> None:
    assert check_concurrency(Account(1000, 990), {NAMES[0]: 10}).verdict is Verdict.OK
