"""Whether on-demand prices are those of the region, and are still read."""

from datetime import UTC, datetime, timedelta

import pytest

from relaunch.core.checks import Check, Verdict
from relaunch.core.offerings.snapshot import BUNDLED, Origin, PriceOrigin, SnapshotPart
from relaunch_cli.account_checks.prices import check_prices

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
BUNDLED_AT = datetime(2026, 7, 20, tzinfo=UTC)
TO_DO = "aws lambda invoke --function-name refresh /dev/stdout: it reads them, or says why not"


def check(region: str, *origins: PriceOrigin) -> Check:
    return check_prices(origins, region, "us-east-1", "refresh", NOW)


def priced(source: str, at: datetime) -> PriceOrigin:
    return PriceOrigin(SnapshotPart.ON_DEMAND_PRICES, Origin(source, at))


def test_prices_of_another_region_in_the_place_of_ones_own_are_told_with_what_reads_them() -> None:
    found = check("eu-west-1", priced(f"us-east-1{BUNDLED}", BUNDLED_AT))

    assert (found.verdict, found.to_do) == (Verdict.UNKNOWN, TO_DO)
    assert found.text == (
        "the stack has read none of eu-west-1 yet, and those of us-east-1 stand in for them: costs and budgets rest "
        "on them"
    )


def test_in_the_region_that_they_are_of_they_are_good_until_the_first_refresh() -> None:
    found = check("us-east-1", priced(f"us-east-1{BUNDLED}", BUNDLED_AT))

    assert (found.verdict, found.text) == (
        Verdict.OK,
        "those of 2026-07-20, which came with Relaunch: the stack has read none yet",
    )


@pytest.mark.parametrize(("days", "verdict"), [(1, Verdict.OK), (4, Verdict.PROBLEM)])
def test_prices_that_are_not_read_any_more_are_a_problem(days: int, verdict: Verdict) -> None:
    found = check("eu-west-1", priced("AWS Price List", NOW - timedelta(days=days)))

    assert found.verdict is verdict
    assert found.text.startswith("read from AWS Price List at 2026-11-2")
    assert found.to_do == ("" if verdict is Verdict.OK else TO_DO)


def test_without_any_it_is_not_known() -> None:
    spot = PriceOrigin(SnapshotPart.SPOT_PRICES, Origin("EC2", NOW))

    assert check("us-east-1", spot).verdict is Verdict.UNKNOWN
