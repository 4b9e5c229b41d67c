"""EC2 is asked once for each machine, whatever is lost, repeated or refused."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.machine_story import FIRST_TIER, G5, G6, G6_DEMAND, MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.events import ClaimAsked, FleetAsked, FleetRefused, FleetUncertain, RefusalKind
from relaunch.core.machines.machine import NOTHING, Claim, Consequence, MachineState
from relaunch.core.machines.requesting import LOOKED_FOR, SENT_AGAIN_FOR
from relaunch.ports import StaleWriteError
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.make_ec2_calls import make_ec2_calls


def refuse(machines: MachineStory, kind: RefusalKind, code: str, *offerings) -> None:
    for offering in offerings or FIRST_TIER:
        machines.fleet.refused[offering] = (kind, code)


def test_a_job_gets_a_machine_runs_on_it_and_the_machine_ends_with_it(machines):
    job_id = machines.submit_and_deliver()
    waiting = machines.job(job_id)
    assert (waiting.state, waiting.waiting.reason, waiting.has_slot) == (JobState.WAITING, WaitReason.MACHINE, True)
    assert waiting.waiting.detail == "EC2 is asked for g5.xlarge, g6.xlarge on spot in 2 zones"

    machines.make_ec2_calls()
    machine = machines.machine(job_id)
    assert (machine.state, machine.offering, machines.count) == (MachineState.STARTING, G5, 1)

    machines.register(machine)
    machines.settle_all()
    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.tasks.requests[-1].instance_id == machine.instance_id

    machines.run(job_id)
    machines.end(job_id)
    assert machines.job(job_id).state is JobState.SUCCEEDED
    assert machines.machine(job_id).state is MachineState.ENDING
    assert machines.count == 1, "it counts until EC2 says that it is gone"

    machines.settle_all()
    machines.look(after=2 * MINUTE)
    machines.settle_all()
    machines.assert_over(machine.machine_id)
    assert machines.tasks.instances == {}, "its registration is gone too"
    assert machines.sweep() == 0


def test_a_message_about_no_machine_is_nothing(machines):
    assert make_ec2_calls("m-unknown", machines.deps) is None


def test_a_message_that_comes_twice_asks_ec2_once(machines):
    job_id = machines.submit_and_deliver()
    machines.queue.requested *= 2

    machines.make_ec2_calls()

    assert len(machines.fleet.requests) == 1
    assert machines.machine(job_id).state is MachineState.STARTING


def test_two_functions_that_ask_at_once_get_one_instance(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    ask = machines.fleet.request

    def ask_while_another_does(request):
        machines.fleet.request = ask
        make_ec2_calls(machine_id, machines.deps)
        return ask(request)

    machines.fleet.request = ask_while_another_does
    machines.make_ec2_calls()

    assert len(machines.running_instances) == 1
    assert len({request.client_token for request in machines.fleet.requests}) == 1
    assert machines.load(machine_id).state is MachineState.STARTING
    assert machines.count == 1


def test_who_loses_the_race_to_ask_does_not_ask(machines):
    machines.submit_and_deliver()
    save = machines.deps.machines.save_machine
    machines.deps.machines.save_machine = Mock(side_effect=StaleWriteError("another was faster"))

    with pytest.raises(StaleWriteError):
        machines.make_ec2_calls()

    machines.deps.machines.save_machine = save
    assert machines.fleet.requests == []


def test_a_job_that_joins_while_ec2_is_about_to_be_asked_does_not_delay_the_request(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    save = machines.deps.machines.save_machine

    def save_after_another_joined(decision):
        machines.deps.machines.save_machine = save
        joined = ClaimAsked(Claim("bert-1", 1, NOTHING, machines.now))
        advance_machine(machine_id, lambda _: joined, machines.deps)
        return save(decision)

    machines.deps.machines.save_machine = save_after_another_joined
    machines.make_ec2_calls()

    assert len(machines.fleet.requests) == 1
    assert machines.load(machine_id).state is MachineState.STARTING
    assert [each.job_id for each in machines.load(machine_id).claims] == [job_id, "bert-1"]


def test_a_request_that_its_job_withdraws_just_before_it_is_sent_is_not_sent(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    save = machines.deps.machines.save_machine

    def save_after_the_job_left(decision):
        machines.deps.machines.save_machine = save
        cancel_job(job_id, "enough", machines.deps)
        return save(decision)

    machines.deps.machines.save_machine = save_after_the_job_left
    machines.make_ec2_calls()

    assert machines.fleet.requests == []
    machines.assert_over(machine_id)


def test_of_two_functions_that_are_about_to_ask_one_does(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    save = machines.deps.machines.save_machine

    def save_after_another_asked(decision):
        machines.deps.machines.save_machine = save
        advance_machine(machine_id, lambda _: FleetAsked(), machines.deps)
        return save(decision)

    machines.deps.machines.save_machine = save_after_another_asked
    machines.make_ec2_calls()

    assert machines.fleet.requests == []
    assert machines.load(machine_id).asked_at == machines.now


def test_an_unanswered_request_that_had_an_effect_is_found_by_its_tag(machines):
    job_id = machines.submit_and_deliver()
    machines.fleet.lost = 1

    machines.make_ec2_calls()
    assert machines.machine(job_id).state is MachineState.REQUESTED
    machines.make_ec2_calls()

    assert machines.machine(job_id).instance_id in machines.running_instances
    assert len(machines.fleet.requests) == 1
    assert machines.machine(job_id).uncertain_since is None


def test_an_unanswered_request_that_ec2_does_not_show_yet_is_sent_again_with_the_same_token(machines):
    job_id = machines.submit_and_deliver()
    machines.fleet.lost = 1
    machines.make_ec2_calls()
    machines.fleet.hidden |= set(machines.fleet.instances)

    machines.make_ec2_calls()

    first, second = machines.fleet.requests
    assert first == second
    assert machines.machine(job_id).state is MachineState.STARTING
    assert len(machines.running_instances) == 1


def test_a_request_whose_outcome_stays_unknown_is_given_up_and_the_job_gets_another_machine(machines):
    job_id = machines.submit_and_deliver()
    first = machines.job(job_id).machine_id
    machines.fleet.request = Mock(return_value=FleetUncertain("no answer to CreateFleet: time-out"))
    since = machines.now

    while machines.load(first).state is MachineState.REQUESTED:
        assert machines.make_ec2_calls()

    assert machines.now - since >= LOOKED_FOR
    sent = machines.fleet.request.call_count
    assert sent <= SENT_AGAIN_FOR / timedelta(seconds=5) + 1
    assert "no instance has its tag" in machines.load(first).reason
    machines.deliver()
    assert machines.job(job_id).machines.failed == 1
    machines.deliver()
    assert machines.job(job_id).machine_id not in ("", first)


def test_a_throttled_request_is_sent_again_later_and_darkens_nothing(machines):
    job_id = machines.submit_and_deliver()
    machines.fleet.throttled = 1

    machines.make_ec2_calls()
    ((_, delay),) = machines.queue.requested
    assert delay > 0
    assert "Request limit exceeded" in machines.machine(job_id).reason
    machines.make_ec2_calls()

    assert machines.machine(job_id).state is MachineState.STARTING
    assert machines.deps.capacity.load_capacity_memory(machines.now) == {}


def test_a_refused_request_is_followed_by_the_next_tier_with_another_token(machines):
    refuse(machines, RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    job_id = machines.submit_and_deliver()
    first = machines.machine(job_id)

    machines.settle_all()

    second = machines.machine(job_id)
    assert machines.load(first.machine_id).refusal is Consequence.NEXT
    assert (second.state, second.offering) == (MachineState.STARTING, G6_DEMAND)
    assert first.request.client_token != second.request.client_token
    assert set(machines.deps.capacity.load_capacity_memory(machines.now)) == {G5, G6}
    assert machines.count == 1
    assert machines.job(job_id).machines.failed == 0


def test_an_answer_without_instance_and_error_is_a_lack_of_capacity(machines):
    job_id = machines.submit_and_deliver()
    machines.fleet.request = Mock(return_value=FleetRefused(()))

    machines.make_ec2_calls()

    assert machines.machine(job_id).refusal is Consequence.NEXT
    assert set(machines.deps.capacity.load_capacity_memory(machines.now)) == {G5, G6}


def test_a_missing_permission_pauses_the_job_for_longer_and_longer_and_darkens_nothing(machines):
    refuse(machines, RefusalKind.NOT_PERMITTED, "UnauthorizedOperation", *FIRST_TIER, G6_DEMAND)
    job_id = machines.submit_and_deliver()
    waits = []
    for _ in range(6):
        machines.make_ec2_calls()
        assert machines.load(machines.job(job_id).machine_id).is_alert
        machines.deliver()
        job = machines.job(job_id)
        assert (job.state, job.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
        assert "a permission is missing: grant it" in job.reason
        waits.append(job.waiting.until - machines.now)
        while not machines.job(job_id).machine_id:
            machines.reconcile(after=MINUTE)
            machines.deliver()

    assert waits[-1] > 3 * waits[0]
    assert machines.deps.capacity.load_capacity_memory(machines.now) == {}
    assert machines.count == 1, "only the one that is asked for now"
    machines.fleet.refused.clear()
    machines.settle_all()
    assert machines.machine(job_id).state is MachineState.STARTING


def test_a_throttle_among_the_errors_is_followed_by_a_new_token_and_darkens_nothing(machines):
    refuse(machines, RefusalKind.THROTTLED, "RequestLimitExceeded")
    job_id = machines.submit_and_deliver()
    first = machines.job(job_id).machine_id
    machines.make_ec2_calls()
    machines.fleet.refused.clear()

    machines.settle_all()

    assert machines.load(first).refusal is Consequence.AGAIN
    assert machines.machine(job_id).offering == G5
    assert machines.job(job_id).machine_id != first
    assert machines.deps.capacity.load_capacity_memory(machines.now) == {}
