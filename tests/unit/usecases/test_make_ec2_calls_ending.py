"""Instances are ended until EC2 confirms that they are, whatever fails on the way."""

from unittest.mock import Mock

import pytest

from fakes.story import MINUTE
from relaunch.core.machines.events import InstanceState
from relaunch.core.machines.machine import DeregisterNode
from relaunch.ports import NotGrantedError, TransientError


class TestEnding:
    """An instance is ended until EC2 confirms that it is."""

    @pytest.fixture
    def ended(self, machines) -> str:
        """Return the ID of a machine whose job is over, and whose instance nobody ended yet."""
        job_id = machines.train()
        machines.end(job_id)
        return machines.machine(job_id).machine_id

    def test_a_call_that_fails_is_made_again(self, machines, ended):
        terminate = machines.fleet.terminate
        machines.fleet.terminate = Mock(side_effect=TransientError("terminating: time-out"))
        with pytest.raises(TransientError):
            machines.make_ec2_calls()
        machines.fleet.terminate = terminate

        machines.look(after=MINUTE)
        machines.make_ec2_calls()

        assert machines.running_instances == set()

    def test_one_that_goes_on_running_is_ended_again(self, machines, ended):
        terminate, machines.fleet.terminate = machines.fleet.terminate, Mock(side_effect=machines.fleet.terminate)
        instance_id = machines.load(ended).instance_id
        running = machines.fleet.instances[instance_id]
        machines.make_ec2_calls()
        machines.fleet.instances[instance_id] = running
        machines.fleet.terminate = terminate

        machines.look(after=2 * MINUTE)
        machines.make_ec2_calls()

        assert machines.fleet.instances[instance_id].state is InstanceState.TERMINATED

    def test_one_that_ec2_refuses_to_end_as_it_aged_out_is_gone_after_the_grace(self, machines, ended):
        instance_id = machines.load(ended).instance_id
        machines.fleet.foreign[instance_id] = machines.fleet.instances.pop(instance_id)
        machines.settle_all()
        (refusal,) = (facts for name, facts in machines.log.lines if name == "not terminated")
        assert (refusal["machine_id"], refusal["instance_id"], refusal["is_alert"]) == (ended, instance_id, True)
        del machines.fleet.foreign[instance_id]

        for _ in range(8):
            machines.look(after=MINUTE)
            machines.settle_all()

        machines.assert_over(ended)

    def test_what_was_done_and_not_saved_is_done_again(self, machines, ended):
        save = machines.deps.machines.save_machine
        machines.deps.machines.save_machine = Mock(side_effect=TransientError("storing: time-out"))
        with pytest.raises(TransientError):
            machines.make_ec2_calls()
        machines.deps.machines.save_machine = save

        for _ in range(3):
            machines.look(after=2 * MINUTE)
            machines.settle_all()

        machines.assert_over(ended)

    @pytest.mark.parametrize("error", [TransientError("deregistering: time-out"), NotGrantedError("deregistering: no")])
    def test_jobs_are_charged_though_ecs_does_not_let_its_node_go(self, machines, ended, error):
        # EC2 tells for an hour why an instance ended; ECS may be away for longer, or a permission missing.
        deregister = machines.tasks.deregister
        machines.tasks.deregister = Mock(side_effect=error)
        machines.make_ec2_calls()
        machines.look(after=MINUTE)
        with pytest.raises(type(error), match="deregistering"):
            machines.make_ec2_calls()
        pending = machines.load(ended).pending
        machines.tasks.deregister = deregister

        machines.look(after=MINUTE)
        machines.make_ec2_calls()

        assert [type(each) for each in pending] == [DeregisterNode]
        machines.assert_over(ended)
