"""A job claims a machine with room, or requests one, within the limits of the stack."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition, make_failed_placement, make_offering
from fakes.machine_story import G5, MachineStory, make_own_offering
from fakes.story import MINUTE, push
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.events import ClaimAsked, RefusalKind
from relaunch.core.machines.machine import Claim, Consequence, MachineState, Resources
from relaunch.core.machines.starts import AT_ONCE, MOST_USELESS, Starts
from relaunch.core.offerings.capacity_memory import image_scope, placement_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import MachineTakenError, StaleWriteError
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.claim_machine import in_turn
from relaunch.usecases.launch_attempt import launch_attempt

WARM = {"warm_time": timedelta(minutes=15)}
OTHER_SHA = "b" * 40


def leave_warm(machines: MachineStory) -> str:
    """Train one job to its end; return the ID of its machine, which is kept."""
    job_id = machines.train()
    machine_id = machines.machine(job_id).machine_id
    machines.end(job_id)
    machines.settle_all()
    assert machines.load(machine_id).state is MachineState.READY
    return machine_id


def test_a_warm_machine_is_used_at_once_by_the_next_job():
    machines = MachineStory(**WARM)
    machine_id = leave_warm(machines)

    job_id = machines.submit(push(OTHER_SHA))
    machines.settle_all()

    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.attempt(job_id).placement.machine_id == machine_id
    assert len(machines.fleet.requests) == 1


def test_a_warm_machine_that_nobody_needs_is_ended():
    machines = MachineStory(**WARM)
    machine_id = leave_warm(machines)

    machines.look(after=16 * MINUTE)
    machines.settle_all()
    machines.look(after=2 * MINUTE)
    machines.settle_all()

    machines.assert_over(machine_id)


def test_a_machine_of_which_ec2_warned_before_its_answer_was_saved_is_not_claimed():
    machines = make_sharing_story()
    first = machines.machine(machines.start())
    machines.deps.jobs.save_warning(first.instance_id, machines.now)

    second = machines.submit_and_deliver(push(OTHER_SHA))

    assert machines.job(second).machine_id not in ("", first.machine_id)
    assert machines.load(first.machine_id).state is MachineState.ENDING


def test_of_two_jobs_that_race_for_one_machine_the_loser_requests_its_own():
    machines = MachineStory(**WARM)
    machine_id = leave_warm(machines)
    save = machines.jobs.save_job

    def save_after_another_claimed(decision):
        if decision.machines and machines.load(machine_id).claim_of("bert-1") is None:
            claim = ClaimAsked(Claim("bert-1", 1, Resources(gpus=1.0), machines.now))
            advance_machine(machine_id, lambda _: claim, machines.deps)
        return save(decision)

    machines.jobs.save_job = save_after_another_claimed
    job_id = machines.submit_and_deliver(push(OTHER_SHA))

    assert "machine taken" in machines.log.decisions
    assert machines.job(job_id).machine_id not in ("", machine_id)
    assert [each.job_id for each in machines.load(machine_id).claims] == ["bert-1"]
    assert machines.count == 2


def make_sharing_story(gpus: int = 8, **limits) -> MachineStory:
    """Return a story whose only machines have several GPUs, of which each job needs one."""
    machines = MachineStory(**limits)
    key = OfferingKey("g5.48xlarge" if gpus > 1 else "g5.xlarge", "us-east-1a", PurchaseOption.ON_DEMAND)
    row = load_catalogue()[key.instance_type]
    machines.offerings.available = (replace(make_own_offering(key, 16.288), instance_type=row),)
    return machines


def push_number(number: int):
    return push(f"{number + 16:x}" * 20)


def test_a_machine_that_others_take_again_and_again_is_claimed_while_it_has_room():
    machines = make_sharing_story()
    machine_id = machines.job(machines.submit_and_deliver(push_number(0))).machine_id
    save, joined = machines.jobs.save_job, iter(range(2))

    def save_after_another_joined(decision):
        if decision.machines and (number := next(joined, None)) is not None:
            claim = ClaimAsked(Claim(f"bert-{number}", 1, Resources(gpus=1.0), machines.now))
            advance_machine(machine_id, lambda _: claim, machines.deps)
        return save(decision)

    machines.jobs.save_job = save_after_another_joined
    job_id = machines.submit_and_deliver(push_number(1))

    assert machines.job(job_id).machine_id == machine_id
    assert machines.log.decisions.count("machine taken") == 2
    assert len(machines.load(machine_id).claims) == 4


def test_a_job_that_always_loses_requests_a_machine_after_a_few_looks():
    machines = make_sharing_story()
    machine_id = machines.job(machines.submit_and_deliver(push_number(0))).machine_id
    save = machines.jobs.save_job

    def always_later(decision):
        if decision.machines and decision.machines[0].machine.machine_id == machine_id:
            raise MachineTakenError(machine_id)
        return save(decision)

    machines.jobs.save_job = always_later
    job_id = machines.submit_and_deliver(push_number(1))

    assert machines.job(job_id).machine_id not in ("", machine_id)
    assert machines.log.decisions.count("machine taken") == 4


def test_a_new_machine_that_exists_already_lets_the_job_be_loaded_again():
    machines = MachineStory()
    save, failed = machines.jobs.save_job, iter([True])

    def exists_once(decision):
        if decision.machines and next(failed, False):
            raise MachineTakenError(decision.machines[0].machine.machine_id)
        return save(decision)

    machines.jobs.save_job = exists_once
    job_id = machines.submit_and_deliver()
    machines.launches.request_launch(job_id)
    machines.deliver()

    assert machines.job(job_id).waiting.reason is WaitReason.MACHINE


def test_jobs_of_a_burst_do_not_all_look_at_the_machines_in_one_order():
    ids = [f"m-{number}" for number in range(10)]
    orders = [in_turn(ids, f"bert-{number}") for number in range(20)]

    assert {order[0] for order in orders} == {"m-0"}, "the oldest is ready first"
    assert len({order[1] for order in orders}) > 5
    assert all(sorted(order) == sorted(ids) for order in orders)
    assert in_turn([], "bert-1") == []
    assert in_turn(ids, "bert-1") == in_turn(ids, "bert-1")


class TestGivingWay:
    """Jobs of a burst did not see each other's machines, and each requested one."""

    @staticmethod
    def request_blindly(machines: MachineStory, number: int) -> str:
        find = machines.deps.machines.load_with_room
        machines.deps.machines.load_with_room = lambda _limit: []
        job_id = machines.submit_and_deliver(push_number(number))
        machines.deps.machines.load_with_room = find
        machines.clock.advance(1)
        return job_id

    def test_the_younger_request_is_given_up_and_its_job_joins_the_older_one(self):
        machines = make_sharing_story()
        first, second = (self.request_blindly(machines, number) for number in range(2))
        younger = machines.job(second).machine_id
        assert machines.count == 2

        machines.settle_all()

        assert machines.job(first).machine_id == machines.job(second).machine_id
        assert len(machines.fleet.requests) == 1
        assert machines.count == 1
        assert machines.job(second).machines.failed == 0
        assert "its job fits on machine" in machines.load(younger).reason

    def test_a_job_moves_once(self):
        machines = make_sharing_story()
        self.request_blindly(machines, 0)
        second = self.request_blindly(machines, 1)
        machines.attend()
        find = machines.deps.machines.load_with_room
        machines.deps.machines.load_with_room = lambda _limit: []
        while machines.deliver():
            pass
        machines.deps.machines.load_with_room = find

        machines.settle_all()

        assert machines.job(second).machines.requested == 2
        assert len(machines.fleet.requests) == 2

    def test_a_job_that_joins_meanwhile_keeps_the_machine(self):
        machines = make_sharing_story()
        self.request_blindly(machines, 0)
        second = self.request_blindly(machines, 1)
        younger = machines.job(second).machine_id
        save = machines.deps.machines.save_machine

        def save_after_another_joined(decision):
            if decision.machine.machine_id == younger:
                machines.deps.machines.save_machine = save
                claim = ClaimAsked(Claim("bert-1", 1, Resources(gpus=1.0), machines.now))
                advance_machine(younger, lambda _: claim, machines.deps)
            return save(decision)

        machines.deps.machines.save_machine = save_after_another_joined
        machines.attend()

        assert machines.load(younger).state is MachineState.STARTING
        assert len(machines.fleet.requests) == 2

    def test_a_machine_that_is_full_with_its_job_gives_way_to_none(self):
        machines = make_sharing_story(gpus=1)
        for number in range(2):
            self.request_blindly(machines, number)

        machines.settle_all()

        assert len(machines.fleet.requests) == 2


