"""What is done when EC2 takes a machine of our own away."""

import pytest

from fakes.machine_story import MachineStory
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.machine import MachineState


class TestMachineOfOurOwn:
    """What EC2 says of a machine of our own is told to it, and to the jobs on it."""

    def test_a_warning_stops_the_task_and_requests_the_next_machine(self, machines):
        job_id = machines.train()
        first = machines.machine(job_id)

        machines.warn(first.instance_id)

        assert machines.job(job_id).state is JobState.STOPPING
        assert machines.load(first.machine_id).warned_at == machines.now
        assert (job_id, 0) in machines.launches.requested

    def test_a_warning_that_comes_twice_stops_it_once(self, machines):
        job_id = machines.train()
        first = machines.machine(job_id)

        machines.warn(first.instance_id)
        machines.warn(first.instance_id)

        assert len(machines.tasks.stops) == 1

    def test_the_end_of_an_instance_is_the_end_of_its_machine(self, machines):
        job_id = machines.train()
        machine = machines.machine(job_id)

        machines.change_host(machine.instance_id, "shutting-down")
        assert machines.load(machine.machine_id).state is MachineState.ENDING
        machines.change_host(machine.instance_id, "terminated")
        machines.change_host(machine.instance_id, "shutting-down")

        assert machines.load(machine.machine_id).state is MachineState.GONE
        assert machines.count == 0

    @pytest.mark.parametrize("state", ["pending", "running"])
    def test_its_start_changes_nothing(self, machines, state: str):
        machine = machines.machine(machines.start())

        machines.change_host(machine.instance_id, state)

        assert machines.load(machine.machine_id) == machine

    def test_an_instance_that_somebody_stops_is_terminated(self, machines):
        machine = machines.machine(machines.train())

        machines.change_host(machine.instance_id, "stopping")
        machines.make_ec2_calls()

        assert machines.running_instances == set()

    def test_a_rebalance_recommendation_is_only_counted(self, machines):
        job_id = machines.train()
        machine = machines.machine(job_id)

        machines.recommend_rebalance(machine.instance_id)

        assert machines.job(job_id).state is JobState.RUNNING
        assert machines.load(machine.machine_id).warned_at is None

    def test_a_rebalance_recommendation_is_a_warning_where_the_stack_says_so(self):
        machines = MachineStory(starts_on_rebalance=True)
        job_id = machines.train()
        first = machines.machine(job_id)

        machines.recommend_rebalance(first.instance_id)
        machines.settle_all()

        assert machines.job(job_id).state is JobState.STOPPING
        assert f"rebalance recommendation for {first.instance_id}" in machines.tasks.stops[0][1]
        assert machines.load(first.machine_id).reason == "EC2 recommends to rebalance"
        second = machines.machine(job_id)
        assert second.machine_id != first.machine_id
        assert second.state is MachineState.STARTING
        assert "counted" in machines.log.decisions

    def test_a_rebalance_recommendation_for_another_instance_is_none_of_it(self):
        machines = MachineStory(starts_on_rebalance=True)
        job_id = machines.train()

        machines.recommend_rebalance("i-0somebody")

        assert machines.job(job_id).state is JobState.RUNNING
        assert machines.tasks.drained == []
