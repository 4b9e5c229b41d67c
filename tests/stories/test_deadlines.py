"""A job with a deadline meets it, whatever launches met with before."""

from datetime import datetime, timedelta

import pytest

from fakes.builders import make_capacity_failure, make_definition, make_instance_type, make_offering
from fakes.machine_story import FIRST_TIER, G6_DEMAND, MachineStory
from fakes.story import MINUTE, Story
from relaunch.core.definitions.accelerator import MeasuredOn, PurchaseOption
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.market.policies import PolicyName
from relaunch.core.selection.expected_cost import START_OVERHEAD

HOUR = timedelta(hours=1)
NONE_LEFT = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")


def without_spot(policy: PolicyName) -> MachineStory:
    """Return a story without spot, in which EC2 refused on-demand machines again and again until now."""
    story = MachineStory(make_definition(estimated_duration=HOUR, deadline=3 * HOUR, padding=0.0, policy=policy))
    for _ in range(7):
        story.clock.advance(6 * MINUTE)
        until = story.now + POOL_AVOIDED
        story.deps.capacity.remember(make_capacity_failure(offering=G6_DEMAND, at=story.now, until=until))
    (failure,) = story.deps.capacity.load_capacity_memory(story.now).values()
    assert failure.until > story.now + 3 * HOUR, "jobs without a deadline avoid it for longer than this one may take"
    story.fleet.refused.update(dict.fromkeys(FIRST_TIER, NONE_LEFT))
    return story


def wait_for_machine(story: MachineStory, job_id: str, back_at: datetime) -> None:
    """Let time pass until a machine is launched for the job; on-demand is refused until `back_at`."""
    story.fleet.refused[G6_DEMAND] = NONE_LEFT
    while not story.job(job_id).state.is_final and not story.running_instances:
        if story.now >= back_at:
            story.fleet.refused.pop(G6_DEMAND, None)
        story.settle_all()
        wake_at = story.job(job_id).wake_at
        assert wake_at is not None
        story.reconcile(wake_at - story.now)


@pytest.mark.parametrize("policy", [PolicyName.GREEDY, PolicyName.CHEAPEST])
@pytest.mark.parametrize("back_after", [0, 65], ids=["before it has to run", "five minutes after that"])
def test_on_demand_that_was_refused_again_and_again_is_tried_in_time_for_the_deadline(policy, back_after):
    story = without_spot(policy)
    job_id = story.submit()
    deadline = story.now + 3 * HOUR

    wait_for_machine(story, job_id, story.now + back_after * MINUTE)

    assert story.machine(job_id).offering == G6_DEMAND
    story.register(story.machine(job_id))
    story.settle_all()
    story.clock.advance(START_OVERHEAD)
    story.run(job_id)
    story.clock.advance(HOUR)
    story.end(job_id)
    assert story.job(job_id).state is JobState.SUCCEEDED
    assert story.now <= deadline


def warned(policy: PolicyName) -> tuple[MachineStory, str]:
    """Return a story whose job was warned after 50 minutes of an hour's work, and claims another machine on spot."""
    limits = {"estimated_duration": HOUR, "deadline": HOUR * 2.5, "padding": 0.0}
    story = MachineStory(make_definition(policy=policy, checkpoint_uri="s3://checkpoints/demo/", **limits))
    job_id = story.train()
    story.clock.advance(50 * MINUTE)
    first = story.machine(job_id)
    assert first.instance_id is not None
    story.warn(first.instance_id)
    story.settle_all()
    following = story.machine(job_id)
    assert following.machine_id != first.machine_id
    assert following.offering in FIRST_TIER
    story.clock.advance(MINUTE)
    story.register(following)
    return story, job_id


@pytest.mark.parametrize("policy", [PolicyName.GREEDY, PolicyName.CHEAPEST])
def test_a_machine_on_spot_is_given_back_if_more_was_lost_than_leaves_time_for_it(policy):
    story, job_id = warned(policy)
    spot = story.machine(job_id)

    story.end(job_id, 143)
    story.settle_all()

    assert story.machine(job_id).offering == G6_DEMAND
    assert spot.instance_id not in story.running_instances
    assert story.job(job_id).market.reason.startswith("only on-demand instances keep its limit from now on")


def test_spot_is_taken_after_all_once_ec2_has_refused_on_demand():
    story, job_id = warned(PolicyName.CHEAPEST)
    given_back = story.machine(job_id)
    story.fleet.refused[G6_DEMAND] = NONE_LEFT
    story.end(job_id, 143)
    story.settle_all()
    following = story.machine(job_id)
    assert following.machine_id != given_back.machine_id
    assert following.offering in FIRST_TIER

    # By the time that it is ready on-demand may be tried again; to give this one back too would go on for ever.
    story.clock.advance(POOL_AVOIDED + MINUTE)
    story.register(following)
    story.settle_all()

    assert story.job(job_id).current_attempt.placement.machine_id == following.machine_id


@pytest.mark.parametrize("on_demand", [True, False], ids=["time is left", "on-demand is refused"])
def test_a_machine_on_spot_is_used_if_nothing_better_is_to_be_had(on_demand):
    story, job_id = warned(PolicyName.CHEAPEST)
    spot = story.machine(job_id)
    if on_demand:
        story.checkpoints.complete[job_id] = f"s3://checkpoints/demo/{job_id}/attempt-1/step-0000050/"
        story.checkpoints.saved_at = story.now
    else:
        until = story.now + POOL_AVOIDED
        story.deps.capacity.remember(make_capacity_failure(offering=G6_DEMAND, at=story.now, until=until))

    story.end(job_id, 143)
    story.settle_all()

    assert story.machine(job_id).machine_id == spot.machine_id


@pytest.mark.parametrize(
    ("deadline", "measured", "provider"),
    [
        (20 * HOUR, MeasuredOn("A10G"), "g5-xlarge-on-demand"),
        (60 * HOUR, MeasuredOn("A10G"), "g4dn-xlarge-spot"),
        (20 * HOUR, None, "g4dn-xlarge-spot"),
    ],
    ids=["too slow for it", "slow, and in time", "taken to be equally fast"],
)
def test_spot_that_may_be_slower_is_taken_where_its_deadline_leaves_time_for_that(deadline, measured, provider):
    slow = make_instance_type("g4dn.xlarge", accelerator_model="T4")
    story = Story(
        make_definition(estimated_duration=10 * HOUR, deadline=deadline, estimated_on=measured, total_steps=9)
    )
    story.offerings.available = (
        make_offering(slow, price_usd_per_hour=0.05),
        make_offering(purchase=PurchaseOption.ON_DEMAND),
    )

    story.launch()

    assert [each.capacity_provider for each in story.tasks.requests] == [provider]