def test_a_machine_of_a_type_that_was_not_kept_is_passed_over():
    machines = MachineStory(**WARM)
    machine_id = leave_warm(machines)
    machines.offerings.available = tuple(each for each in machines.offerings.available if each.key != G5)

    job_id = machines.submit_and_deliver(push(OTHER_SHA))

    assert machines.job(job_id).machine_id != machine_id


@pytest.mark.parametrize(("cap", "is_used"), [(0.40, True), (0.39, False)])
def test_a_machine_that_counts_with_more_than_the_job_may_pay_is_passed_over(cap: float, is_used: bool):
    machines = MachineStory(**WARM)
    machine_id = leave_warm(machines)
    # What it costs was not known as well when it was requested.
    machines.offerings.available = (make_own_offering(G5, 0.20),)
    machines.deps.definitions.save_definition(make_definition(max_price_usd_per_hour=cap))

    job_id = machines.submit_and_deliver(push(OTHER_SHA))

    assert (machines.job(job_id).machine_id == machine_id) is is_used


def test_a_job_that_claimed_a_machine_which_is_not_ready_is_told_when_it_is():
    machines = MachineStory()
    first = machines.start()
    machine = machines.machine(first)
    cancelled_later = machines.job(first)
    assert cancelled_later.waiting.detail == "EC2 is asked for g5.xlarge, g6.xlarge on spot in 2 zones"

    machines.clock.advance(121)
    machines.launches.request_launch(first)
    machines.deliver()

    waiting = machines.job(first).waiting
    assert (waiting.reason, waiting.detail) == (WaitReason.MACHINE, f"{machine.instance_id} ({G5}) is starting")
    assert waiting.since == cancelled_later.waiting.since


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
        machines.attend()
        machines.look(after=MINUTE)

        machines.settle_all()

        states = [machines.job(job_id).machine_id != "" for job_id in waiting]
        assert states == [True] * count
        assert machines.count == count

    def test_no_more_machines_start_at_once_than_may_be_lost(self):
        machines = MachineStory(make_definition(max_running_jobs=99))
        jobs = [machines.submit_and_deliver(push(f"{number:02x}" * 20)) for number in range(AT_ONCE + 2)]
        machines.attend()
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


