"""Whole lives of machines, as the metrics see them."""

from unittest.mock import Mock

import pytest

from fakes.machine_story import G5, G6, G6_DEMAND, MachineStory
from fakes.story import MINUTE
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.machines.events import FleetRefused, FleetUncertain, Refusal, RefusalKind
from relaunch.core.machines.machine import MachineState
from relaunch.ports import StaleWriteError, Termination, TransientError

NO_CAPACITY = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
NOT_PERMITTED = (RefusalKind.NOT_PERMITTED, "UnauthorizedOperation")


def refuse_ends(machines: MachineStory, answer: Termination = Termination.REFUSED) -> None:
    """Let EC2 refuse to terminate what goes on running."""
    machines.fleet.terminate = Mock(side_effect=lambda ids: dict.fromkeys(ids, answer))


def test_a_machine_is_requested_once_however_often_ec2_is_asked(machines):
    machines.fleet.throttled = 2
    machines.start()
    machines.settle_all()

    assert len(machines.fleet.requests) == 3
    assert machines.metrics.values(Metric.MACHINES_REQUESTED) == [1]
    assert machines.metrics.of(Metric.MACHINES_REFUSED) == []


def test_each_tier_that_ec2_refuses_is_a_request_and_a_refusal(machines):
    machines.fleet.refused = dict.fromkeys((G5, G6), NO_CAPACITY)
    machines.start()
    machines.settle_all()

    assert machines.metrics.values(Metric.MACHINES_REQUESTED) == [1, 1]
    assert [each.label for each in machines.metrics.of(Metric.MACHINES_REFUSED)] == ["next"]
    assert machines.metrics.of(Metric.MACHINE_ALERTS) == []


def test_a_missing_permission_alerts_once_for_each_request(machines):
    machines.fleet.refused = dict.fromkeys((G5, G6, G6_DEMAND), NOT_PERMITTED)
    machines.start()

    assert [each.label for each in machines.metrics.of(Metric.MACHINES_REFUSED)] == ["pause"]
    assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1]


def test_a_missing_permission_alerts_at_once_also_while_an_earlier_call_is_looked_for(machines):
    refused = FleetRefused((Refusal(*NOT_PERMITTED),), is_raised=True)
    machines.fleet.request = Mock(side_effect=[FleetUncertain("no answer to CreateFleet: time-out"), refused, refused])
    job_id = machines.submit_and_deliver()
    machines.make_ec2_calls()
    assert machines.metrics.values(Metric.MACHINE_ALERTS) == []

    machines.make_ec2_calls()

    assert machines.machine(job_id).state is MachineState.REQUESTED
    assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1]
    machines.make_ec2_calls()
    assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1]


def test_a_machine_is_timed_until_it_is_ready_also_if_its_registration_is_told_twice(machines):
    job_id = machines.start()
    machines.clock.advance(90)
    machines.register(machines.machine(job_id))
    machines.register(machines.machine(job_id))
    machines.settle_all()

    assert machines.metrics.values(Metric.MACHINE_TO_READY) == [90]


def test_a_machine_that_never_registers_was_not_ready_once(machines):
    machines.start()
    for _ in range(8):
        machines.look(after=MINUTE)

    assert machines.metrics.values(Metric.MACHINES_NOT_READY) == [1]
    assert machines.metrics.of(Metric.MACHINE_TO_READY) == []


def test_what_could_not_be_saved_is_not_counted(machines):
    job_id = machines.start()
    machines.deps.machines.save_machine = Mock(side_effect=TransientError("throttled"))

    with pytest.raises(TransientError):
        machines.register(machines.machine(job_id))

    assert machines.metrics.of(Metric.MACHINE_TO_READY) == []


class TestEnding:
    """EC2 refuses to terminate an instance that lives."""

    @pytest.fixture
    def ended(self, machines) -> str:
        """Return the ID of a machine whose job is over, and whose instance EC2 refuses to terminate."""
        job_id = machines.train()
        refuse_ends(machines)
        machines.end(job_id)
        return machines.machine(job_id).machine_id

    def test_it_counts_once_while_it_is_tried_again_each_minute(self, machines, ended):
        for _ in range(5):
            machines.settle_all()
            machines.look(after=2 * MINUTE)

        assert machines.fleet.terminate.call_count > 3
        assert machines.metrics.values(Metric.TERMINATIONS_REFUSED) == [1]
        assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1]
        assert machines.load(ended).state is MachineState.ENDING
        alerts = [facts["reason"] for name, facts in machines.log.lines if facts.get("is_alert")]
        assert alerts == [machines.load(ended).reason]

    def test_it_counts_later_if_it_could_not_be_noted(self, machines, ended):
        store, save = machines.deps.machines, machines.deps.machines.save_machine
        store.save_machine = Mock(side_effect=StaleWriteError("saved by another"))
        machines.make_ec2_calls()
        assert machines.metrics.of(Metric.TERMINATIONS_REFUSED) == []

        store.save_machine = save
        machines.look(after=2 * MINUTE)
        machines.settle_all()
        assert machines.metrics.values(Metric.TERMINATIONS_REFUSED) == [1]

    def test_one_that_ec2_ends_or_does_not_know_is_not_refused(self, machines):
        job_id = machines.train()
        refuse_ends(machines, Termination.ABSENT)
        machines.end(job_id)
        machines.settle_all()

        assert machines.metrics.of(Metric.TERMINATIONS_REFUSED) == []
        assert machines.metrics.of(Metric.MACHINE_ALERTS) == []


class TestSweep:
    """An instance without a machine."""

    @pytest.fixture(autouse=True)
    def leaked(self, machines) -> str:
        """Return the ID of an instance that no machine accounts for."""
        instance = machines.fleet.new_instance(G5, "m-nobody")
        machines.fleet.instances[instance.instance_id] = instance
        return instance.instance_id

    def test_it_is_counted_by_the_sweep_that_ends_it(self, machines):
        machines.sweep()
        machines.sweep()

        assert machines.metrics.values(Metric.MACHINES_LEAKED) == [1]
        assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1]
        assert machines.metrics.of(Metric.TERMINATIONS_REFUSED) == []

    def test_it_is_counted_again_as_long_as_ec2_refuses_to_end_it(self, machines, leaked):
        refuse_ends(machines)
        machines.sweep()
        machines.sweep()

        assert machines.metrics.values(Metric.MACHINES_LEAKED) == [1, 1]
        assert machines.metrics.values(Metric.TERMINATIONS_REFUSED) == [1, 1]
        assert machines.metrics.values(Metric.MACHINE_ALERTS) == [1, 1]
        assert ("not terminated", {"instance_id": leaked, "is_alert": True}) in machines.log.lines

    def test_it_is_counted_also_if_ec2_does_not_answer(self, machines):
        machines.fleet.terminate = Mock(side_effect=TransientError("terminating: time-out"))

        assert machines.sweep() == 0
        assert machines.metrics.values(Metric.MACHINES_LEAKED) == [1]
