"""No more machines are requested, and no dearer ones, than the stack and the job allow."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_offering
from fakes.machine_story import G5, G6, MachineStory, make_own_offering
from fakes.story import MINUTE, OTHER_SHA, push
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.starts import AT_ONCE, MOST_USELESS, Starts
from relaunch.core.offerings.capacity_memory import image_scope, placement_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.ports import StaleWriteError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.launch_attempt import launch_attempt

WARM = {"warm_time": timedelta(minutes=15)}


@pytest.mark.parametrize(("cap", "is_used"), [(0.40, True), (0.39, False)])
def test_a_machine_that_counts_with_more_than_the_job_may_pay_is_passed_over(cap: float, is_used: bool):
    machines = MachineStory(**WARM)
    machine_id = machines.leave_warm()
    # What it costs was not known as well when it was requested.
    machines.offerings.available = (make_own_offering(G5, 0.20),)
    machines.deps.definitions.save_definition(make_definition(max_price_usd_per_hour=cap))

    job_id = machines.submit_and_deliver(push(OTHER_SHA))

    assert (machines.job(job_id).machine_id == machine_id) is is_used


class TestLimits:
    """The limits of the stack on its machines."""

    @pytest.mark.parametrize(
        ("limits", "words"),
        [
            ({"max_machines": 1}, "its limit of machines of its own"),
            ({"max_usd_per_hour": 0.6, "handover_reserve": 0.0}, "its limit of USD per hour for machines of its own"),
        ],
        ids=["machines", "money"],
    )
    def test_a_job_beyond_them_waits_until_a_machine_is_gone(self, limits, words: str):
        machines = MachineStory(**limits)
        first = machines.start()
        machine_id = machines.machine(first).machine_id

        second = machines.submit_and_deliver(push(OTHER_SHA))
        waiting = machines.job(second).waiting
        assert (waiting.reason, machines.job(second).has_slot) == (WaitReason.MACHINE_LIMIT, False)
        assert words in waiting.detail
        assert machines.count == 1

        cancel_job(first, "enough", machines.deps)
        machines.settle_all()
        assert machines.job(second).waiting.reason is WaitReason.MACHINE_LIMIT, "an ending machine counts"
        machines.look(after=MINUTE)
        machines.settle_all()

        assert machines.load(machine_id).state is MachineState.GONE
        assert machines.machine(second).state is MachineState.STARTING
        assert machines.count == 1

    def test_several_machines_that_are_gone_at_once_admit_as_many_jobs(self):
        count = 5
        machines = MachineStory(max_machines=count, handover_reserve=0.0)
        running = [machines.start(f"{number:x}" * 40) for number in range(count)]
        waiting = [machines.submit_and_deliver(push(f"{number + count:x}" * 40)) for number in range(count)]
        for job_id in running:
            cancel_job(job_id, "enough", machines.deps)
        machines.make_ec2_calls()
        machines.look(after=MINUTE)

        machines.settle_all()

        states = [machines.job(job_id).machine_id != "" for job_id in waiting]
        assert states == [True] * count
        assert machines.count == count

    def test_no_more_machines_start_at_once_than_may_be_lost(self):
        machines = MachineStory(make_definition(max_running_jobs=99))
        jobs = [machines.submit_and_deliver(push(f"{number:02x}" * 20)) for number in range(AT_ONCE + 2)]
        machines.make_ec2_calls()
        waiting = [job_id for job_id in jobs if not machines.job(job_id).machine_id]
        assert [machines.job(job_id).waiting.reason for job_id in waiting] == [WaitReason.MACHINE_LIMIT] * 2
        assert f"{AT_ONCE} machines with the image for gpu start now" in machines.job(waiting[0]).waiting.detail

        machines.register(machines.machine(jobs[0]))
        machines.settle_all()
        assert machines.job(jobs[0]).state is JobState.LAUNCHING
        assert [bool(machines.job(job_id).machine_id) for job_id in waiting] == [False, False], "its start may fail"
        machines.run(jobs[0])
        machines.settle_all()
        assert [bool(machines.job(job_id).machine_id) for job_id in waiting] == [True, False]

        machines.register(machines.machine(jobs[1]))
        machines.settle_all()
        assert machines.job(jobs[1]).state is JobState.LAUNCHING
        assert [bool(machines.job(job_id).machine_id) for job_id in waiting] == [True, True], "tasks of the family run"

    @pytest.mark.parametrize(("useless", "is_used"), [(MOST_USELESS, True), (0, False)])
    def test_while_no_machine_of_our_own_may_be_requested_for_hours_a_capacity_provider_is_used(self, useless, is_used):
        machines = MachineStory()
        provider = make_offering(capacity_provider="g5-xlarge-spot", price_usd_per_hour=0.45)
        machines.offerings.available = (make_own_offering(G5, 0.40), provider)
        image = image_scope(AmiKind.GPU)
        starting = {f"s-{each}": machines.now for each in range(AT_ONCE)} if not useless else {}
        known = Starts(image, starting, {f"m-{each}": machines.now for each in range(useless)})
        machines.deps.machines.load_starts = lambda: {image: known}

        job_id = machines.submit_and_deliver()

        assert [each.capacity_provider for each in machines.tasks.requests] == ["g5-xlarge-spot"] * is_used
        assert machines.job(job_id).state is (JobState.LAUNCHING if is_used else JobState.WAITING)
        assert machines.fleet.requests == []

    @pytest.mark.parametrize(("usd", "is_used"), [(0.45, True), (0.55, False)])
    def test_beside_a_pool_that_is_tried_already_the_best_of_all_others_is_used(self, usd: float, is_used: bool):
        machines = MachineStory()
        tried = make_own_offering(G5, 0.40)
        other = make_own_offering(G6, 0.50)
        provider = make_offering(capacity_provider="g5-xlarge-spot", price_usd_per_hour=usd)
        machines.offerings.available = (tried, provider, other)
        known = Starts(tried.key, {"starts": machines.now}, {"late": machines.now})
        machines.deps.machines.load_starts = lambda: {tried.key: known}

        machines.submit_and_deliver()
        machines.make_ec2_calls()

        assert [each.capacity_provider for each in machines.tasks.requests] == ["g5-xlarge-spot"] * is_used
        asked = [override.offering for request in machines.fleet.requests for override in request.overrides]
        assert asked == [other.key] * (not is_used)

    def test_a_cause_that_costs_as_much_as_it_may_in_a_day_is_waited_for_like_a_refusal(self):
        machines = MachineStory()
        spent = Starts(image_scope(AmiKind.GPU), {}, {f"m-{each}": machines.now for each in range(MOST_USELESS)})
        machines.deps.machines.load_starts = lambda: {spent.cause: spent}

        job_id = machines.submit_and_deliver()

        job = machines.job(job_id)
        assert (job.waiting.reason, machines.count) == (WaitReason.REFUSED, 0)
        assert "12 machines with the image for gpu were of no use within 24 hours" in job.waiting.detail

    def test_of_those_that_request_at_once_each_counts_the_others(self):
        machines = MachineStory()
        load, behind = machines.deps.machines.load_starts, [{}]
        job_id = machines.start()
        machines.deps.machines.load_starts = lambda: behind.pop() if behind else load()

        second = machines.submit_and_deliver(push(OTHER_SHA))

        (image, family) = (load()[each].starting for each in (image_scope(AmiKind.GPU), placement_scope("trainer")))
        both = {machines.job(each).machine_id for each in (job_id, second)}
        assert set(image) == set(family) == both

    def test_a_job_that_others_are_always_faster_than_is_launched_again(self):
        machines = MachineStory()
        machines.start()
        machines.deps.machines.load_starts = dict
        second = machines.submit(push(OTHER_SHA))

        with pytest.raises(StaleWriteError):
            launch_attempt(second, machines.deps)

    def test_room_on_a_machine_that_is_kept_admits_a_job_too(self):
        machines = MachineStory(max_machines=1, **WARM)
        first = machines.train()
        second = machines.submit_and_deliver(push(OTHER_SHA))
        assert machines.job(second).waiting.reason is WaitReason.MACHINE_LIMIT

        machines.end(first)
        machines.settle_all()

        assert machines.attempt(second).placement.machine_id == machines.attempt(first).placement.machine_id

    def test_a_job_that_was_admitted_to_a_slot_and_gets_no_machine_leaves_the_slot_to_the_next(self):
        once = make_definition(max_running_jobs=1)
        machines = MachineStory(once, max_machines=1)
        first = machines.start()
        second = machines.submit_and_deliver(push(OTHER_SHA))
        third = machines.submit_and_deliver(push("c" * 40))
        assert machines.job(second).waiting.reason is WaitReason.SLOT

        cancel_job(first, "enough", machines.deps)
        machines.deliver()

        assert machines.job(second).waiting.reason is WaitReason.MACHINE_LIMIT
        assert third in {job_id for job_id, _ in machines.launches.requested}

    def test_the_limit_on_running_jobs_holds_before_a_machine_is_requested(self):
        machines = MachineStory(make_definition(max_running_jobs=1))
        machines.start()

        second = machines.submit_and_deliver(push(OTHER_SHA))

        assert machines.job(second).waiting.reason is WaitReason.SLOT
        assert machines.count == 1


def test_without_subnets_for_what_was_selected_the_job_waits_and_says_what_to_check():
    machines = MachineStory()
    machines.deps = replace(machines.deps, machine_settings=replace(machines.deps.machine_settings, subnets={}))

    job_id = machines.submit_and_deliver()

    assert machines.job(job_id).waiting.reason is WaitReason.REFUSED
    assert "check MachineSubnets and MachineLaunchTemplates" in machines.job(job_id).reason
    assert machines.count == 0
