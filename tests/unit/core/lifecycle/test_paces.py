"""The work of a job is reckoned by the on-demand machine that it would take; what may be slower is left out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_job, make_offering_key, make_placement, make_running_attempt
from relaunch.core.definitions.accelerator import Accelerators, MeasuredOn
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.overheads import Measured
from relaunch.core.jobs.progress import Progress, SavedCheckpoint
from relaunch.core.lifecycle.market_choice import MarketChoice, choose, narrow
from relaunch.core.lifecycle.paces import at_pace, find_paces, pools_at_pace, progress_at_pace, running_pace
from relaunch.core.lifecycle.spot_pools import find_pools
from relaunch.core.market.published import uniform_progress
from relaunch.core.market.situation import Action, Choice, Policy, Rule
from relaunch.core.selection.selection import Selection
from relaunch.core.selection.speeds import LearnedRate
from unit.core.selection.offered import A10G, ON_DEMAND, ONE_GPU, PEAKS, SPOT, T4, offered, selected

HOUR = timedelta(hours=1)
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


@pytest.mark.parametrize(
    ("selection", "paces"),
    [
        pytest.param(of(*EVERYTHING), [(A10G_ON_DEMAND, 1.0)], id="the best on-demand"),
        pytest.param(of(*EVERYTHING, CHEAP_T4), [(CHEAP_T4, SLOW), (A10G_ON_DEMAND, 1.0)], id="a slower one is best"),
        pytest.param(of(*EVERYTHING, without=[A10G_ON_DEMAND]), [(A10G_ON_DEMAND, 1.0)], id="that is refused now"),
        pytest.param(of(T4_SPOT, T4_ON_DEMAND), [(T4_ON_DEMAND, SLOW)], id="that nobody measured"),
        pytest.param(
            of(A10G_ON_DEMAND, T4_SPOT, T4_ON_DEMAND, without=[A10G_ON_DEMAND]), [(T4_SPOT, SLOW)], id="nothing as fast"
        ),
        pytest.param(of(A10G_SPOT, T4_SPOT), [(A10G_SPOT, 1.0)], id="spot alone"),
    ],
)
def test_the_pace_is_that_of_what_a_job_would_take(selection, paces):
    found = find_paces(selection, has_steps=True)

    assert [(each.offering, each.speed) for each in found if each] == [
        (offering, pytest.approx(speed)) for offering, speed in paces
    ]
    assert find_paces(selection, has_steps=False) == found[-1:], "hours on unlike machines do not add up"


@pytest.mark.parametrize(
    "selection",
    [of(*EVERYTHING, definition=BARE), of(*EVERYTHING, definition=replace(BARE, estimated_duration=None)), of(UNKNOWN)],
    ids=["taken to be equally fast", "of unknown length", "of unknown speed"],
)
def test_without_known_speeds_there_is_no_pace(selection):
    pools = find_pools(selection, (), NOW)

    assert find_paces(selection, has_steps=True) == (None,)
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

    by_best = pools_at_pace(pools, selection, find_paces(selection, has_steps=False)[-1])
    by_slowest = {each.name: each.usd_per_hour for each in pools_at_pace(pools, selection, slowest)}

    assert [(each.name, each.usd_per_hour) for each in by_best] == [("g5.xlarge spot", 0.40)]
    assert by_slowest == {
        "g4dn.xlarge spot": pytest.approx(0.16),
        "g5.xlarge spot": pytest.approx(0.40 * SLOW),
        "g6.xlarge spot": pytest.approx(0.40 * SLOW / 0.5),
    }


def test_an_estimate_is_as_much_longer_as_the_pace_is_slower():
    pace = find_paces(of(T4_ON_DEMAND), has_steps=False)[-1]

    assert at_pace(TEN_HOURS, pace).estimated_duration / HOUR == pytest.approx(10 / SLOW)


def test_without_an_estimate_the_duration_is_what_jobs_have_shown():
    definition = replace(TEN_HOURS, estimated_duration=None, estimated_on=None, total_steps=72_000)
    rates = {Accelerators("T4"): LearnedRate(slow=1.0, middle=2.0, fast=2.5, jobs=3)}
    selection = selected(definition, T4_ON_DEMAND, A10G_ON_DEMAND, peaks=PEAKS, rates=rates, revision=None)

    (pace,) = find_paces(selection, has_steps=False)

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
    pace = find_paces(selection, has_steps=False)[-1]
    progress = progress_at_pace(job, newest, selection, pace, newest.saved_at if newest else AFTER)

    assert progress is not None
    assert progress.left / HOUR == pytest.approx(left)


def test_without_a_pace_or_an_estimate_progress_is_as_it_was_measured():
    by_steps = replace(WITH_STEPS, estimated_duration=None)
    selection = of(A10G_ON_DEMAND, definition=by_steps)

    measured = progress_at_pace(running_on("g5.xlarge", definition=by_steps), HALF_DONE, selection, None, AFTER)

    assert measured == Progress(2 * HOUR, 2 * HOUR)


def chosen(selection: Selection, policy: Policy = uniform_progress) -> MarketChoice:
    job = make_job(definition=replace(TEN_HOURS, deadline=20 * HOUR))
    pace = find_paces(selection, has_steps=False)[-1]
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
