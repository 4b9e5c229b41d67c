"""What becomes of a request for a machine whose function is killed, or whose job is cancelled."""

from unittest.mock import Mock

import pytest

from fakes.machine_story import G5, MachineStory
from fakes.story import MINUTE
from relaunch.core.machines.events import FleetAnswered, FleetUncertain, InstanceLaunched
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.requesting import ASK_TIMEOUT, LOOKED_FOR
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.cancel_job import cancel_job


class TestKilled:
    """A function that is killed leaves behind what the next one needs to know."""

    def test_before_it_asked_ec2_is_asked_later(self, machines):
        job_id = machines.submit_and_deliver()
        machines.fleet.request = Mock(side_effect=KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            machines.make_ec2_calls()
        del machines.fleet.request

        machines.look(after=ASK_TIMEOUT)
        machines.make_ec2_calls()

        assert machines.machine(job_id).state is MachineState.STARTING
        assert len(machines.fleet.requests) == 1

    def test_before_it_saved_the_answer_the_instance_is_found(self, machines):
        job_id = machines.submit_and_deliver()
        self._kill_after_launch(machines)

        machines.look(after=ASK_TIMEOUT)
        machines.make_ec2_calls()

        assert machines.machine(job_id).instance_id in machines.running_instances
        assert len(machines.fleet.requests) == 1

    def test_its_request_is_not_sent_again_long_after(self, machines):
        """How long EC2 keeps a client token is not published: a second instance could come of it."""
        job_id = machines.submit_and_deliver()
        first = machines.job(job_id).machine_id
        self._kill_after_launch(machines)
        machines.fleet.hidden |= set(machines.fleet.instances)

        machines.clock.advance(12 * 3600)
        machines.look()
        machines.make_ec2_calls()

        assert len(machines.fleet.requests) == 1
        assert machines.load(first).state is MachineState.GONE

    def _kill_after_launch(self, machines: MachineStory) -> None:
        request = machines.fleet.request

        def launch_and_die(asked):
            request(asked)
            raise KeyboardInterrupt

        machines.fleet.request = launch_and_die
        with pytest.raises(KeyboardInterrupt):
            machines.make_ec2_calls()
        machines.fleet.request = request


class TestCancelled:
    """The job is cancelled while its machine comes into being."""

    def test_before_ec2_was_asked_nothing_is_asked(self, machines):
        job_id = machines.submit_and_deliver()
        machine_id = machines.job(job_id).machine_id

        cancel_job(job_id, "enough", machines.deps)
        machines.settle_all()

        assert machines.fleet.requests == []
        machines.assert_over(machine_id)

    def test_while_ec2_is_asked_what_it_launches_is_ended(self, machines):
        job_id = machines.submit_and_deliver()
        machine_id = machines.job(job_id).machine_id
        ask = machines.fleet.request

        def ask_and_cancel(request):
            cancel_job(job_id, "enough", machines.deps)
            return ask(request)

        machines.fleet.request = ask_and_cancel
        machines.settle_all()
        machines.look(after=2 * MINUTE)
        machines.settle_all()

        machines.assert_over(machine_id)

    def test_after_an_unanswered_request_the_instance_is_only_looked_for(self, machines):
        job_id = machines.submit_and_deliver()
        machine_id = machines.job(job_id).machine_id
        machines.fleet.request = Mock(return_value=FleetUncertain("no answer"))
        machines.make_ec2_calls()
        cancel_job(job_id, "enough", machines.deps)

        machines.settle_all()
        machines.look(after=LOOKED_FOR)
        machines.settle_all()

        assert machines.fleet.request.call_count == 1, "an instance for nobody would be paid for a minute"
        machines.assert_over(machine_id)

    def test_after_a_throttled_request_it_is_not_sent_again(self, machines):
        job_id = machines.submit_and_deliver()
        machine_id = machines.job(job_id).machine_id
        machines.fleet.throttled = 1
        machines.make_ec2_calls()

        cancel_job(job_id, "enough", machines.deps)
        machines.settle_all()

        assert len(machines.fleet.requests) == 1
        machines.assert_over(machine_id)

    @pytest.mark.parametrize("is_ready", [False, True])
    def test_while_its_machine_starts_or_has_just_become_ready_it_is_ended(self, machines, is_ready: bool):
        job_id = machines.start()
        machine = machines.machine(job_id)
        if is_ready:
            machines.register(machine)

        cancel_job(job_id, "enough", machines.deps)
        machines.settle_all()
        machines.look(after=2 * MINUTE)
        machines.settle_all()

        machines.assert_over(machine.machine_id)


def test_a_late_answer_for_a_machine_that_was_given_up_ends_the_instance(machines):
    job_id = machines.submit_and_deliver()
    machine = machines.machine(job_id)
    cancel_job(job_id, "enough", machines.deps)
    assert machines.count == 0
    instance = machines.fleet.new_instance(G5, machine.machine_id)
    machines.fleet.instances[instance.instance_id] = instance

    answer = FleetAnswered(InstanceLaunched(instance.instance_id, G5))
    advance_machine(machine.machine_id, lambda _: answer, machines.deps)
    assert machines.count == 1
    machines.settle_all()
    machines.look(after=2 * MINUTE)
    machines.settle_all()

    machines.assert_over(machine.machine_id)
