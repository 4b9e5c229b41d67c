"""The limits of machines of our own."""

from datetime import timedelta

import pytest

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


@pytest.mark.parametrize(
    ("instance_type", "minutes"),
    [
        *[(name, 5) for name in ("g5.xlarge", "g6.48xlarge", "p5.4xlarge", "p3.8xlarge", "trn1.2xlarge", "")],
        *[(name, 15) for name in ("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5en.48xlarge", "p6-b200.48xlarge")],
        *[(name, 15) for name in ("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge")],
        *[(name, 30) for name in ("g4dn.metal", "g5g.metal", "c7i.metal-24xl")],
    ],
)
def test_large_machines_and_bare_metal_have_more_time_to_register(instance_type: str, minutes: int):
    assert MachineLimits().registration_deadline_of(instance_type) == timedelta(minutes=minutes)


def test_the_stack_may_give_every_machine_more_time():
    patient = MachineLimits(registration_deadline=timedelta(minutes=20))

    assert patient.registration_deadline_of("g5.xlarge") == timedelta(minutes=20)
    assert patient.registration_deadline_of("p5.48xlarge") == timedelta(minutes=20)
    assert patient.registration_deadline_of("g4dn.metal") == timedelta(minutes=30)
