"""A job with a deadline or with patience is launched where its market policy wants it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_failed_placement
from fakes.machine_story import G5, MachineStory, make_own_offering
from fakes.market_story import HOUR, WITHIN, save
from fakes.market_story import within as on_machines
from fakes.story import MINUTE, Story
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.overheads import measured_so_far
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.long_waits import START_LIMIT
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import MachineState
from relaunch.core.market.policies import PolicyName
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.retry_job import retry_job

NO_SPOT = make_failed_placement("RESOURCE:GPU")


def within(**fields) -> Story:
    return Story(make_definition(**WITHIN, **fields))


def purchases(story: Story) -> list[str]:
    return [request.capacity_provider.partition("-xlarge-")[2] for request in story.tasks.requests]


def interrupt(story: Story, job_id: str, after: timedelta, step: int | None = None) -> None:
    """Let the task be lost after a time; with `step` it saved a checkpoint then."""
    story.clock.advance(after)
    if step is not None:
        save(story, job_id, step)
    story.lose_host(job_id)


def test_spot_is_taken_while_it_may_be_had():
    story = within()

    story.launch()

    assert purchases(story) == ["spot"]


def test_without_spot_a_job_that_is_behind_takes_on_demand():
    story = within()
    job_id = story.submit()
    story.clock.advance(MINUTE)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])

    story.settle()

    assert purchases(story) == ["spot", "spot", "on-demand"]
    job = story.job(job_id)
    assert job.state is JobState.LAUNCHING
    assert job.market.reason.startswith("it is 1m behind even progress to its limit")


def test_the_cheapest_waits_for_a_fresh_outage_to_end_though_the_job_is_not_ahead():
    story = Story(make_definition(**{**WITHIN, "policy": PolicyName.CHEAPEST}))
    job_id = story.submit()
    story.clock.advance(MINUTE)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])

    story.settle()

    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert (waiting.reason, purchases(story)) == (WaitReason.MARKET, ["spot", "spot"])
    assert waiting.detail.startswith(
        "no spot is to be had, and its limit leaves time to wait; on-demand is taken from "
    )


def test_without_spot_a_job_that_is_ahead_waits_until_it_is_not():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, 4 * HOUR, step=100)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])
    story.settle()

    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.until) == (WaitReason.MARKET, story.job(job_id).wake_at)
    assert waiting.detail.startswith("it is 4h ahead of even progress to its limit, and waits for spot; ")

    story.reconcile(waiting.until - story.now)
    story.settle()
    assert purchases(story)[-1] == "spot"


def test_work_that_no_checkpoint_keeps_is_to_be_done_again():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, 4 * HOUR)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])

    story.settle()

    assert purchases(story)[-1] == "on-demand"


def test_what_each_attempt_kept_is_added_up_once():
    story = within()
    job_id = story.launch()
    for hours in (1, 2):
        interrupt(story, job_id, hours * HOUR, step=hours)
        story.settle()
        story.run(job_id)
    interrupt(story, job_id, 5 * HOUR)
    story.settle()

    assert story.job(job_id).progress.kept_seconds == 3 * 3600


def test_when_only_on_demand_keeps_the_deadline_it_is_taken_though_spot_is_there():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, 9.5 * HOUR)

    story.settle()

    assert purchases(story)[-1] == "on-demand"


def test_a_job_that_is_too_late_for_spot_takes_spot_if_there_is_nothing_else():
    story = within()
    job_id = story.submit()
    story.clock.advance(10 * HOUR)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])

    story.settle()

    assert purchases(story) == ["on-demand", "on-demand", "spot"]
    assert story.job(job_id).state is JobState.LAUNCHING


def test_patience_ends_with_on_demand():
    story = Story(make_definition(estimated_duration=HOUR, patience=HOUR, policy=PolicyName.GREEDY))
    job_id = story.submit()
    story.tasks.outcomes.extend([NO_SPOT] * 4)
    story.settle()
    assert story.job(job_id).waiting.reason is WaitReason.MARKET

    for _ in range(8):
        story.reconcile(10 * MINUTE)
        story.settle()

    assert purchases(story)[-1] == "on-demand"
    assert story.attempt(job_id).placement.requested_at - story.job(job_id).accepted_at <= HOUR + 10 * MINUTE


def test_patience_is_no_idle_time_that_ends_a_job():
    story = Story(make_definition(estimated_duration=HOUR, patience=30 * HOUR))
    job_id = story.launch()
    interrupt(story, job_id, MINUTE)
    story.launches.requested.clear()

    story.reconcile(START_LIMIT + HOUR)

    assert not story.job(job_id).state.is_final


def test_steps_without_an_estimate_promise_nothing_before_the_first_checkpoint():
    story = Story(make_definition(total_steps=1000, deadline=20 * HOUR))
    job_id = story.launch()
    assert purchases(story) == ["spot"]

    interrupt(story, job_id, 2 * HOUR, step=100)
    story.settle()

    assert purchases(story)[-1] == "on-demand", "the other 900 steps take 18 hours"


@pytest.mark.parametrize(("lost_hours", "purchase"), [(0.4, "spot"), (1.0, "on-demand")])
def test_what_an_interruption_lost_may_be_lost_again(lost_hours, purchase):
    deadline = (11.3 + lost_hours) * HOUR
    story = Story(make_definition(**WITHIN | {"policy": PolicyName.GREEDY, "deadline": deadline}))
    job_id = story.launch()

    interrupt(story, job_id, lost_hours * HOUR)
    story.settle()

    assert purchases(story) == ["spot", purchase]


def retry_at(story: Story, saved: int, **chosen: int) -> str:
    """Let a job end with a checkpoint of the step `saved`, and be retried; return the id of the new one."""
    job_id = story.launch()
    story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-{saved:07d}/"
    cancel_job(job_id, "enough", story.deps)
    story.end(job_id, 143)
    asked = DirectRequest("api:key:k1", "resnet", {}, "ada", story.now)
    submission = retry_job(story.job(job_id), asked, story.deps, **chosen)
    assert submission.job is not None
    return submission.job.job_id


def test_the_steps_of_a_job_that_it_retries_take_none_of_a_jobs_own_time():
    story = Story(make_definition(total_steps=1000, deadline=8 * HOUR, padding=0.0))
    job_id = retry_at(story, 800)
    story.settle()
    story.run(job_id)
    assert purchases(story)[-1] == "spot"

    interrupt(story, job_id, 3 * HOUR, step=900)
    story.settle()
    assert purchases(story)[-1] == "spot", "the last 100 steps take three hours, and five are left"

    story.run(job_id)
    interrupt(story, job_id, 2 * HOUR)
    story.settle()
    assert purchases(story)[-1] == "on-demand"


@pytest.mark.parametrize(("step", "purchase"), [(800, "spot"), (10, "on-demand")])
def test_the_estimate_of_a_retry_is_held_to_the_steps_that_are_left(step, purchase):
    story = Story(make_definition(**{**WITHIN, "deadline": 10.5 * HOUR}, total_steps=1000))
    retry_at(story, step)

    story.settle()

    assert purchases(story)[-1] == purchase


def test_a_retry_whose_checkpoint_is_gone_says_so():
    story = Story(make_definition(**WITHIN, total_steps=1000))
    job_id = retry_at(story, 800, step=700)

    story.settle()

    assert story.job(job_id).state is JobState.FAILED
    assert "there is no complete checkpoint of step 700" in story.job(job_id).reason


def test_what_starts_took_so_far_is_kept_for_the_next_ones():
    story = within()
    job_id = story.submit()
    for _ in range(2):
        story.settle()
        story.clock.advance(20 * MINUTE)
        story.run(job_id)
        interrupt(story, job_id, HOUR)
    story.settle()

    job = story.job(job_id)
    assert (job.measured.starts, job.measured.start_seconds) == (2, pytest.approx(2 * 22 * 60.0, abs=60.0))


def test_a_job_without_a_limit_is_launched_as_ever():
    story = Story(make_definition(estimated_duration=10 * HOUR))
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])

    story.submit()
    story.settle()

    assert purchases(story) == ["spot", "spot", "on-demand"]


def test_progress_that_cannot_be_read_is_waited_for():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, HOUR)
    story.checkpoints.refusal = PermanentError("AccessDenied")

    story.settle()

    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.detail) == (WaitReason.CHECKPOINT, "AccessDenied")


def test_progress_that_cannot_be_read_now_is_read_when_the_message_comes_again():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, HOUR)
    requested = list(story.launches.requested)
    story.checkpoints.refusal = TransientError("SlowDown")
    with pytest.raises(TransientError):
        story.deliver()

    story.checkpoints.refusal = None
    story.launches.requested = requested
    story.settle()

    assert story.job(job_id).state is JobState.LAUNCHING


def test_a_wait_that_is_looked_at_early_is_the_same_wait():
    story = within()
    job_id = story.launch()
    interrupt(story, job_id, 4 * HOUR, step=100)
    story.tasks.outcomes.extend([NO_SPOT, NO_SPOT])
    story.settle()
    before = story.job(job_id)

    story.launches.request_launch(job_id)
    story.launches.request_launch(job_id)
    story.settle()

    after = story.job(job_id)
    assert (after.waiting.since, after.wake_at) == (before.waiting.since, before.wake_at)
    assert purchases(story) == ["spot", "spot"]


@pytest.fixture
def own() -> MachineStory:
    return on_machines()


def test_a_spot_machine_that_is_refused_is_tried_again_after_ten_minutes(own):
    job_id = own.train()
    interrupt(own, job_id, 4 * HOUR, step=100)
    own.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")

    for _ in range(3):
        own.settle_all()
        waiting = own.job(job_id).waiting
        assert waiting is not None
        assert waiting.reason is WaitReason.MARKET
        assert waiting.until - own.now <= 10 * MINUTE
        own.reconcile(waiting.until - own.now)

    own.fleet.refused.clear()
    own.settle_all()
    assert own.machine(job_id).offering == G5


def test_the_start_of_a_machine_of_our_own_counts_from_its_request(own):
    job_id = own.start()
    own.clock.advance(4 * MINUTE)
    own.register(own.machine(job_id))
    own.settle_all()
    own.clock.advance(3 * MINUTE)
    own.run(job_id)

    job = own.job(job_id)
    assert job.machines.asked_at is not None
    assert measured_so_far(job, None, own.now).start_seconds == pytest.approx((4 + 3 + 2) * 60.0)


def warn(own: MachineStory, after: timedelta = MINUTE) -> str:
    """Let a job train for a while and its machine be warned; return the job's id."""
    job_id = own.train()
    own.clock.advance(after)
    instance_id = own.attempt(job_id).instance_id
    assert instance_id is not None
    own.warn(instance_id)
    return job_id


