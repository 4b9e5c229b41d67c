"""What machines that were requested together mean for others: calls, counts, quotas and costs."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.machine_story import make_own_offering
from fakes.story import MINUTE, push
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.jobs.cost import machine_cost
from relaunch.core.machines.events import FleetAnswer, FleetUncertain
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.quotas import quota_of
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from stories.test_absent_agents import add_others, disconnect, is_alive, pass_time
from stories.test_gang_survivors import SurvivorStory
from stories.test_gangs import GangStory

OTHER = make_definition(name="other", triggers=(GithubTrigger("acme/other", "push"),))


def test_a_request_that_is_throttled_is_sent_as_rarely_as_one_for_a_single_machine():
    story = GangStory(8, max_machines=64)
    story.fleet.throttled = 10**9
    story.start()
    assert len(story.fleet.requests) == 1
    story.queue.requested.clear()
    story.clock.advance(2 * MINUTE)
    story.look()
    before = len(story.fleet.requests)

    for _ in range(5):
        due = [machine_id for machine_id, delay in story.queue.requested if not delay]
        story.queue.requested.clear()
        for machine_id in due:
            make_ec2_calls(machine_id, story.deps)

    assert len(story.fleet.requests) - before <= 2
    assert not [machine_id for machine_id, delay in story.queue.requested if not delay]


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_training_whose_checkpoints_still_arrive_is_not_lost_whatever_rank_has_lost_its_agent(rank: int):
    story = GangStory(3, {"checkpoint_uri": "s3://acme-checkpoints/resnet/"})
    job_id = story.train_all()
    add_others(story, 5)
    machine = story.machines(job_id)[rank]
    disconnect(story, machine)
    story.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-1/step-0000120/"

    for _ in range(3):
        story.checkpoints.saved_at = story.now
        pass_time(story, timedelta(minutes=20))

    assert is_alive(story, machine)


def test_machines_that_were_requested_together_and_do_not_come_up_keep_nobody_else_for_hours():
    story = GangStory(12, max_machines=16)
    story.deps.definitions.save_definition(OTHER)
    story.start()
    began = story.now
    while not any(each.useless for each in story.deps.machines.load_starts().values()):
        story.look(after=MINUTE)
        story.reconcile()
        assert story.now - began < timedelta(hours=1)
    story.settle_all()

    other = story.submit_and_deliver(push(repository="acme/other"))
    asked = story.now
    while not story.job(other).machine_id:
        story.look(after=5 * MINUTE)
        story.reconcile()
        story.settle_all()
        assert story.now - asked < timedelta(hours=1)

    assert {len(each.useless) for each in story.deps.machines.load_starts().values() if each.useless} == {1}


def test_survivors_are_kept_where_the_quota_has_room_for_what_is_missing():
    story = SurvivorStory(4)
    large = make_own_offering(OfferingKey("g5.48xlarge", "us-east-1a", PurchaseOption.SPOT), 9.0)
    large = replace(large, instance_type=replace(large.instance_type, vcpus=192))
    story.offerings.available = (*story.offerings.available, large)
    quota = quota_of("g5.xlarge", PurchaseOption.SPOT)
    assert quota is not None
    story.offerings.refreshed = replace(story.offerings.refreshed, vcpus_by_quota={quota.code: 4.0 * 5})

    story.warn_rank(1)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [4, 1]


def test_no_job_of_one_node_revives_the_request_of_a_gang_that_is_over():
    story = GangStory(8, max_machines=16)
    story.deps.definitions.save_definition(OTHER)
    answers = iter([FleetUncertain("time-out")])
    send = story.fleet.request
    sizes: list[int] = []

    def request(sent: FleetRequest) -> FleetAnswer:
        sizes.append(sent.size)
        return next(answers, None) or send(sent)

    story.fleet.request = request  # type: ignore[method-assign] # the first call has no effect, and no answer
    job_id = story.submit_and_deliver()
    make_ec2_calls(story.job(job_id).next_machines[0], story.deps)
    cancel_job(job_id, "enough", story.deps)
    story.deliver()

    other = story.submit_and_deliver(push(repository="acme/other"))
    story.settle_all()

    assert sizes == [8, 1]
    assert story.load(story.job(other).machine_id).request.size == 1


def test_a_gang_that_trains_costs_nothing_without_training_at_any_rank():
    story = GangStory(4)
    job_id = story.train_all()
    at_start = machine_cost(story.job(job_id), story.now).idle_usd
    story.clock.advance(timedelta(hours=10))

    cost = machine_cost(story.job(job_id), story.now)

    assert cost.usd > 10
    # Disks and addresses are no training.
    assert cost.idle_usd - at_start < 0.05 * cost.usd
