import random
from dataclasses import replace

import pytest

from policy.comparison import compare
from policy.figures import Cell
from policy.replay import Activity, Job, Knowledge, Run, start_ticks, ticks_of
from policy.series import Series
from relaunch.adapters.market_thresholds import FILE, load_thresholds
from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.published import greedy, on_demand_first, uniform_progress
from relaunch.core.market.situation import Action, Choice, Place, Rule

TICK = 1 / 6
JOB = Job(work=1.0, time=2.0, overhead=0.0, price_ratio=2.0)
POLICIES = [greedy, uniform_progress, cheapest(load_thresholds())]


def series(text: str, name: str = "a") -> Series:
    return Series(name, TICK, tuple(each == "1" for each in text))


def run(pattern: str, policy, knowledge: Knowledge = Knowledge.TRIES, job: Job = JOB, **changes):
    return Run([series(pattern)], 0, job, policy, knowledge, **changes).to_end()


@pytest.mark.parametrize("knowledge", Knowledge)
def test_spot_that_is_always_there_costs_its_price(knowledge):
    outcome = run("1" * 20, greedy, knowledge)

    assert (outcome.cost, outcome.late, outcome.starts) == (pytest.approx(0.5), 0.0, 1)


def test_a_gang_expects_to_be_lost_more_often_than_one_machine():
    seen = []

    def watch(situation):
        seen.extend(situation.pools)
        return greedy(situation)

    for nodes in (1, 4):
        run("1" * 20, watch, job=replace(JOB, nodes=nodes))

    one, four = seen
    assert (one.spell_ends, four.name) == (1.0, "a")
    assert four.spell_ends > 1.0
    assert four.outage_ends == one.outage_ends


@pytest.mark.parametrize("knowledge", Knowledge)
def test_without_spot_a_job_waits_until_its_safety_net_and_ends_in_time(knowledge):
    outcome = run("0" * 30, greedy, knowledge)

    # Idle until less than an hour of work fits: one tick more would be too late.
    assert (outcome.cost, outcome.late, outcome.starts) == (pytest.approx(1.0), 0.0, 1)


def test_an_interruption_is_seen_at_the_tick_at_which_the_series_turns_0():
    outcome = run("111000111111111111", greedy)

    assert outcome.starts == 2
    assert outcome.cost == pytest.approx(0.5)
    assert [each.tick for each in outcome.decided if each.choice.action is Action.TRY] == [0, 4, 5, 6]


def test_a_start_costs_its_overhead():
    assert run("1" * 40, greedy, job=Job(1.0, 3.0, 0.2, 2.0)).cost == pytest.approx(8 * TICK / 2)


def test_the_course_of_a_run_has_what_the_job_does_in_each_tick():
    job = Job(1.0, 1.95, 0.2, 2.0)
    replayed = Run([series("011101" + "0" * 20)], 0, job, greedy, Knowledge.TRIES)
    replayed.to_end()

    # A start of twelve minutes takes one tick and a part of the next.
    spot = [Activity.WAITING, Activity.STARTING, Activity.SPOT, Activity.SPOT]
    on_demand = [Activity.WAITING, *[Activity.STARTING] * 2, *[Activity.ON_DEMAND] * 5]
    assert [each.activity for each in replayed.course] == spot + on_demand
    assert [round(60 * each.done) for each in replayed.course] == [0, 0, 8, 18, 18, 18, 18, 26, 36, 46, 56, 66]


def leave_on_demand(situation):
    """Take on-demand first, and leave it as soon as spot is granted."""
    if situation.place is Place.IDLE:
        return Choice(Action.ON_DEMAND, Rule.BEHIND)
    pools = situation.pools_to_try
    return Choice(Action.TRY, Rule.COMES_BACK, pools[0].name) if pools else Choice(Action.STAY, Rule.STAYS_ON_DEMAND)


