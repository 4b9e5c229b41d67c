"""A job claims a machine with room, or requests one, within the limits of the stack."""

from dataclasses import replace
from datetime import timedelta

from fakes.machine_story import G5, MachineStory, make_own_offering
from fakes.story import MINUTE, OTHER_SHA, push
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.events import ClaimAsked
from relaunch.core.machines.machine import Claim, MachineState, Resources
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import MachineTakenError
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.claim_machine import in_turn

WARM = {"warm_time": timedelta(minutes=15)}


def test_a_warm_machine_is_used_at_once_by_the_next_job():
    machines = MachineStory(**WARM)
    machine_id = machines.leave_warm()

    job_id = machines.submit(push(OTHER_SHA))
    machines.settle_all()

    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.attempt(job_id).placement.machine_id == machine_id
    assert len(machines.fleet.requests) == 1


def test_a_warm_machine_that_nobody_needs_is_ended():
    machines = MachineStory(**WARM)
    machine_id = machines.leave_warm()

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
    machine_id = machines.leave_warm()
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
        machines.make_ec2_calls()
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
        machines.make_ec2_calls()

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
    machine_id = machines.leave_warm()
    machines.offerings.available = tuple(each for each in machines.offerings.available if each.key != G5)

    job_id = machines.submit_and_deliver(push(OTHER_SHA))

    assert machines.job(job_id).machine_id != machine_id


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