class TestLost:
    """The machine of a job does not become ready, or is taken away."""

    def test_one_that_never_registers_is_ended_and_the_job_gets_another(self, machines):
        job_id = machines.start()
        first = machines.machine(job_id)

        while machines.load(first.machine_id).state is MachineState.STARTING:
            machines.look(after=MINUTE)
        assert machines.now - first.launched_at == timedelta(minutes=5)
        machines.settle_all()

        second = machines.machine(job_id)
        assert second.machine_id != first.machine_id
        assert "not ready within 0:05:00: it never registered" in machines.timeline(job_id)
        assert first.instance_id not in machines.running_instances

    def test_three_in_a_row_make_the_job_pause_with_a_sentence(self, machines):
        job_id = machines.start()
        for _ in range(12):
            if machines.job(job_id).machines.failed == 3:
                break
            if machines.job(job_id).machine_id:
                machines.attend()
                machines.change_host(machines.machine(job_id).instance_id, "terminated")
            machines.deliver()

        job = machines.job(job_id)
        assert job.waiting.reason is WaitReason.REFUSED
        assert job.waiting.until - machines.now == timedelta(minutes=15)
        assert job.reason.endswith("3 machines in a row were of no use to the job")
        assert not job.has_slot

    def test_one_on_which_ecs_finds_no_room_counts_like_one_that_never_registered(self, machines):
        machines.tasks.launch = Mock(return_value=make_failed_placement("RESOURCE:MEMORY"))
        job_id = machines.start()
        for _ in range(12):
            if machines.job(job_id).machines.failed == 3:
                break
            if machines.job(job_id).machine_id:
                machines.attend()
                machines.register(machines.machine(job_id))
            machines.deliver()

        job = machines.job(job_id)
        assert (job.waiting.reason, len(machines.fleet.requests)) == (WaitReason.REFUSED, 3)
        assert "the cluster placed nothing: RESOURCE:MEMORY" in job.reason
        # It says nothing of a pool.
        assert set(machines.deps.capacity.load_capacity_memory(machines.now)) == {placement_scope(job.revision.arn)}

    def test_one_that_is_warned_before_it_is_ready_is_ended_and_replaced(self, machines):
        job_id = machines.start()
        first = machines.machine(job_id)

        machines.warn(first.instance_id)
        machines.settle_all()

        assert machines.load(first.machine_id).state is MachineState.ENDING
        assert machines.machine(job_id).machine_id != first.machine_id
        assert machines.job(job_id).machines.failed == 0

    def test_one_that_is_warned_when_it_is_ready_and_not_used_yet_is_replaced(self, machines):
        job_id = machines.start()
        first = machines.machine(job_id)
        machines.register(first)

        machines.warn(first.instance_id)
        machines.settle_all()

        assert machines.load(first.machine_id).state is MachineState.ENDING
        assert machines.machine(job_id).machine_id != first.machine_id
        assert machines.tasks.requests == []

    def test_one_that_ec2_ends_before_it_registers_is_replaced(self, machines):
        job_id = machines.start()
        first = machines.machine(job_id)
        machines.fleet.end(first.instance_id, "Server.SpotInstanceTermination: Spot instance termination")

        machines.change_host(first.instance_id, "terminated")
        machines.settle_all()
        assert machines.load(first.machine_id).state is MachineState.ENDING, "the event does not say why"
        machines.look(after=MINUTE)

        assert machines.load(first.machine_id).state is MachineState.GONE
        assert "Server.SpotInstanceTermination" in machines.load(first.machine_id).reason
        assert machines.deps.capacity.load_capacity_memory(machines.now) == {}
        assert machines.machine(job_id).state is MachineState.STARTING
        assert machines.count == 1

    def test_one_that_becomes_ready_after_the_job_was_given_another_is_not_used(self, machines):
        job_id = machines.start()
        first = machines.machine(job_id)
        machines.warn(first.instance_id)
        machines.settle_all()
        second = machines.machine(job_id)

        machines.register(first)
        machines.settle_all()
        assert machines.load(first.machine_id).state is MachineState.ENDING
        machines.register(second)
        machines.settle_all()

        assert machines.tasks.requests[-1].instance_id == second.instance_id

    def test_a_refused_one_is_not_counted_as_failed(self, machines):
        machines.fleet.refused[G5] = (RefusalKind.CONFIGURATION, "InvalidAMIID.NotFound")
        machines.fleet.refused |= {each.key: machines.fleet.refused[G5] for each in machines.offerings.available}
        job_id = machines.start()

        machines.deliver()

        job = machines.job(job_id)
        assert (job.waiting.reason, job.machines.failed) == (WaitReason.REFUSED, 0)
        assert "check MachineLaunchTemplates and MachineSubnets" in job.reason
        assert job.machines.refused_since is not None

    def test_one_that_was_deleted_is_replaced(self, machines):
        job_id = machines.start()
        load = machines.deps.machines.load_machine
        lost = machines.job(job_id).machine_id
        machines.deps.machines.load_machine = lambda machine_id: None if machine_id == lost else load(machine_id)

        machines.launches.request_launch(job_id)
        machines.settle_all()

        assert machines.job(job_id).machine_id not in ("", lost)
        assert f"machine {lost} is gone" in machines.timeline(job_id)