def test_the_next_machine_of_a_warned_task_is_the_one_that_the_policy_wants(own):
    own.deps.definitions.save_definition(make_definition(**WITHIN | {"deadline": 10.75 * HOUR}))

    job_id = warn(own)
    own.settle_all()

    assert own.job(job_id).state is JobState.STOPPING
    assert own.load(own.job(job_id).machine_id).offering == replace(G5, purchase=PurchaseOption.ON_DEMAND)


def test_no_next_machine_is_requested_for_a_warned_task_that_is_to_wait(own):
    own.deps.definitions.save_definition(make_definition(**WITHIN | {"policy": PolicyName.GREEDY}))

    job_id = warn(own)
    own.settle_all()
    assert own.job(job_id).machine_id == ""

    own.end(job_id, 143)
    own.settle_all()
    waiting = own.job(job_id).waiting
    assert waiting is not None
    assert waiting.reason is WaitReason.MARKET


@pytest.mark.parametrize("after_claim", [timedelta(seconds=5), timedelta(seconds=-5)], ids=["after", "by-ecs-before"])
def test_a_spot_machine_claimed_before_nothing_was_saved_is_given_back_for_on_demand(own, after_claim):
    own.deps.definitions.save_definition(make_definition(**WITHIN | {"deadline": 14 * HOUR}))
    elsewhere = replace(G5, zone="us-east-1b")
    own.offerings.available = (*own.offerings.available, make_own_offering(elsewhere, 0.50))
    job_id = warn(own, after=3 * HOUR)
    own.settle_all()
    spot, claimed_at = own.load(own.job(job_id).machine_id), own.now
    assert spot.offering == elsewhere, "if the task saves, there is time for spot"
    own.register(spot)
    own.settle_all()

    own.clock.advance(MINUTE)
    own.end(job_id, 143, stopped_at=claimed_at + after_claim)
    own.settle_all()

    assert own.load(spot.machine_id).state is MachineState.ENDING
    assert own.machine(job_id).offering == replace(G5, purchase=PurchaseOption.ON_DEMAND)
