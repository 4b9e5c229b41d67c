"""The limits of machines of our own."""

from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.limits import MachineLimits


def test_replacements_may_use_what_is_reserved_for_them():
    limits = MachineLimits(max_machines=25, max_usd_per_hour=40.0, handover_reserve=0.1)

    assert limits.totals(is_handover=False) == MachineTotals(22, 36_000_000)
    assert limits.totals(is_handover=True) == MachineTotals(25, 40_000_000)


def test_a_single_machine_is_not_reserved():
    assert MachineLimits(max_machines=1).totals(is_handover=False).machines == 1


def test_none_stays_none():
    assert MachineLimits(max_machines=0).totals(is_handover=False) == MachineTotals(0, 0)
