"""The work of a job is reckoned by the on-demand machine that it would take; what may be slower is left out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_job, make_offering_key, make_placement, make_running_attempt
from relaunch.core.definitions.accelerator import Accelerators, MeasuredOn
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import Measured
from relaunch.core.jobs.progress import Progress, SavedCheckpoint
from relaunch.core.lifecycle.market_choice import MarketChoice, choose, keeps_limit, least_late, market_wait, narrow
from relaunch.core.lifecycle.moves import resumable_progress
from relaunch.core.lifecycle.paces import (
    at_pace,
    find_paces,
    is_promised,
    on_demand_paces,
    pools_at_pace,
    progress_at_pace,
    promised_pace,
    running_pace,
)
from relaunch.core.lifecycle.spot_pools import find_pools
from relaunch.core.market.published import uniform_progress
from relaunch.core.market.situation import Action, Choice, Policy, Rule
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.selection import Selection
from relaunch.core.selection.speeds import LearnedRate
from unit.core.selection.offered import A10G, ON_DEMAND, ONE_GPU, PEAKS, SPOT, T4, offered, selected

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
TEN_HOURS = replace(ONE_GPU, estimated_duration=10 * HOUR, estimated_on=MeasuredOn("A10G"))
BARE = replace(TEN_HOURS, estimated_on=None)
A10G_SPOT = offered(A10G, SPOT)
A10G_ON_DEMAND = offered(A10G)
T4_SPOT = offered(T4, SPOT, price_usd_per_hour=0.16)
T4_ON_DEMAND = offered(T4, price_usd_per_hour=0.53)
L4 = replace(A10G, name="g6.xlarge", accelerator_model="L4")
UNKNOWN = offered(replace(A10G, name="x1.xlarge", accelerator_model="X1"))
SLOW = 8.1 / 70
EVERYTHING = (A10G_SPOT, A10G_ON_DEMAND, T4_SPOT, T4_ON_DEMAND, UNKNOWN)


def of(*offerings, definition=TEN_HOURS, without=()) -> Selection:
    refused = [make_capacity_failure(offering=each.key, capacity_provider=each.capacity_provider) for each in without]
    return selected(definition, *offerings, peaks=PEAKS, revision=None, memory={each.key: each for each in refused})


CHEAP_T4 = offered(T4, SPOT, price_usd_per_hour=0.03)
FAST_ON_DEMAND = offered(replace(A10G, name="p5.4xlarge", accelerator_model="H100"), price_usd_per_hour=5.0)
UNSOLD = offered(
    replace(A10G, name="p5e.4xlarge", accelerator_model="H100"), price_usd_per_hour=None, on_demand_usd_per_hour=None
)
FASTER = pytest.approx(67 / 35)
WITHIN_20_HOURS = replace(TEN_HOURS, deadline=20 * HOUR)
AT_ONCE = replace(TEN_HOURS, deadline=9 * HOUR)
NEVER = replace(TEN_HOURS, deadline=HOUR)


def steps(definition: JobDefinition) -> JobDefinition:
    return replace(definition, total_steps=1000)


@pytest.mark.parametrize(
    ("definition", "selection", "paces"),
    [
        pytest.param(WITHIN_20_HOURS, of(*EVERYTHING), [A10G_ON_DEMAND], id="the best on-demand"),
        pytest.param(WITHIN_20_HOURS, of(*EVERYTHING, CHEAP_T4), [A10G_ON_DEMAND], id="a slower one is best"),
        pytest.param(
            steps(WITHIN_20_HOURS), of(*EVERYTHING, CHEAP_T4), [CHEAP_T4, A10G_ON_DEMAND], id="steps tell its share"
        ),
        pytest.param(
            steps(WITHIN_20_HOURS),
            of(*EVERYTHING, without=[A10G_ON_DEMAND]),
            [A10G_ON_DEMAND],
            id="that is refused now",
        ),
        pytest.param(WITHIN_20_HOURS, of(T4_SPOT, T4_ON_DEMAND), [T4_ON_DEMAND], id="that nobody measured"),
        pytest.param(
            WITHIN_20_HOURS,
            of(A10G_ON_DEMAND, T4_SPOT, T4_ON_DEMAND, without=[A10G_ON_DEMAND]),
            [T4_SPOT, A10G_ON_DEMAND],
            id="nothing as fast",
        ),
        pytest.param(steps(WITHIN_20_HOURS), of(A10G_SPOT, T4_SPOT), [A10G_SPOT], id="spot alone"),
        pytest.param(WITHIN_20_HOURS, of(*EVERYTHING, FAST_ON_DEMAND), [A10G_ON_DEMAND], id="the cheapest in time"),
        pytest.param(AT_ONCE, of(*EVERYTHING, FAST_ON_DEMAND), [FAST_ON_DEMAND], id="a faster one is in time"),
        pytest.param(NEVER, of(*EVERYTHING, FAST_ON_DEMAND), [A10G_ON_DEMAND], id="none is in time"),
        pytest.param(
            steps(AT_ONCE), of(*EVERYTHING, FAST_ON_DEMAND), [A10G_ON_DEMAND, FAST_ON_DEMAND], id="whatever is left"
        ),
        pytest.param(
            steps(replace(TEN_HOURS, patience=HOUR)),
            of(*EVERYTHING, FAST_ON_DEMAND),
            [A10G_ON_DEMAND],
            id="patience takes the cheapest",
        ),
        pytest.param(
            steps(AT_ONCE),
            of(A10G_ON_DEMAND, offered(A10G, zone="b"), T4_ON_DEMAND, UNSOLD),
            [A10G_ON_DEMAND],
            id="none is dearer and as slow, or of no price",
        ),
    ],
)
def test_the_pace_is_that_of_the_cheapest_on_demand_machine_in_time(definition, selection, paces):
    assert [each and each.offering for each in find_paces(definition, selection)] == paces


def test_a_deadline_is_promised_if_any_on_demand_machine_makes_it():
    paces = on_demand_paces(of(*EVERYTHING, FAST_ON_DEMAND))
    promised = [promised_pace(replace(AT_ONCE, deadline=hours * HOUR), paces) for hours in (5, 6, 11, 12)]

    assert [each and each.speed for each in paces] == [1.0, FASTER]
    assert [each and each.speed for each in promised] == [1.0, FASTER, FASTER, 1.0]
    assert [is_promised(at_pace(replace(AT_ONCE, deadline=hours * HOUR), paces[-1])) for hours in (5, 6)] == [
        False,
        True,
    ]
    assert is_promised(replace(AT_ONCE, estimated_duration=None)), "nothing is said before the first checkpoint"


@pytest.mark.parametrize(
    "selection",
    [of(*EVERYTHING, definition=BARE), of(*EVERYTHING, definition=replace(BARE, estimated_duration=None)), of(UNKNOWN)],
    ids=["taken to be equally fast", "of unknown length", "of unknown speed"],
)
def test_without_known_speeds_there_is_no_pace(selection):
    pools = find_pools(selection, (), NOW)

    assert find_paces(steps(WITHIN_20_HOURS), selection) == (None,)
    assert running_pace(running_on("g5.xlarge"), selection) is None
    assert pools_at_pace(pools, selection, None) == pools
    assert at_pace(TEN_HOURS, None) == TEN_HOURS


def running_on(instance_type: str, **fields) -> Job:
    key = make_offering_key(instance_type=instance_type, purchase=ON_DEMAND)
    return make_job(
        definition=fields.pop("definition", TEN_HOURS),
        attempt=make_running_attempt(fields.pop("number", 1), placement=make_placement(offering=key)),
        **fields,
    )


def test_a_pool_costs_what_the_work_of_an_hour_costs_and_slower_ones_are_left_out():
    selection = of(A10G_SPOT, T4_SPOT, T4_ON_DEMAND, A10G_ON_DEMAND, offered(L4, SPOT))
    pools = find_pools(selection, (), NOW)
    slowest = running_pace(running_on("g4dn.xlarge"), selection)

    by_best = pools_at_pace(pools, selection, find_paces(TEN_HOURS, selection)[-1])
    by_slowest = {each.name: each.usd_per_hour for each in pools_at_pace(pools, selection, slowest)}

    assert [(each.name, each.usd_per_hour) for each in by_best] == [("g5.xlarge spot", 0.40)]
    assert by_slowest == {
        "g4dn.xlarge spot": pytest.approx(0.16),
        "g5.xlarge spot": pytest.approx(0.40 * SLOW),
        "g6.xlarge spot": pytest.approx(0.40 * SLOW / 0.5),
    }


def test_an_estimate_is_as_much_longer_as_the_pace_is_slower():
    pace = find_paces(TEN_HOURS, of(T4_ON_DEMAND))[-1]

    assert at_pace(TEN_HOURS, pace).estimated_duration / HOUR == pytest.approx(10 / SLOW)


def test_without_an_estimate_the_duration_is_what_jobs_have_shown():
    definition = replace(TEN_HOURS, estimated_duration=None, estimated_on=None, total_steps=72_000)
    rates = {Accelerators("T4"): LearnedRate(slow=1.0, middle=2.0, fast=2.5, jobs=3)}
    selection = selected(definition, T4_ON_DEMAND, A10G_ON_DEMAND, peaks=PEAKS, rates=rates, revision=None)

    (pace,) = find_paces(definition, selection)

    assert (pace.offering, at_pace(definition, pace).estimated_duration) == (T4_ON_DEMAND, 20 * HOUR)


WITH_STEPS = replace(TEN_HOURS, total_steps=1000)
HALF_DONE = SavedCheckpoint("s3://a/step-500/", 500, 1, NOW + 2 * HOUR)
SECOND = replace(HALF_DONE, attempt=2)
LATE = replace(SECOND, step=900, saved_at=NOW + 27 * HOUR)
FAST = of(A10G_ON_DEMAND, T4_SPOT)
SLOWEST = of(T4_ON_DEMAND, A10G_SPOT, T4_SPOT)
AFTER = NOW + 2 * HOUR


@pytest.mark.parametrize(
    ("job", "newest", "selection", "left"),
    [
        pytest.param(make_job(definition=TEN_HOURS), None, SLOWEST, 10 / SLOW, id="before its first launch"),
        pytest.param(running_on("g5.xlarge"), HALF_DONE, FAST, 8.0, id="on the same machine"),
        pytest.param(running_on("g4dn.xlarge"), HALF_DONE, FAST, 10 - 2 * SLOW, id="an hour on a slower one is less"),
        pytest.param(running_on("g5.xlarge"), HALF_DONE, SLOWEST, 10 / SLOW - 2, id="an hour on a faster one is one"),
        pytest.param(running_on("x9.xlarge"), HALF_DONE, FAST, 8.0, id="on a machine that is not offered any more"),
        pytest.param(running_on("g5.xlarge", definition=WITH_STEPS), HALF_DONE, FAST, 2.0, id="steps measured here"),
        pytest.param(
            running_on("g5.xlarge", definition=WITH_STEPS), HALF_DONE, SLOWEST, 5 / SLOW, id="steps measured elsewhere"
        ),
        pytest.param(
            running_on("x9.xlarge", definition=WITH_STEPS), HALF_DONE, FAST, 5.0, id="steps on a machine that is gone"
        ),
        pytest.param(
            running_on("g5.xlarge", definition=WITH_STEPS, number=2), SECOND, FAST, 5.0, id="attempts on other machines"
        ),
        pytest.param(
            running_on("g5.xlarge", definition=WITH_STEPS, number=2), LATE, FAST, 3.0, id="slower than estimated"
        ),
    ],
)
def test_what_is_left_is_reckoned_at_the_pace(job, newest, selection, left):
    pace = find_paces(TEN_HOURS, selection)[-1]
    progress = progress_at_pace(job, newest, selection, pace, newest.saved_at if newest else AFTER)

    assert progress is not None
    assert progress.left / HOUR == pytest.approx(left)


def test_a_move_is_reckoned_by_the_steps_that_are_left_where_attempts_were_on_other_machines():
    job = running_on("g5.xlarge", definition=WITH_STEPS, number=2)

    progress = resumable_progress(job, SECOND, FAST, running_pace(job, FAST))

    assert progress is not None
    assert progress.left == 5 * HOUR, "not as long as the step that the newest attempt took last"


def test_without_a_pace_or_an_estimate_progress_is_as_it_was_measured():
    by_steps = replace(WITH_STEPS, estimated_duration=None)
    selection = of(A10G_ON_DEMAND, definition=by_steps)

    measured = progress_at_pace(running_on("g5.xlarge", definition=by_steps), HALF_DONE, selection, None, AFTER)

    assert measured == Progress(2 * HOUR, 2 * HOUR)


def chosen(
    selection: Selection, policy: Policy = uniform_progress, within: timedelta = 20 * HOUR, fastest: int = -1
) -> MarketChoice:
    job = make_job(definition=steps(replace(TEN_HOURS, deadline=within)))
    pace = find_paces(job.definition, selection)[fastest]
    progress = progress_at_pace(job, None, selection, pace, NOW)
    assert progress is not None
    made = choose(job, policy, Measured(progress), selection, find_pools(selection, (), NOW), NOW, pace=pace)
    assert made is not None
    return made


def test_a_policy_has_work_and_prices_of_the_machine_that_the_job_would_take():
    fast = chosen(of(*EVERYTHING))
    slow = chosen(of(T4_SPOT, T4_ON_DEMAND, offered(A10G, SPOT)))

    assert (fast.situation.work_left, fast.situation.on_demand_usd_per_hour) == (10.0, 1.0)
    assert [each.name for each in fast.situation.pools] == ["g5.xlarge spot"]
    assert slow.situation.work_left == pytest.approx(10 / SLOW)
    assert slow.situation.on_demand_usd_per_hour == 0.53
    assert chosen(of(A10G_SPOT)).situation.on_demand_usd_per_hour is None


@pytest.mark.parametrize(
    ("action", "kept"),
    [(Action.TRY, (A10G_SPOT,)), (Action.ON_DEMAND, (A10G_ON_DEMAND,)), (Action.WAIT, ())],
)
def test_what_may_be_slower_is_left_out_and_why_is_said(action, kept):
    selection = of(*EVERYTHING)
    choice = Choice(action, Rule.SPOT_MAY_BE_HAD, pool="g5.xlarge spot", alternatives=("g4dn.xlarge spot",))

    narrowed = narrow(selection, replace(chosen(selection), choice=choice))

    reasons = {str(each.offering.key): each.rejection.reason for each in narrowed.rejected}
    assert narrowed.kept == kept
    assert reasons["g4dn.xlarge spot"] == (
        "a job may be slower on T4 than on g5.xlarge (A10G), where its work is reckoned"
    )
    assert reasons["x1.xlarge on-demand"].startswith("a job may be slower on X1 than on g5.xlarge")
    assert narrowed.filter_counts[-1] == ("market", 5, len(kept))


def refused(*offerings: Offering, minutes: float) -> Selection:
    """Return what is kept of these and of the fastest one on demand, which is refused for so many minutes."""
    found = of(*offerings, FAST_ON_DEMAND, without=[FAST_ON_DEMAND])
    until = NOW + timedelta(minutes=minutes)
    waits = [replace(each, rejection=replace(each.rejection, retry_at=until)) for each in found.rejected]
    return Selection(found.kept, tuple(waits), found.filter_counts, found.work)


NEEDED = 11 * HOUR * 35 / 67 + timedelta(minutes=8)
"""Until the end of the work, with its padding and a start, on the fastest machine."""


@pytest.mark.parametrize(
    ("selection", "within", "fastest", "is_kept"),
    [
        pytest.param(of(*EVERYTHING, FAST_ON_DEMAND), NEEDED + MINUTE, -1, True, id="in time at once"),
        pytest.param(of(*EVERYTHING, FAST_ON_DEMAND), NEEDED - MINUTE, -1, False, id="too late"),
        pytest.param(of(*EVERYTHING, FAST_ON_DEMAND), NEEDED + MINUTE, 0, False, id="too slow"),
        pytest.param(refused(*EVERYTHING, minutes=3), NEEDED + 4 * MINUTE, -1, True, id="in time when it is back"),
        pytest.param(refused(*EVERYTHING, minutes=5), NEEDED + 4 * MINUTE, -1, False, id="back too late"),
        pytest.param(of(A10G_SPOT), 20 * HOUR, 0, True, id="spot with time to spare"),
        pytest.param(of(A10G_SPOT), 11.5 * HOUR, 0, False, id="spot alone is no promise"),
    ],
)
def test_a_limit_is_kept_at_the_pace_of_on_demand_in_time_when_it_may_be_had(selection, within, fastest, is_kept):
    assert keeps_limit(chosen(selection, within=within, fastest=fastest), selection) == is_kept


@pytest.mark.parametrize(
    ("selection", "within", "taken"),
    [
        pytest.param(of(*EVERYTHING, FAST_ON_DEMAND), NEEDED - MINUTE, FAST_ON_DEMAND, id="short of its padding"),
        pytest.param(refused(*EVERYTHING, minutes=3), NEEDED - MINUTE, FAST_ON_DEMAND, id="also if that is awaited"),
        pytest.param(refused(*EVERYTHING, minutes=60), NEEDED - MINUTE, A10G_ON_DEMAND, id="it is back too late"),
        pytest.param(of(*EVERYTHING, FAST_ON_DEMAND), 5 * HOUR, A10G_ON_DEMAND, id="lost anyway"),
        pytest.param(refused(T4_SPOT, minutes=3), 5 * HOUR, T4_SPOT, id="nothing else on demand"),
    ],
)
def test_a_deadline_that_is_not_kept_costs_no_more_than_it_may_bring(selection, within, taken):
    definition = steps(replace(TEN_HOURS, deadline=within))
    paces = range(len(find_paces(definition, selection)))
    markets = [chosen(selection, within=within, fastest=each) for each in paces]

    found = least_late(markets, selection, definition)

    assert found.pace is not None
    assert found.pace.offering == taken
    patient = replace(definition, deadline=None, patience=HOUR)
    latest = least_late(markets, selection, patient).pace
    assert latest is not None
    assert latest.is_kept_on_any(selection.kept), "patience waits for nothing"


@pytest.mark.parametrize(("minutes", "kept"), [(3, ()), (60, (UNKNOWN,))])
def test_what_has_no_known_speed_is_taken_once_the_limit_is_lost(minutes, kept):
    selection = refused(UNKNOWN, minutes=minutes)
    definition = steps(replace(TEN_HOURS, deadline=NEEDED - MINUTE))

    found = least_late([chosen(selection, within=NEEDED - MINUTE)], selection, definition)

    assert narrow(selection, found).kept == kept
    patient = least_late([found], selection, replace(definition, deadline=None, patience=HOUR))
    assert narrow(selection, patient).kept == (UNKNOWN,)


def test_what_is_too_slow_is_not_taken_while_on_demand_as_fast_may_come_back_in_time():
    selection = refused(*EVERYTHING, minutes=3)

    narrowed = narrow(selection, chosen(selection, within=NEEDED + 4 * MINUTE))

    waits = market_wait(narrowed)
    assert narrowed.kept == ()
    assert waits is not None
    assert waits.retry_at == NOW + 3 * MINUTE
    assert waits.reason.endswith(
        "; none is to be had just now, and a job may be slower on A10G than on p5.4xlarge (H100), where its work is "
        "reckoned"
    )
