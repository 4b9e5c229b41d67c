"""Interruptions shut spot for nobody, however many machines there are, and cost no more failed launches."""

import pytest

from relaunch_local.simulation.spot_market import MarketResult, SpotMarket, describe


def run(machines: int, *, shuts_for_all: bool) -> MarketResult:
    return SpotMarket(machines, seed=0, shuts_for_all=shuts_for_all).run(days=8)


@pytest.mark.parametrize("machines", [1, 10])
def test_spot_is_open_for_as_good_as_all_of_the_time(machines: int) -> None:
    result = run(machines, shuts_for_all=False)

    assert result.open_share > 0.97
    assert result.running_share > 0.95


def test_the_rule_as_it_was_shuts_spot_and_launches_fail_hardly_more_often_than_blind_ones() -> None:
    before, now = (run(10, shuts_for_all=shuts_for_all) for shuts_for_all in (True, False))

    assert before.open_share < 0.75
    assert now.open_share > 0.97
    # A type of which nothing is known is short for an hour of 21.
    assert 0 < now.failed_launches < 0.06 * (now.launches - now.failed_launches)


def test_the_table_has_both_rules_for_each_number_of_machines() -> None:
    rows = describe((1, 2), days=1, seeds=range(2)).splitlines()

    assert [row.split(" | ")[:2] for row in rows[2:]] == [
        [f"| {machines}", rule] for machines in (1, 2) for rule in ("shuts its offering for all", "counts for the rate")
    ]
