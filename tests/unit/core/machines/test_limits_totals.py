"""What decisions change the counters by together, and which limit they exceed."""

import pytest

from fakes.stored_machines import make_machine
from relaunch.core.machines.decision import MachineDecision, MachineTotals
from relaunch.core.machines.limits import (
    MachineLimits,
    TotalsChange,
    add,
    change_of,
    exceeded_limit,
    is_within,
    nodes_problem,
)

NOTHING = MachineTotals()


def decide(machine_id: str, added: tuple[int, int] = (0, 0), limits: tuple[int, int] | None = None) -> MachineDecision:
    return MachineDecision(make_machine(machine_id), MachineTotals(*added), MachineTotals(*limits) if limits else None)


class TestChangeOf:
    def test_no_decision_changes_nothing(self) -> None:
        assert change_of(()) == TotalsChange(NOTHING, NOTHING)
        assert not change_of(()).is_needed

    def test_what_decisions_add_is_added_together(self) -> None:
        change = change_of([decide("a", (1, 400)), decide("b", (-1, -300)), decide("c", (1, 7))])
        assert change == TotalsChange(MachineTotals(1, 107), NOTHING)
        assert change.is_needed

    def test_of_each_limit_the_strictest_holds_and_zero_is_none(self) -> None:
        change = change_of(
            [decide("a", limits=(9, 0)), decide("b"), decide("c", limits=(5, 800)), decide("d", limits=(0, 900))]
        )
        assert change == TotalsChange(NOTHING, MachineTotals(5, 800))
        assert change.is_needed

    def test_two_decisions_about_one_machine_are_refused(self) -> None:
        with pytest.raises(ValueError, match="more than one decision about a machine: a, a, b"):
            change_of([decide("a"), decide("b"), decide("a")])


def test_totals_are_added_part_by_part() -> None:
    assert add(MachineTotals(3, 900), MachineTotals(-1, 50)) == MachineTotals(2, 950)


@pytest.mark.parametrize(
    ("limits", "exceeded"),
    [
        ((0, 0), None),
        ((3, 900), None),
        ((2, 0), "machines"),
        ((0, 899), "usd_per_hour"),
        ((3, 899), "usd_per_hour"),
        ((2, 899), "machines"),
    ],
)
def test_the_limit_that_is_exceeded_is_named(limits: tuple[int, int], exceeded: str | None) -> None:
    totals, known = MachineTotals(3, 900), MachineTotals(*limits)
    assert is_within(totals, known) == (exceeded is None)
    if exceeded:
        assert exceeded_limit(totals, known) == exceeded


def test_a_job_of_more_nodes_than_the_stack_has_machines_never_has_them():
    limits = MachineLimits(max_machines=4)

    assert nodes_problem(1, MachineLimits(max_machines=1)) == ""
    assert nodes_problem(3, limits) == ""
    assert nodes_problem(99, MachineLimits(max_machines=0)) == ""
    assert nodes_problem(4, limits).startswith(
        "a job of 4 nodes needs as many machines at once, and the stack has at most 3"
    )
