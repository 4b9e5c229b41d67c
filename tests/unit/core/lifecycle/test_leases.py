"""A job reserves an hour with its launch, renews that while it runs, and gives back what it did not need."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_offering
from fakes.machines import claim, machine
from relaunch.core.jobs.attempt import IntentKind, PlacementState
from relaunch.core.jobs.budgets import Budget, BudgetChange
from relaunch.core.jobs.effects import ReleaseMachine
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, OpenCharge, Reserved, WaitReason
from relaunch.core.lifecycle.decision import CLOSE_LOOK, HEARTBEAT, Decision
from relaunch.core.lifecycle.events import BudgetDenied, BudgetsRead, JobEvent, MachineCharged, OfferingChosen
from relaunch.core.lifecycle.leases import is_lease_due, price_of
from relaunch.core.lifecycle.moves import next_look
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.charges import Charge, first_holdings
from relaunch.core.machines.machine import Holding, Resources
from unit.core.lifecycle.table_matrix import EVENTS, SITUATIONS, seen_stopped

HOUR = timedelta(hours=1)
MONTH = "2026-03"
STACK = Budget("stack", 100.0)
ROOM = (100.0, None)


def decided(job: Job, event: JobEvent, after: timedelta = timedelta(0)) -> Decision:
    return decide(job, event, NOW + after, StackLimits())


def test_the_claim_of_a_machine_reserves_an_hour_of_it() -> None:
    claimed = replace(EVENTS["machine-claimed"], budgets=(STACK,))  # type: ignore[type-var]

    decision = decided(SITUATIONS["w0"], claimed)

    price = decision.machines[0].machine.usd_per_hour
    assert price > 0
    assert decision.budgets == (BudgetChange("stack", MONTH, price, ROOM),)
    assert decision.job.reserved == Reserved({"stack": price}, MONTH)
    assert decided(SITUATIONS["w0"], replace(claimed, budgets=())).budgets == ()


def test_a_machine_is_paid_by_the_share_that_is_claimed() -> None:
    half = Resources(gpus=1)
    claims = (claim("resnet-1", half), claim("resnet-2", half))
    shared = machine(claims=claims, beside_usd_per_hour=0.1)
    launched = replace(shared, holdings=first_holdings(claims[0], NOW), paid_since=NOW)

    whole = shared.usd_per_hour + 0.1
    assert price_of(shared, "resnet-1") == pytest.approx(whole / 2)
    assert price_of(launched, "resnet-1") == pytest.approx(whole)


def test_the_placement_by_a_capacity_provider_reserves_an_hour_of_its_price() -> None:
    chosen = OfferingChosen(make_offering(), None, None, budgets=(STACK,))

    decision = decided(SITUATIONS["w0"], chosen)

    assert decision.budgets == (BudgetChange("stack", MONTH, 0.4, ROOM),)


def test_what_is_out_of_time_reserves_nothing() -> None:
    chosen = OfferingChosen(make_offering(), None, None, budgets=(STACK,))

    late = decided(SITUATIONS["w0"], chosen, after=timedelta(hours=37))

    assert (late.job.state, late.budgets) == (JobState.TIMED_OUT, ())


def running(usd: float = 0.4) -> Job:
    return replace(SITUATIONS["ru"], reserved=Reserved({"stack": usd}, MONTH))


def test_a_job_that_ends_gives_back_what_it_did_not_need() -> None:
    ended = decided(running(), seen_stopped(0, NOW + HOUR / 2), after=HOUR / 2)

    assert ended.job.state is JobState.SUCCEEDED
    (change,) = ended.budgets
    assert change == BudgetChange("stack", MONTH, pytest.approx(ended.job.totals.cost_usd - 0.4))
    assert ended.job.reserved.usd == {"stack": ended.job.totals.cost_usd}
    # What its machine costs in the end is added, whatever room there is.
    charged = decided(ended.job, MachineCharged(Charge("m-1", 0.25)), after=HOUR)
    assert charged.budgets == (BudgetChange("stack", MONTH, pytest.approx(0.25)),)


def test_a_machine_that_costs_a_running_job_more_than_it_has_reserved_is_added_at_once() -> None:
    charged = decided(running(), MachineCharged(Charge("m-1", 5.0)), after=HOUR / 2)

    (change,) = charged.budgets
    assert change == BudgetChange("stack", MONTH, pytest.approx(5.0 + 0.2 - 0.4))
    assert is_lease_due(charged.job, (STACK,), NOW + HOUR / 2)
    assert decided(running(), MachineCharged(Charge("m-1", 0.1)), after=HOUR / 2).budgets == (), "that is reserved"


@pytest.mark.parametrize(("minutes", "is_due"), [(29, False), (31, True)])
def test_a_lease_is_due_when_half_of_it_is_left(minutes: int, is_due: bool) -> None:
    now = NOW + timedelta(minutes=minutes)

    assert is_lease_due(running(), (STACK,), now) is is_due
    assert not is_lease_due(replace(running(), cancel_requested="enough"), (STACK,), now)
    assert is_lease_due(replace(running(), state=JobState.STOPPING), (STACK,), now) is is_due, "it pays while it saves"


def test_a_lease_is_renewed_for_an_hour_from_now() -> None:
    renewed = decided(running(), BudgetsRead((STACK,)), after=HOUR / 2)

    assert renewed.job.state is JobState.RUNNING
    assert renewed.budgets == (BudgetChange("stack", MONTH, pytest.approx(0.2), ROOM),)
    assert renewed.job.wake_at == running().wake_at


@pytest.mark.parametrize(("minutes", "looks_after"), [(44, HEARTBEAT), (46, CLOSE_LOOK), (70, CLOSE_LOOK)])
def test_a_lease_that_is_short_is_looked_at_each_minute(minutes: int, looks_after: timedelta) -> None:
    now = NOW + timedelta(minutes=minutes)

    assert next_look(running(), now) == now + looks_after
    assert next_look(replace(running(), reserved=Reserved()), now) == now + HEARTBEAT


def test_a_lease_is_renewed_by_the_share_of_now() -> None:
    alone = replace(claim("resnet-1"), since=NOW - HOUR)
    holdings = (Holding(NOW - HOUR, {"resnet-1": 0.5, "bert-1": 0.5}), Holding(NOW, {"resnet-1": 1.0}))
    held = machine(claims=(alone,), holdings=holdings, paid_since=NOW - HOUR, usd_per_hour=4.0)
    waits = replace(SITUATIONS["wm"], job_id="resnet-1", reserved=Reserved({"stack": 2.0}, MONTH))
    opened = OpenCharge("m-1", NOW - HOUR, 0.0, 0.0, 2.0, 2.0, 2.0)
    job = replace(waits, charges=replace(waits.charges, open=(opened,)))

    renewed = decided(job, BudgetsRead((STACK,), (held,)), after=HOUR / 2)

    # It has cost 2 USD with the other one and 2 alone, and an hour costs 4.
    assert renewed.job.reserved.usd == {"stack": pytest.approx(8.0)}
    assert decided(job, BudgetsRead((STACK,)), after=HOUR / 2).job.reserved.usd == {"stack": pytest.approx(5.0)}


def test_without_room_the_task_runs_on_until_it_needs_the_rest_to_save() -> None:
    full = BudgetsRead((replace(STACK, monthly_usd=0.4, reserved_in={MONTH: 0.4}),))

    early = decided(running(), full, after=timedelta(minutes=44))
    late = decided(running(), full, after=timedelta(minutes=46))

    assert (early.job.state, early.budgets, early.job.attempt) == (JobState.RUNNING, (), running().attempt)
    assert (late.job.state, late.budgets) == (JobState.STOPPING, ())
    assert late.job.current_attempt.intent is not None
    assert late.job.current_attempt.intent.kind is IntentKind.BUDGET
    assert "relaunch budgets set stack" in late.job.reason
    assert late.job.pending
    cancelled = replace(running(), cancel_requested="enough")
    assert decided(cancelled, full, after=HOUR).is_ignored


def test_after_that_it_is_launched_again_which_waits_for_the_budget() -> None:
    full = BudgetsRead((replace(STACK, monthly_usd=0.0),))
    stopping = decided(running(), full, after=HOUR).job

    stopped = decided(
        stopping, seen_stopped(1, NOW + HOUR, stop_code="UserInitiated", stopped_reason="no room"), after=HOUR
    )
    waiting = decided(stopped.job, BudgetDenied("no room"), after=HOUR)

    assert (stopped.job.state, stopped.job.totals.failures, stopped.job.totals.interruptions) == (
        JobState.WAITING,
        0,
        0,
    )
    assert stopped.job.current_attempt.placement.state is PlacementState.CLOSED
    assert (waiting.job.waiting.reason.value, waiting.job.has_slot, waiting.release_slot) == ("budget", False, True)  # type: ignore[union-attr]
    assert waiting.job.wake_at == NOW + HOUR + timedelta(minutes=10)


def paying(situation: str) -> Job:
    """Return a job that pays 0.4 USD an hour for its machine, and has reserved an hour of that."""
    charge = OpenCharge("m-1", NOW, 0.0, 0.0, 0.4, 0.4, 0.4)
    job = SITUATIONS[situation]
    attempt = job.attempt
    on_it = None if attempt is None else replace(attempt, placement=replace(attempt.placement, machine_id="m-1"))
    charges = replace(job.charges, open=(charge,))
    return replace(job, reserved=Reserved({"stack": 0.4}, MONTH), charges=charges, attempt=on_it)


@pytest.mark.parametrize("situation", ["wm", "pl", "sn"])
def test_a_job_that_waits_for_its_machine_starts_or_stops_renews_its_lease(situation: str) -> None:
    job = paying(situation)

    assert not is_lease_due(job, (STACK,), NOW + timedelta(minutes=29))
    assert is_lease_due(job, (STACK,), NOW + timedelta(minutes=31))
    renewed = decided(job, BudgetsRead((STACK,)), after=HOUR / 2)
    assert renewed.job.state is job.state
    assert renewed.job.reserved.usd["stack"] > 0.4


def test_without_room_a_start_is_stopped_and_what_saves_is_left_alone() -> None:
    full = BudgetsRead((replace(STACK, monthly_usd=0.4, reserved_in={MONTH: 0.4}),))

    started, saving = (decided(paying(each), full, after=timedelta(minutes=50)) for each in ("pl", "sn"))

    assert started.job.state is JobState.STOPPING
    assert started.job.current_attempt.intent is not None
    assert started.job.current_attempt.intent.kind is IntentKind.BUDGET
    assert (saving.job.state, saving.budgets, saving.job.current_attempt.intent) == (JobState.STOPPING, (), None)
    # A launch that is not answered yet has nothing to stop.
    assert decided(paying("fz"), full, after=timedelta(minutes=50)).is_ignored


def test_what_stops_for_longer_than_its_lease_is_counted_beyond_the_limit() -> None:
    full = BudgetsRead((replace(STACK, monthly_usd=0.4, reserved_in={MONTH: 0.4}),))

    early = decided(paying("sn"), full, after=timedelta(minutes=55))
    late = decided(paying("sn"), full, after=timedelta(minutes=56))

    assert early.budgets == ()
    assert late.job.state is JobState.STOPPING
    assert late.budgets == (BudgetChange("stack", MONTH, pytest.approx(0.4 * 11 / 60)),)
    assert late.job.reserved.usd == {"stack": pytest.approx(0.4 * 71 / 60)}


def test_without_room_a_machine_that_is_not_ready_is_given_back() -> None:
    full = BudgetsRead((replace(STACK, monthly_usd=0.4, reserved_in={MONTH: 0.4}),))

    early = decided(paying("wm"), full, after=timedelta(minutes=44)).job
    late = decided(paying("wm"), full, after=timedelta(minutes=50))

    assert early.machine_id == "m-1"
    assert (late.job.state, late.job.machine_id, late.release_slot) == (JobState.WAITING, "", True)
    assert late.job.waiting is not None
    assert late.job.waiting.reason is WaitReason.BUDGET
    assert any(isinstance(each, ReleaseMachine) for each in late.job.pending)
    # What it has cost stays reserved until it is charged.
    assert late.job.reserved.usd["stack"] == pytest.approx(0.4 * 50 / 60)
