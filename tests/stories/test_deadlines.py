"""A job with a deadline meets it, whatever launches met with before."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_definition,
    make_instance_type,
    make_job,
    make_offering,
    make_placement,
    make_running_attempt,
)
from fakes.machine_story import FIRST_TIER, G6_DEMAND, MachineStory, make_own_offering
from fakes.story import MINUTE, Story
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import MeasuredOn, PurchaseOption
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.progress import SavedCheckpoint, kept_time
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.market_choice import ON_DEMAND_RESERVE, market_wait, narrow
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.market.policies import PolicyName
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityFailure, Offering
from relaunch.core.offerings.offering_key import OfferingKey
from relaunch.core.selection.expected_cost import START_OVERHEAD
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import Selection, select
from relaunch.usecases.follow_market import choose_market
from relaunch.usecases.load_offerings import AvailableOfferings
from relaunch.usecases.plan_jobs import plan_on

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


def test_a_machine_that_is_too_slow_for_what_was_lost_is_given_back_for_a_faster_one_on_spot():
    fast = FIRST_TIER[0]
    slow = [replace(each, instance_type="g4dn.xlarge") for each in FIRST_TIER]
    story = MachineStory()
    t4 = make_instance_type("g4dn.xlarge", accelerator_model="T4")
    story.offerings.available = (
        *(replace(make_own_offering(each, 0.02), instance_type=t4) for each in slow),
        make_own_offering(fast, 0.40),
        make_own_offering(replace(fast, purchase=PurchaseOption.ON_DEMAND), 1.00),
    )
    limits = {"estimated_duration": HOUR, "estimated_on": MeasuredOn("A10G"), "deadline": 20 * HOUR, "total_steps": 9}
    story.deps.definitions.save_definition(make_definition(**limits))
    job_id = story.train()
    assert story.machine(job_id).offering in slow
    story.clock.advance(6 * HOUR)
    story.warn(story.machine(job_id).instance_id)
    story.settle_all()
    claimed = story.machine(job_id)
    assert claimed.offering in slow
    story.clock.advance(MINUTE)
    story.register(claimed)

    story.end(job_id, 143)
    story.settle_all()

    assert story.machine(job_id).offering == fast
    assert claimed.instance_id not in story.running_instances


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
        (120 * HOUR, MeasuredOn("A10G"), "g4dn-xlarge-spot"),
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


TRUE_SPEEDS = {
    "A10G": (1.0, 1.0),
    "L4": (0.5, 30.3 / 35 * 2),
    "T4": (8.1 / 70, 65 / 70),
    "L40S": (1.44, 181.05 / 35),
    "H100": (67 / 35, 989.4 / 70),
}
NAMES = {"A10G": "g5.xlarge", "L4": "g6.xlarge", "T4": "g4dn.xlarge", "L40S": "g6e.xlarge", "H100": "p5.4xlarge"}
REFUSAL = 4 * MINUTE
MOST_REFUSALS = 3


class DrawnMarket:
    """Machines of drawn speeds and prices, where spot comes and goes, and one job that was measured on an A10G.

    On-demand refuses up to three times, four minutes each, and there is no spot meanwhile: the time that a policy
    keeps for that.
    """

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)  # noqa: S311 - the same market every time
        self.speeds = {model: self.dice.uniform(*ends) for model, ends in TRUE_SPEEDS.items()}
        self.work = 10 * self.dice.uniform(1.0, 1.1)
        types = {model: make_instance_type(NAMES[model], accelerator_model=model) for model in TRUE_SPEEDS}
        sold = self.dice.sample(sorted(types), self.dice.randint(1, 4))
        self.on_demand = [self._offered(types[each], PurchaseOption.ON_DEMAND, 0.5, 8) for each in sold]
        self.spot = [self._offered(each, PurchaseOption.SPOT, 0.05, 0.6) for each in types.values()]
        fastest = max(TRUE_SPEEDS[each][0] for each in sold)
        needed = 10 * 1.1 / fastest * HOUR + START_OVERHEAD
        limit = needed + self.dice.choice((0.01, self.dice.uniform(0, 40))) * HOUR
        steps = self.dice.choice((None, 1000))
        self.definition = make_definition(
            estimated_duration=10 * HOUR, estimated_on=MeasuredOn("A10G"), total_steps=steps, deadline=limit
        )
        self.refusals_left = MOST_REFUSALS if limit - needed > ON_DEMAND_RESERVE else 0
        self.refused: dict[OfferingKey, CapacityFailure] = {}
        self.job = make_job(definition=self.definition)
        self.newest: SavedCheckpoint | None = None
        self.done = 0.0
        self.now = NOW

    def _offered(self, machine: InstanceType, purchase: PurchaseOption, *usd: float) -> Offering:
        return make_offering(machine, purchase, price_usd_per_hour=self.dice.uniform(*usd))

    def select(self) -> tuple[Selection, AvailableOfferings]:
        """Return what there is now."""
        self.refused = {key: each for key, each in self.refused.items() if each.until > self.now}
        spot = [] if self.refused else [each for each in self.spot if self.dice.random() < 0.5]
        limits = SelectionLimits(peaks=load_peaks())
        available = AvailableOfferings(self.now, (*self.on_demand, *spot), self.refused, limits)
        return select(self.definition, None, available.offerings, self.refused, self.now, limits), available

    def run(self) -> timedelta:
        """Launch the job where its policy wants it until it has finished; return how long that took."""
        while self.done < self.work:
            selection, available = self.select()
            market = choose_market(self.job, self.newest, selection, available, load_thresholds)
            if market is None:
                self.now += MINUTE
                continue
            narrowed = narrow(selection, market)
            if narrowed.kept:
                self._launch(narrowed.kept[0])
            else:
                awaited = market_wait(narrowed)
                assert awaited is not None
                self.now = max(min(awaited.retry_at or self.now + HOUR, self.now + 10 * MINUTE), self.now + MINUTE / 60)
        return self.now - NOW

    def _is_refused(self, offering: Offering) -> bool:
        if offering.purchase is PurchaseOption.SPOT or not self.refusals_left or self.dice.random() < 0.5:
            return False
        self.refusals_left -= 1
        until = self.now + REFUSAL
        self.refused = {
            offering.key: make_capacity_failure(
                offering=offering.key, at=self.now, until=until, capacity_provider=offering.capacity_provider
            )
        }
        return True

    def _launch(self, offering: Offering) -> None:
        """Run until the end, or on spot until an interruption, which loses up to half an hour."""
        if self._is_refused(offering):
            return
        speed = self.speeds[offering.instance_type.accelerator_model]
        started_at = self.now + START_OVERHEAD
        hours = (self.work - self.done) / speed
        number = 1 if self.job.attempt is None else self.job.attempt.number + 1
        is_lost = offering.purchase is PurchaseOption.SPOT and (ends := self.dice.expovariate(1 / 3)) < hours
        kept = max(ends - self.dice.uniform(0, 0.5), 0.0) if is_lost else hours
        self.now = started_at + (ends if is_lost else hours) * HOUR
        self.done = self.done + kept * speed if is_lost else self.work
        before = kept_time(self.job, self.newest).total_seconds()
        attempt = make_running_attempt(number, placement=make_placement(offering=offering.key), started_at=started_at)
        stopped = replace(attempt, stop=Stop(StopKind.INTERRUPTION, self.now))
        progress = replace(self.job.progress, kept_seconds=before, first_step=0)
        self.job = replace(self.job, attempt=stopped, progress=progress)
        step = int(1000 * self.done / self.work)
        self.newest = SavedCheckpoint("s3://a/b/", step, number, started_at + kept * HOUR)


def test_a_deadline_that_any_on_demand_machine_promises_is_met_whatever_the_speeds_are_within_their_bounds():
    for seed in range(200):
        market = DrawnMarket(seed)
        plan = plan_on(market.select()[1], market.definition, None)

        assert not any("promise" in each for each in plan.notices), seed
        assert market.run() <= market.definition.deadline, seed
