from types import SimpleNamespace
from typing import Any

import pytest

from relaunch_local.ecs import Purchase
from relaunch_local.simulation.checks.reservations import option_of


@pytest.mark.parametrize(
    ("purchase", "reservation_id", "option"),
    [
        (Purchase.SPOT, "", "spot"),
        (Purchase.ON_DEMAND, "", "on-demand"),
        (Purchase.ON_DEMAND, "cr-0a11c0a11c0a11c00", "reserved"),
    ],
)
def test_what_is_reserved_is_no_on_demand_instance_for_the_application(
    purchase: Purchase, reservation_id: str, option: str
) -> None:
    host: Any = SimpleNamespace(purchase=purchase, reservation_id=reservation_id)

    assert option_of(host) == option
