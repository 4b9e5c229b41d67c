"""A job pays for a machine while it has it, and in the end what it cost: once, whenever it is said."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_offering
from fakes.machines import claim, fleet_request, machine, override
from relaunch.core.jobs.charges import KEPT_CHARGES
from relaunch.core.jobs.cost import CostEntry, cost_key, cost_so_far, machine_cost, running_task, summarize_job
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import CostBasis, MachineCost, OpenCharge, Reserved
from relaunch.core.lifecycle.charging import find_left
from relaunch.core.lifecycle.events import (
    CancelAsked,
    CheckpointsUnreadable,
    JobEvent,
    LaunchImpossible,
    LaunchNotGranted,
    MachineAwaited,
    MachineCharged,
    MachineLeft,
    MachineLost,
    OfferingChosen,
    SlotDenied,
)
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.charges import Charge, DayCost, first_holdings
from relaunch.core.machines.machine import Holding, Machine, MachineState
from unit.core.lifecycle.table_matrix import EVENTS, SITUATIONS

HOUR = timedelta(hours=1)
PRICE = override(usd_per_hour=1.0)


def after(job: Job, event: JobEvent, at: timedelta = timedelta(0)) -> Job:
    """Return the job after an event."""
    return decide(job, event, NOW + at, StackLimits()).job


def its_machine(job: Job, **fields: object) -> Machine:
    """Return the ready machine that a job claims, launched an hour before at $1 an hour, and $0.5 beside."""
    its = replace(claim(job.job_id), since=NOW - HOUR)
    ready = machine(
        MachineState.READY,
        request=fleet_request(PRICE),
        claims=(its,),
        holdings=first_holdings(its, NOW - HOUR),
        paid_since=NOW - HOUR,
        beside_usd_per_hour=0.5,
        on_demand={"g5.xlarge": 3.0},
    )
    return replace(ready, **fields)  # type: ignore[arg-type]


def placed(**fields: object) -> Job:
    """Return a job that is placed on its machine."""
    waits = SITUATIONS["wm"]
    return after(waits, OfferingChosen(make_offering(), None, None, machine=its_machine(waits, **fields)))


def running(job: Job) -> Job:
    """Return the job, whose task runs since now."""
    return replace(job, attempt=replace(job.current_attempt, started_at=NOW))


def test_a_job_that_is_placed_pays_from_the_launch_of_its_machine_on():
    job = placed()

    assert machine_cost(job, NOW) == MachineCost(1.5, 1.5, 3.5)
    assert cost_so_far(job, NOW + HOUR)[0] == pytest.approx(3.0)
    assert cost_so_far(summarize_job(job), NOW + HOUR) == cost_so_far(job, NOW + HOUR)
    assert machine_cost(job, NOW - HOUR).usd == 1.5


def test_what_is_paid_while_its_task_runs_is_training():
    job = running(placed())

    assert running_task(job).machine_id == "m-1"
    assert machine_cost(job, NOW + HOUR) == MachineCost(3.0, 2.0, 7.0)
    assert cost_so_far(job, NOW + HOUR)[0] == pytest.approx(3.0)
    # Who saves pays for the machine, too.
    saving = replace(job, attempt=replace(job.current_attempt, program_ended_at=NOW))
    assert cost_so_far(saving, NOW + HOUR)[0] == pytest.approx(3.0)


def test_the_saving_against_on_demand():
    assert machine_cost(placed(), NOW).saving == pytest.approx(1 - 1.5 / 3.5)
    assert machine_cost(SITUATIONS["w0"], NOW).saving is None


def test_the_charge_is_in_the_place_of_what_was_known_before_and_counts_once():
    job = placed()
    charged = after(job, MachineCharged(Charge("m-1", 2.0, 5.0)))

    assert machine_cost(charged, NOW + HOUR) == MachineCost(2.0, 2.0, 5.0)
    assert after(charged, MachineCharged(Charge("m-1", 2.0, 5.0))) == charged
    corrected = after(charged, MachineCharged(Charge("m-1", 2.5, 6.0)))
    assert machine_cost(corrected, NOW) == MachineCost(2.5, 2.5, 6.0)


@pytest.mark.parametrize("name", ["w0", "ru", "ok", "ng", "ca", "to"])
def test_a_job_takes_the_charge_of_a_machine_that_never_ran_its_task_whatever_it_does(name: str):
    before = SITUATIONS[name]
    job = after(before, MachineCharged(Charge("m-7", 2.0, 5.0)))

    assert cost_so_far(job, NOW)[0] - cost_so_far(before, NOW)[0] == pytest.approx(2.0)
    assert job.outbox == before.outbox


def test_a_machine_that_it_left_costs_no_more_until_it_is_charged():
    job = placed()
    ended = after(running(job), EVENTS["seen-exit-0"], timedelta(minutes=6))

    assert ended.charges.open_of("m-1").until == NOW + timedelta(minutes=6)
    assert cost_so_far(ended, NOW + HOUR)[0] == pytest.approx(1.5 + 0.15)
    assert machine_cost(ended, NOW + HOUR).idle_usd == pytest.approx(1.65 - ended.charges.trained_usd)
    assert ended.charges.own_tasks_usd == ended.totals.cost_usd > 0
    charged = after(ended, MachineCharged(Charge("m-1", 1.8, 5.0)))
    assert (charged.charges.open, cost_so_far(charged, NOW + HOUR)[0]) == ((), pytest.approx(1.8))


def test_the_machine_of_a_task_may_be_charged_before_its_end_is_known():
    job = running(placed())
    charged = after(job, MachineCharged(Charge("m-1", 2.0, 5.0)))

    assert cost_so_far(charged, NOW + HOUR)[0] == pytest.approx(2.0)
    ended = after(charged, EVENTS["seen-exit-0"], timedelta(minutes=6))
    assert (ended.charges.open, cost_so_far(ended, NOW + HOUR)[0]) == ((), pytest.approx(2.0))
    assert machine_cost(ended, NOW).idle_usd == 2.0 - ended.charges.trained_usd < 2.0


def test_a_machine_of_an_earlier_release_is_not_charged():
    job = running(placed(holdings=None))

    assert (job.charges.open, running_task(job).machine_id) == ((), "")
    assert cost_so_far(job, NOW + HOUR)[0] > 0


def test_only_some_machines_are_remembered_and_each_price_that_is_not_sure():
    job = SITUATIONS["w0"]
    for number in range(KEPT_CHARGES + 2):
        job = after(job, MachineCharged(Charge(f"m-{number}", 0.5)))
    assert len(job.charges.latest) == KEPT_CHARGES
    assert cost_so_far(job, NOW) == (pytest.approx(17.0), CostBasis.PRICE)

    limited = after(job, MachineCharged(Charge("m-x", 0.5, is_limit=True)))
    unknown = after(limited, MachineCharged(Charge("m-y", 0.0, is_unknown=True)))
    assert [cost_so_far(each, NOW)[1] for each in (limited, unknown)] == [CostBasis.LIMIT, CostBasis.UNKNOWN]


def test_an_open_charge_counts_until_it_is_over():
    opened = OpenCharge("m-1", NOW, 0.0, 0.0, 1.0, 2.0, 1.0)

    assert [opened.hours(NOW + each * HOUR) for each in (-1, 0, 2)] == [0.0, 0.0, 2.0]
    assert replace(opened, until=NOW + HOUR).hours(NOW + 2 * HOUR) == 1.0


DAY = NOW.date()
TYPE = make_offering().key


def costs_of(job: Job, event: JobEvent, at: timedelta = timedelta(0)) -> tuple[CostEntry, ...]:
    """Return what an event adds to the sums of costs."""
    return decide(job, event, NOW + at, StackLimits()).costs


def test_a_charge_is_added_to_the_sums_once_and_what_a_machine_costs_besides_on_its_last_day():
    job = placed()
    days = (DayCost(DAY, 1.5, 4.0, 2.0), DayCost(DAY + timedelta(days=1), 0.5, 1.0, 1.0))
    charged = MachineCharged(Charge("m-1", 2.0, 5.0, hours=3.0), days, TYPE)
    (entry,) = costs_of(job, charged)
    assert entry == CostEntry(cost_key(job, TYPE), days)

    later = after(job, charged)
    more = MachineCharged(Charge("m-1", 2.5, 6.0, is_unknown=True, hours=4.0), days, TYPE)
    (besides,) = costs_of(later, more)
    assert besides == CostEntry(entry.key, (DayCost(DAY + timedelta(days=1), 0.5, 1.0, 1.0, 1.0),))
    (known,) = costs_of(later, replace(more, charge=Charge("m-1", 2.5, 6.0, hours=4.0)))
    assert known.days[0].unpriced_hours == 0.0
    assert costs_of(job, MachineCharged(Charge("m-1", 0.0))) == ()


def test_a_task_elsewhere_is_added_to_the_sums_when_it_ends_and_one_on_a_machine_is_not():
    (entry,) = costs_of(SITUATIONS["ru"], EVENTS["seen-exit-0"], timedelta(minutes=6))
    (day,) = entry.days
    assert (entry.key.definition, day.day) == ("resnet", DAY)
    ended = after(SITUATIONS["ru"], EVENTS["seen-exit-0"], timedelta(minutes=6))
    assert day.usd == pytest.approx(ended.totals.cost_usd) != 0
    assert day.hours == pytest.approx(ended.totals.run_seconds / 3600)

    assert costs_of(running(placed()), EVENTS["seen-exit-0"], timedelta(minutes=6)) == ()
    # Its machine may have been charged before its end was known.
    charged = after(running(placed()), MachineCharged(Charge("m-1", 2.0, 5.0)))
    assert costs_of(charged, EVENTS["seen-exit-0"], timedelta(minutes=6)) == ()


def test_one_decision_of_two_has_the_costs_of_both():
    first = decide(SITUATIONS["ru"], EVENTS["seen-exit-0"], NOW + timedelta(minutes=6), StackLimits())
    days = (DayCost(DAY, 1.0, 1.0, 1.0),)
    second = decide(first.job, MachineCharged(Charge("m-9", 1.0), days, TYPE), NOW, StackLimits())
    assert first.followed_by(second).costs == (*first.costs, *second.costs)


def test_a_machine_that_is_awaited_costs_from_its_launch_on():
    waits = SITUATIONS["wm"]
    starting = its_machine(waits, state=MachineState.STARTING)

    awaited = after(waits, MachineAwaited("i-1 is starting", (starting,)))

    assert cost_so_far(awaited, NOW)[0] == pytest.approx(1.5)
    assert cost_so_far(awaited, NOW + HOUR)[0] == pytest.approx(3.0)
    # What EC2 has not launched costs nothing.
    assert after(waits, MachineAwaited("EC2 is asked", (replace(starting, paid_since=None),))).charges == waits.charges
    assert after(waits, MachineAwaited("EC2 is asked")).charges == waits.charges


@pytest.mark.parametrize(
    "failed",
    [
        LaunchNotGranted("iam:PassRole"),
        LaunchImpossible("no such family"),
        CheckpointsUnreadable("AccessDenied"),
        SlotDenied("resnet", 1),
    ],
    ids=lambda failed: type(failed).__name__,
)
def test_a_machine_has_cost_what_it_did_whose_launch_fails_before_the_job_heard_of_it(failed: JobEvent):
    waits = replace(SITUATIONS["wm"], reserved=Reserved({"stack": 4.0}, "2026-03"))

    job = after(waits, replace(failed, machines=(its_machine(waits),)))

    assert cost_so_far(job, NOW)[0] == pytest.approx(1.5)
    # What it gives up costs no more; another try is made on what it keeps.
    is_kept = bool(claimed_machines(job))
    assert cost_so_far(job, NOW + HOUR)[0] == pytest.approx(3.0 if is_kept else 1.5)
    assert job.reserved.usd == {"stack": pytest.approx(4.0 if is_kept else 1.5)}


def test_a_machine_that_never_became_ready_costs_until_it_is_charged():
    waits = SITUATIONS["wm"]
    ended = its_machine(waits, state=MachineState.ENDING)

    lost = after(waits, MachineLost("m-1", None, "it did not become ready", (ended,)))
    charged = after(lost, MachineCharged(Charge("m-1", 1.75)), HOUR)

    assert cost_so_far(lost, NOW + HOUR)[0] == pytest.approx(1.5)
    assert (cost_so_far(charged, NOW + HOUR)[0], charged.charges.open) == (1.75, ())
    # The charge may come before the job hears of the loss.
    first = after(waits, MachineCharged(Charge("m-1", 1.75)))
    gone = replace(ended, state=MachineState.GONE)
    assert after(first, MachineLost("m-1", None, "it is gone", (gone,))).charges.open == ()


def reserving(job: Job) -> Job:
    return replace(job, reserved=Reserved({"stack": 4.0}, "2026-03"))


def cancelled(job: Job) -> Job:
    """Return the job, cancelled a quarter of an hour later."""
    return after(job, CancelAsked("cancelled"), HOUR / 4)


def test_what_a_machine_has_cost_of_whose_launch_a_cancelled_job_had_not_heard_stays_reserved_until_it_is_charged():
    waits = reserving(SITUATIONS["wm"])
    job = cancelled(waits)
    left = find_left(job, its_machine(waits), NOW + HOUR / 4)
    assert (job.state.is_final, cost_so_far(job, NOW)[0], left) == (True, 0.0, MachineLeft(its_machine(waits)))

    noted = after(job, left, HOUR / 4)

    assert cost_so_far(noted, NOW + 9 * HOUR)[0] == pytest.approx(1.875)
    assert noted.reserved.usd == {"stack": pytest.approx(1.875)}
    charged = after(noted, MachineCharged(Charge("m-1", 2.0)), HOUR)
    assert (cost_so_far(charged, NOW + HOUR)[0], charged.reserved.usd) == (2.0, {"stack": 2.0})
    assert find_left(charged, its_machine(waits), NOW + HOUR) is None
    late = after(charged, left, HOUR)
    assert (late.charges, late.reserved) == (charged.charges, charged.reserved), "it comes after the charge"


def test_a_share_that_grew_when_others_left_is_reserved_once_the_job_leaves_too():
    waits = reserving(SITUATIONS["wm"])
    halves = (Holding(NOW - HOUR, {waits.job_id: 0.5, "other": 0.5}), Holding(NOW, {waits.job_id: 1.0}))
    shared = its_machine(waits, holdings=halves[:1])
    alone = its_machine(waits, holdings=halves)
    there = after(waits, OfferingChosen(make_offering(), None, None, machine=shared))
    job = after(running(there), EVENTS["seen-exit-0"], HOUR)
    known = job.charges.open_of("m-1")

    left = find_left(job, alone, NOW + HOUR)
    noted = after(job, left, HOUR)

    # Half of $1.5 for two hours, and the other half too in the second one.
    assert (cost_so_far(job, NOW + HOUR)[0], cost_so_far(noted, NOW + 9 * HOUR)[0]) == (1.5, pytest.approx(2.25))
    assert noted.reserved.usd == {"stack": pytest.approx(2.25)}
    now_known = noted.charges.open_of("m-1")
    assert (now_known.until, now_known.usage_usd_per_hour) == (known.until, known.usage_usd_per_hour)
    assert find_left(noted, alone, NOW + HOUR) is None, "it knows"


def test_nothing_is_noted_of_a_machine_that_nobody_reserves_or_pays():
    waits = reserving(SITUATIONS["wm"])

    assert find_left(SITUATIONS["wm"], its_machine(waits), NOW) is None
    assert find_left(waits, its_machine(waits, paid_since=None), NOW) is None
    others = (Holding(NOW - HOUR, {"other": 1.0}),)
    assert find_left(waits, its_machine(waits, holdings=others), NOW) is None
