"""A task on on-demand is moved to spot: a machine is claimed, the task saves and stops, and goes on there."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.machine_story import G5, SETTINGS, MachineStory, make_own_offering
from fakes.market_story import FULL, HOUR, ON_DEMAND, look, run_on_demand, save, within
from fakes.story import MINUTE
from relaunch.core.definitions.accelerator import MeasuredOn
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import HEARTBEAT, Decision
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.settings import MachineSettings
from relaunch.core.market.policies import PolicyName
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job


@pytest.fixture
def story() -> MachineStory:
    return within()


@pytest.fixture
def leaving(story: MachineStory) -> str:
    """Return the ID of a job that trains on on on-demand until its machine on spot is ready."""
    job_id = run_on_demand(story)
    story.clock.advance(HOUR)
    save(story, job_id)
    look(story)
    assert story.machine(job_id).offering == G5
    return job_id


def test_it_trains_on_until_the_machine_on_spot_is_ready(story, leaving):
    assert story.job(leaving).state is JobState.RUNNING
    assert story.machine(leaving).state is MachineState.STARTING
    assert story.tasks.stops == []
    explanation = explain(story.job(leaving), story.now)
    assert explanation.waiting_for.startswith("a machine on spot: ")
    assert "it trains on until that machine is ready" in explanation.next_step


def test_it_saves_stops_and_goes_on_there_and_never_beside_itself(story, leaving):
    spot = story.machine(leaving)
    story.register(spot)
    story.settle_all()

    job = story.job(leaving)
    assert (job.state, job.current_attempt.intent.kind) == (JobState.STOPPING, IntentKind.MOVE)
    assert len(story.tasks.requests) == 1, "never beside a live task"

    story.end(leaving, 143, stop_code="UserInitiated")
    story.settle_all()
    story.run(leaving)
    moved = story.job(leaving)
    assert (moved.state, moved.current_attempt.number) == (JobState.RUNNING, 2)
    assert moved.current_attempt.placement.offering == G5
    assert (moved.totals.interruptions, moved.totals.failures) == (0, 0)
    assert "stopped: moved" in story.timeline(leaving)


def test_the_machine_that_it_left_is_given_back(story, leaving):
    left = story.attempt(leaving).placement.machine_id
    story.register(story.machine(leaving))
    story.settle_all()
    story.end(leaving, 0, stop_code="UserInitiated")
    story.settle_all()

    assert story.load(left).claims == ()


def test_a_program_that_ends_meanwhile_has_ended_and_the_machine_is_given_back(story, leaving):
    claimed = story.machine(leaving).machine_id

    story.end(leaving, 0)
    story.settle_all()

    assert story.job(leaving).state is JobState.SUCCEEDED
    assert story.load(claimed).claims == ()


def test_a_cancelled_job_gives_the_machine_back(story, leaving):
    claimed = story.machine(leaving).machine_id

    cancel_job(leaving, "enough", story.deps)
    story.settle_all()

    assert story.attempt(leaving).intent.kind is IntentKind.CANCEL
    assert story.load(claimed).claims == ()


def test_a_refusal_costs_nothing_and_it_is_tried_again_after_ten_minutes(story):
    job_id = run_on_demand(story)
    story.fleet.refused[G5] = FULL
    story.clock.advance(HOUR)
    save(story, job_id)

    look(story)

    job = story.job(job_id)
    assert (job.state, job.machine_id, job.current_attempt.handover) == (JobState.RUNNING, "", None)
    assert story.tasks.stops == []
    assert "there was no machine on spot to move it to: " in explain(job, story.now).waiting_for
    del story.fleet.refused[G5]
    look(story)
    look(story)
    assert story.machine(job_id).offering == G5


def test_a_machine_that_does_not_come_leaves_it_where_it_is(story, leaving):
    story.reconcile(HEARTBEAT)
    story.look(timedelta(minutes=6))
    story.settle_all()

    job = story.job(leaving)
    assert (job.state, story.tasks.stops) == (JobState.RUNNING, [])
    assert job.current_attempt.placement.offering == ON_DEMAND


@pytest.mark.parametrize("saved_by", ["nothing", "an earlier attempt"])
def test_it_stays_until_its_task_has_saved_a_checkpoint(story, saved_by):
    job_id = run_on_demand(story)
    if saved_by != "nothing":
        story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-0/step-0000001/"
    story.clock.advance(HOUR)

    look(story)

    assert story.job(job_id).machine_id == ""
    assert story.job(job_id).market.reason == "it has saved no checkpoint since it was launched"


def test_how_long_its_task_ran_until_its_first_checkpoint_is_known_although_only_that_one_is_there(story):
    story = within(deadline=12 * HOUR)
    job_id = run_on_demand(story)
    story.clock.advance(2 * HOUR)
    look(story)
    save(story, job_id)

    look(story)

    job = story.job(job_id)
    assert (job.state, job.machine_id) == (JobState.RUNNING, ""), "an interruption of spot may lose two hours"
    assert job.measured.checkpoint_seconds >= 2 * 3600


@pytest.mark.parametrize("error", [PermanentError("AccessDenied"), TransientError("SlowDown")])
def test_it_stays_while_its_checkpoints_cannot_be_read_and_is_looked_at_again(story, error):
    job_id = run_on_demand(story)
    story.clock.advance(HOUR)
    save(story, job_id)
    story.checkpoints.refusal = error

    look(story)

    job = story.job(job_id)
    assert (job.state, job.machine_id) == (JobState.RUNNING, "")
    assert job.market.reason == f"its checkpoints cannot be read: {error}"
    story.checkpoints.refusal = None
    look(story)
    assert story.machine(job_id).offering == G5


def test_a_machine_whose_message_is_lost_is_found_ready_at_the_next_look(story, leaving):
    story.register(story.machine(leaving))
    story.launches.requested.clear()

    look(story)

    assert story.attempt(leaving).intent.kind is IntentKind.MOVE


def test_without_a_cheaper_machine_of_our_own_no_checkpoint_is_read(story):
    job_id = run_on_demand(story)
    story.offerings.available = (make_own_offering(G5, 1.50), make_own_offering(ON_DEMAND, 1.00))
    story.checkpoints.refusal = PermanentError("nobody reads this")

    look(story)

    assert story.job(job_id).market.reason == "no machine of our own on spot that costs less satisfies it"


def test_in_a_stack_without_machines_of_its_own_nothing_is_selected(story):
    job_id = run_on_demand(story)
    story.deps = replace(story.deps, machine_settings=MachineSettings("relaunch", ""), offerings=None)

    look(story)

    job = story.job(job_id)
    assert (job.pending, job.wake_at) == ((), story.now + HEARTBEAT)
    assert job.market.reason == (
        "a task is moved to machines of the stack's own only, and the stack has none (MachineSubnets)"
    )


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        pytest.param({"max_machines": 1}, "machines of its own (MaxMachines)", id="machines"),
        # One more would be within the limit, but not within what is left for others than handovers.
        pytest.param({"max_machines": 2, "handover_reserve": 0.1}, "machines of its own (MaxMachines)", id="reserve"),
        pytest.param(
            {"max_usd_per_hour": 1.3, "handover_reserve": 0.0},
            "USD per hour for machines of its own (MaxMachinesPricePerHour)",
            id="price",
        ),
    ],
)
def test_at_the_limit_of_the_stack_it_stays_says_so_and_moves_when_there_is_room(limits, words):
    story = within()
    job_id = run_on_demand(story)
    unlimited = story.deps.limits
    story.deps = replace(story.deps, limits=StackLimits(machines=MachineLimits(**limits)))
    story.clock.advance(HOUR)
    save(story, job_id)

    look(story)

    job = story.job(job_id)
    assert (job.state, job.machine_id, job.pending) == (JobState.RUNNING, "", ())
    assert f", but the stack has reached its limit of {words}, and a move takes one more" in job.market.reason
    assert job.market.reason in explain(job, story.now).waiting_for
    story.deps = replace(story.deps, limits=unlimited)
    look(story)
    assert story.machine(job_id).offering == G5


def test_without_a_launch_template_for_what_would_be_moved_to_it_says_so(story):
    job_id = run_on_demand(story)
    story.deps = replace(story.deps, machine_settings=replace(SETTINGS, launch_templates={}))
    story.clock.advance(HOUR)
    save(story, job_id)

    look(story)

    job = story.job(job_id)
    assert (job.state, job.pending) == (JobState.RUNNING, ())
    assert job.market.reason.startswith("there was no machine on spot to move it to: no subnet or launch template for ")


def test_it_stays_where_that_is_safer_and_says_when_it_is_looked_at_again(story):
    job_id = run_on_demand(story)
    story.clock.advance(MINUTE)
    save(story, job_id)

    look(story)

    job = story.job(job_id)
    assert job.machine_id == ""
    assert job.market.reason.startswith(
        "leaving on-demand for spot does not pay: with two more starts it would be 10m behind even progress to its "
        "limit; if nothing changes, a move may pay from 09:58 UTC on"
    )
    assert story.now < job.wake_at <= story.now + HEARTBEAT
    assert f"is looked at again at {job.wake_at:%H:%M:%S} UTC" in explain(job, story.now).waiting_for


def test_on_spot_it_says_what_would_end_that_and_no_time_of_its_launch(story):
    job_id = story.submit()
    story.clock.advance(MINUTE)
    story.settle_all()
    story.register(story.machine(job_id))
    story.settle_all()
    story.run(job_id)

    assert story.job(job_id).market.reason.startswith("spot may be had, and is cheaper; on-demand is taken from ")
    assert explain(story.job(job_id), story.now).waiting_for.endswith(
        "; it runs on spot until that is taken away; then its policy, uniform-progress, takes other spot that may be "
        "had, waits for some while its limit leaves time, or else takes on-demand"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": PolicyName.ON_DEMAND_FIRST},
        {"policy": PolicyName.GREEDY, "deadline": timedelta(hours=10.2)},
        {"checkpoint_uri": None},
        {"checkpoint_uri": None, "estimated_duration": None, "deadline": None},
    ],
    ids=["on-demand-first", "greedy", "without-checkpoints", "without-a-limit-or-checkpoints"],
)
def test_a_job_that_is_never_moved_is_not_looked_at_for_it(fields):
    story = within(**fields)
    job_id = run_on_demand(story)
    story.clock.advance(HOUR)
    launches = len(story.launches.requested)

    story.reconcile(HEARTBEAT)

    assert len(story.launches.requested) == launches
    assert story.job(job_id).state is JobState.RUNNING


@pytest.mark.parametrize("limits", [{}, {"deadline": None, "policy": PolicyName.CHEAPEST}], ids=["deadline", "none"])
def test_a_job_is_not_moved_to_what_may_be_slower(limits):
    story = within(estimated_on=MeasuredOn("A10G"), **limits)
    job_id = run_on_demand(story)
    cheap = make_own_offering(G5, 0.05)
    slow = replace(cheap.instance_type, accelerator_model="T4", name="g4dn.xlarge")
    story.offerings.available = (make_own_offering(ON_DEMAND, 1.00), replace(cheap, instance_type=slow))
    story.clock.advance(HOUR)
    save(story, job_id)

    look(story)

    assert not story.job(job_id).machine_id
    assert story.job(job_id).market.reason == "no machine of our own on spot that costs less satisfies it"


FOREVER = {"estimated_duration": None, "deadline": None, "policy": PolicyName.CHEAPEST}


@pytest.fixture
def unlimited() -> MachineStory:
    """Return a story of a job without a limit on its time."""
    return within(**FOREVER)


def test_a_job_without_a_limit_goes_back_to_spot_too(unlimited):
    job_id = run_on_demand(unlimited)
    unlimited.clock.advance(12 * HOUR)
    save(unlimited, job_id)

    look(unlimited)

    assert unlimited.machine(job_id).offering == G5
    assert unlimited.tasks.stops == [], "its machine comes first"
    reason = unlimited.attempt(job_id).handover.reason
    assert reason.startswith("leaving on-demand for spot pays: it is expected to run there for 1h")
    unlimited.register(unlimited.machine(job_id))
    unlimited.settle_all()
    unlimited.end(job_id, 143, stop_code="UserInitiated")
    unlimited.settle_all()
    unlimited.run(job_id)
    job = unlimited.job(job_id)
    assert (job.state, job.current_attempt.placement.offering) == (JobState.RUNNING, G5)
    assert len(job.market.moved_at) == 1


def test_a_job_without_a_limit_stays_while_little_is_known_to_be_left(unlimited):
    job_id = run_on_demand(unlimited)
    unlimited.clock.advance(HOUR / 4)
    save(unlimited, job_id)

    look(unlimited)

    job = unlimited.job(job_id)
    assert job.machine_id == ""
    assert job.market.reason.startswith("leaving on-demand for spot does not pay: it is expected to run there for ")
    assert job.market.reason in explain(job, unlimited.now).waiting_for


def test_a_job_without_a_limit_that_was_moved_within_the_hour_stays(unlimited):
    job_id = run_on_demand(unlimited)
    unlimited.clock.advance(12 * HOUR)
    save(unlimited, job_id)
    job = unlimited.job(job_id)
    unlimited.deps.jobs.save_job(
        Decision(replace(job, market=replace(job.market, moved_at=(unlimited.now - HOUR / 2,))))
    )

    look(unlimited)

    assert unlimited.job(job_id).machine_id == ""
    assert unlimited.job(job_id).market.reason.startswith("it was moved to spot once within 24 hours")
    look(unlimited)
    look(unlimited)
    assert unlimited.machine(job_id).offering == G5


def test_a_pool_that_refused_a_job_without_a_limit_is_tried_again_after_ten_minutes(unlimited):
    job_id = run_on_demand(unlimited)
    unlimited.fleet.refused[G5] = FULL
    unlimited.clock.advance(12 * HOUR)
    save(unlimited, job_id)
    look(unlimited)
    assert "there was no machine on spot" in unlimited.job(job_id).market.reason
    del unlimited.fleet.refused[G5]

    look(unlimited)
    look(unlimited)

    assert unlimited.machine(job_id).offering == G5
