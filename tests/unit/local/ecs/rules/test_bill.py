"""EC2's bill of an instance, by its rules; one case for each."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from relaunch_local.ecs.rules.bill import Life, Prices, Reservation, Volume, bill_of

LAUNCH = datetime(2026, 3, 1, tzinfo=UTC)
PRICES = Prices(on_demand=3.6)


def after(seconds: float) -> datetime:
    """Return a time after the launch."""
    return LAUNCH + timedelta(seconds=seconds)


LIFE = Life(LAUNCH, after(20), after(920), after(980))
SPOT = replace(LIFE, is_spot=True, ended_at=after(20 + 2 * 3_600), terminated_at=after(9_000))


@pytest.mark.parametrize(
    ("life", "prices", "usd", "pending_usd"),
    [
        pytest.param(LIFE, PRICES, 0.9, 0.02, id="running-is-billed-and-pending-is-not"),
        pytest.param(replace(LIFE, ended_at=after(25)), PRICES, 0.06, 0.02, id="sixty-seconds-at-least"),
        pytest.param(replace(LIFE, running_at=None), PRICES, 0.0, 0.92, id="one-that-was-never-running"),
        pytest.param(replace(LIFE, ended_at=None, terminated_at=None), PRICES, 0.98, 0.02, id="until-now"),
        pytest.param(SPOT, Prices(3.6, ((None, 1.0),)), 2.0, 1 / 180, id="spot"),
        pytest.param(SPOT, Prices(3.6, ((None, 1.0), (after(600), 3.0))), 4.0, 1 / 180, id="a-price-of-the-next-hour"),
        pytest.param(replace(SPOT, is_interrupted=True), Prices(3.6), 7.2, 0.02, id="interrupted-later"),
        pytest.param(replace(LIFE, is_spot=True, is_interrupted=True), PRICES, 0.0, 0.0, id="interrupted-in-an-hour"),
        pytest.param(replace(LIFE, is_spot=True), PRICES, 0.9, 0.02, id="ended-by-its-user-in-an-hour"),
        pytest.param(replace(LIFE, reservation=Reservation()), PRICES, 0.0, 0.0, id="reserved"),
        pytest.param(replace(LIFE, reservation=Reservation(after(820))), PRICES, 0.1, 0.0, id="no-longer-reserved"),
        pytest.param(LIFE, Prices(0.0, beside=3.6), 0.98, 0.0, id="volume-and-address-until-it-is-terminated"),
        pytest.param(replace(LIFE, terminated_at=after(5)), Prices(0.0, beside=3.6), 0.06, 0.0, id="a-minute-of-them"),
    ],
)
def test_a_bill(life: Life, prices: Prices, usd: float, pending_usd: float) -> None:
    bill = bill_of(life, prices, after(1_000))

    assert bill.usd == pytest.approx(usd)
    assert sum(part.usd_within(part.since, part.until) for part in bill.pending) == pytest.approx(pending_usd)


def test_the_price_of_a_volume() -> None:
    assert Volume(100).usd_per_hour * 730 == pytest.approx(8.0)
    assert Volume(100, 4_000, 250).usd_per_hour * 730 == pytest.approx(8.0 + 5.0 + 5.0)
