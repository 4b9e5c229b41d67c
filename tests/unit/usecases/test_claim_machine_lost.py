"""What a job does whose machine is lost, refused, or has lost its agent."""

from datetime import timedelta
from unittest.mock import Mock

from fakes.builders import make_failed_placement
from fakes.machine_story import G5, make_own_offering
from fakes.story import MINUTE
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.machine import Consequence, MachineState
from relaunch.core.offerings.capacity_memory import placement_scope
from relaunch.core.offerings.offering import OfferingKey
from relaunch.usecases.launch_attempt import launch_attempt


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
                machines.make_ec2_calls()
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
                machines.make_ec2_calls()
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