class TestAgent:
    def test_one_that_is_not_connected_for_a_moment_costs_no_machine(self, machines):
        machines.tasks.outcomes.append(make_failed_placement("AGENT"))
        job_id = machines.place()

        job = machines.job(job_id)
        assert [each.placement_number for each in machines.tasks.requests] == [1, 2]
        assert len({each.instance_id for each in machines.tasks.requests}) == 1
        assert (job.state, len(machines.fleet.requests), job.machines.failed) == (JobState.LAUNCHING, 1, 0)
        assert "the agent of" in machines.timeline(job_id)

    def test_a_message_that_comes_twice_is_no_try_before_its_time(self, machines):
        machines.tasks.outcomes.extend([make_failed_placement("AGENT")] * 4)
        job_id = machines.start()
        machines.register(machines.machine(job_id))
        for _ in range(4):
            machines.deliver()

        launch_attempt(job_id, machines.deps)

        assert len(machines.tasks.requests) == 4

    def test_one_that_stays_away_costs_its_machine_after_three_minutes(self, machines):
        machines.tasks.launch = Mock(return_value=make_failed_placement("AGENT"))
        job_id = machines.start()
        first, began = machines.machine(job_id), machines.now
        machines.register(first)
        while machines.load(first.machine_id).state is MachineState.READY:
            assert machines.deliver()
        machines.settle_all()

        assert timedelta(minutes=3) <= machines.now - began < timedelta(minutes=4)
        assert len(machines.fleet.requests) == 2
        assert first.instance_id not in machines.running_instances


def test_a_refused_machine_says_what_its_job_does_next(machines):
    machines.fleet.refused = dict.fromkeys(
        (each.key for each in machines.offerings.available), (RefusalKind.ACCOUNT_LIMIT, "MaxFleetCountExceeded")
    )
    job_id = machines.start()

    assert machines.load(machines.job(job_id).machine_id).refusal is Consequence.PAUSE


def test_a_machine_of_a_type_that_is_not_known_any_more_is_given_up(machines):
    job_id = machines.submit()
    machines.settle_all()
    first = machines.machine(job_id)
    machines.offerings.available = (
        make_own_offering(OfferingKey("p5.48xlarge", "us-east-1a", PurchaseOption.SPOT), 40.0),
    )

    machines.register(first)
    machines.deliver()

    assert "nothing is known of the instance type" in machines.timeline(job_id)
    assert machines.load(first.machine_id).state is MachineState.ENDING