@pytest.mark.parametrize(
    ("overlap", "cost", "done"),
    [(0.0, 3 + 3 / 2, [0, 8, 18, 18, 26, 36]), (0.1, 3.6 + 3 / 2, [0, 8, 18, 24, 32, 42])],
    ids=["none", "half"],
)
def test_who_leaves_on_demand_works_on_there_for_the_overlap(overlap, cost, done):
    job = Job(done[-1] / 60, 3.0, 0.2, 2.0, overlap=overlap)
    replayed = Run([series("000111" + "0" * 20)], 0, job, leave_on_demand, Knowledge.TRIES)

    outcome = replayed.to_end()

    assert [round(60 * each.done) for each in replayed.course] == done
    assert outcome.cost == pytest.approx(cost * TICK)


def test_a_spell_that_ends_within_the_overlap_costs_its_machine_and_nothing_else():
    job = Job(48 / 60, 3.0, 0.2, 2.0, overlap=0.2)
    replayed = Run([series("00010" + "0" * 20)], 0, job, leave_on_demand, Knowledge.TRIES)

    outcome = replayed.to_end()

    assert [each.activity for each in replayed.course] == [Activity.STARTING, *[Activity.ON_DEMAND] * 5]
    assert [round(60 * each.done) for each in replayed.course] == [0, 8, 18, 28, 38, 48]
    assert (outcome.cost, outcome.starts) == (pytest.approx(6.5 * TICK), 2)


def test_on_demand_starts_may_fail():
    outcome = run("0" * 60, on_demand_first, job=Job(1.0, 2.0, 0.0, 2.0, failing=0.5), chance=random.Random(3))  # noqa: S311

    assert sum(each.choice.action is Action.ON_DEMAND for each in outcome.decided) > 1
    assert outcome.starts == 1


def test_a_job_that_gets_no_machine_is_late_forever():
    assert run("0" * 20, on_demand_first, job=Job(failing=1.0)).late == float("inf")


def test_starts_are_spread_over_the_series_and_leave_the_whole_time():
    assert start_ticks(series("1" * 25), JOB, 3) == [0, 6, 12]
    assert start_ticks(series("1" * 10), JOB, 3) == []
    assert ticks_of(Job(time=60.0), series("1")) == 360


@pytest.mark.parametrize("knowledge", Knowledge)
@pytest.mark.parametrize("policy", POLICIES, ids=["greedy", "uniform-progress", "cheapest"])
@pytest.mark.parametrize("pools", [1, 2])
def test_nothing_is_known_of_the_future(policy, knowledge, pools):
    generator = random.Random(7)  # noqa: S311
    job, known = Job(work=12.0, time=16.0), 50

    def drawn(length: int) -> list[str]:
        up, text = True, []
        for _ in range(length):
            up = up if generator.random() > 0.2 else not up
            text.append("01"[up])
        return text

    pasts = [drawn(known) for _ in range(pools)]

    def decided_before():
        patterns = ["".join(past + drawn(150)) for past in pasts]
        outcome = Run(
            [series(each, str(index)) for index, each in enumerate(patterns)], 0, job, policy, knowledge
        ).to_end()
        return [each for each in outcome.decided if each.tick < known]

    first = decided_before()
    assert len(first) > 5
    assert all(decided_before() == first for _ in range(5))


@pytest.mark.parametrize("gap_seconds", [600, 195, 34])
@pytest.mark.parametrize("overlap", [0.0, 0.15, 0.2])
def test_every_policy_runs_from_every_start_and_is_compared_with_the_optimum(overlap, gap_seconds):
    pattern, gap_hours = series("1101001110" * 30).available, gap_seconds / 3600
    pools = [Series(name, gap_hours, pattern) for name in "ab"]

    job = Job(work=36 * gap_hours, time=48 * gap_hours, overhead=1.2 * gap_hours, overlap=6 * overlap * gap_hours)
    samples = compare([[each] for each in pools], FILE, 2, Cell(job, Knowledge.TRIES))

    assert len(samples) == 4
    assert set(samples[0].outcomes) == {"on-demand", "greedy", "uniform-progress", "cheapest", "retry-3"}
    assert all(outcome.cost >= sample.optimum - 1e-5 for sample in samples for outcome in sample.outcomes.values())
    assert all(outcome.late == 0 for sample in samples for outcome in sample.outcomes.values())
