"""What events did not tell is found out, and instances that no machine accounts for are ended."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import NOW
from fakes.machine_story import G5, MachineStory
from fakes.stored_machines import change
from fakes.story import MINUTE
from relaunch.core.jobs.effects import AdmitWaiting, ReleaseMachine
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.events import InstanceState
from relaunch.core.machines.machine import MachineState
from relaunch.ports import PermanentError, Termination, TransientError
from relaunch.usecases.advance_job import finish_pending
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.reconcile_machines import is_instance_sweep_due, reconcile_machines, sweep_instances
from relaunch.usecases.sweep_cluster import is_sweep_due


def launch_for(machines: MachineStory, machine_id: str) -> str:
    """Let EC2 launch an instance with the tag of a machine, of which nobody heard; return its ID."""
    instance = machines.fleet.new_instance(G5, machine_id)
    machines.fleet.instances[instance.instance_id] = instance
    return instance.instance_id


def close(machines: MachineStory) -> None:
    """Let what ends be gone."""
    for _ in range(3):
        machines.settle_all()
        machines.look(after=2 * MINUTE)


def test_instances_are_swept_every_fifth_minute_and_not_with_the_cluster():
    minutes = [NOW.replace(minute=minute) for minute in range(60)]

    swept = [each.minute for each in minutes if is_instance_sweep_due(each)]

    assert swept == [3, 8, 13, 18, 23, 28, 33, 38, 43, 48, 53, 58]
    assert not any(is_sweep_due(each) for each in minutes if is_instance_sweep_due(each))


def test_a_registration_whose_event_was_lost_is_found(machines):
    job_id = machines.start()
    machine = machines.machine(job_id)
    machines.register(machine, is_told=False)

    assert machines.look(after=2 * MINUTE) == 1
    machines.settle_all()

    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.tasks.requests[-1].instance_id == machine.instance_id


def test_a_warning_that_came_before_ec2s_answer_was_saved_is_found(machines):
    job_id = machines.start()
    machine = machines.machine(job_id)
    machines.deps.jobs.save_warning(machine.instance_id, machines.now)

    machines.look(after=2 * MINUTE)

    assert machines.load(machine.machine_id).state is MachineState.ENDING
    assert machines.load(machine.machine_id).warned_at == machines.now - 2 * MINUTE


def test_a_machine_that_is_not_due_is_not_looked_at(machines):
    machines.start()

    assert machines.look(after=MINUTE) == 0


def test_an_end_whose_event_was_lost_is_found(machines):
    job_id = machines.train()
    machine = machines.machine(job_id)
    machines.fleet.end(machine.instance_id, "Server.SpotInstanceTermination: Spot instance termination")

    machines.look(after=10 * MINUTE)

    assert machines.load(machine.machine_id).state is MachineState.GONE
    assert machines.count == 0


def test_an_instance_that_ec2_does_not_show_yet_is_not_lost(machines):
    job_id = machines.start()
    machine = machines.machine(job_id)
    machines.fleet.hidden.add(machine.instance_id)
    machines.look(after=2 * MINUTE)
    assert machines.machine(job_id).unseen_since == machines.now

    machines.fleet.hidden.clear()
    machines.look(after=MINUTE)
    assert machines.machine(job_id).unseen_since is None
    assert machines.machine(job_id).state is MachineState.STARTING


def test_a_registration_shows_that_an_unseen_instance_lives(machines):
    job_id = machines.start()
    machine = machines.machine(job_id)
    machines.fleet.hidden.add(machine.instance_id)
    machines.look(after=2 * MINUTE)

    machines.register(machine)

    assert machines.machine(job_id).unseen_since is None


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "not-there"])
def test_a_claim_of_a_job_that_does_not_need_the_machine_is_released_once_it_has_no_task_there(machines, is_known):
    job_id = machines.train()
    machine_id = machines.machine(job_id).machine_id
    job = machines.job(job_id)
    machines.jobs.load_job = lambda _job_id: replace(job, state=JobState.SUCCEEDED) if is_known else None

    machines.look(after=10 * MINUTE)
    assert [each.job_id for each in machines.load(machine_id).claims] == [job_id]

    machines.tasks.tasks.clear()
    machines.look(after=10 * MINUTE)
    assert machines.load(machine_id).state is MachineState.ENDING


def test_a_claim_whose_release_did_not_reach_the_machine_is_released_as_its_job_has_saved_it():
    story = MachineStory(warm_time=60 * MINUTE)
    job = story.job(story.train())
    machine_id = story.machine(job.job_id).machine_id
    release = ReleaseMachine(machine_id, "the GPU failed", is_unusable=True)
    others = (AdmitWaiting(), ReleaseMachine("m-another", "not needed"))
    story.jobs.load_job = lambda _job_id: replace(job, state=JobState.FAILED, pending=(*others, release))
    story.tasks.tasks.clear()

    story.look(after=10 * MINUTE)

    ended = story.load(machine_id)
    assert (ended.state, ended.reason) == (MachineState.ENDING, f"{job.job_id}; the GPU failed")


class TestARestoredTable:
    """The table is older than what lives: nothing of that is ended."""

    def test_a_machine_is_claimed_for_a_task_that_no_claim_accounts_for(self, machines):
        job_id = machines.train()
        machine = machines.machine(job_id)
        machines.deps.machines.save_machine(change(replace(machine, claims=(), idle_since=NOW), machine))
        machines.jobs.load_job = lambda _job_id: None

        for _ in range(3):
            machines.look(after=30 * MINUTE)
        kept = machines.load(machine.machine_id)
        assert (kept.state, [each.job_id for each in kept.claims]) == (MachineState.READY, [job_id])

        machines.tasks.tasks.clear()
        machines.look(after=10 * MINUTE)
        assert machines.load(machine.machine_id).state is MachineState.ENDING

    def test_an_instance_with_a_task_is_left_although_no_machine_has_it(self, machines):
        job_id = machines.train()
        instance_id = machines.machine(job_id).instance_id
        machines.deps.machines.load_machine = lambda _machine_id: None

        assert machines.sweep() == 0
        assert machines.running_instances == {instance_id}
        assert [facts["is_alert"] for name, facts in machines.log.lines if name == "left"] == [True]

        machines.tasks.tasks.clear()
        assert machines.sweep() == 1

    def test_an_instance_of_which_ecs_does_not_tell_its_tasks_is_left(self, machines):
        machines.tasks.find_tasks_on = Mock(side_effect=TransientError("no answer"))
        launch_for(machines, "m-nobody")

        assert machines.sweep() == 0
        assert len(machines.running_instances) == 1


def test_a_job_that_cannot_be_loaded_keeps_its_claim_and_does_not_keep_a_machine_beyond_its_deadline(machines):
    job_id = machines.start()
    machine_id = machines.machine(job_id).machine_id
    machines.jobs.load_job = Mock(side_effect=TransientError("no answer"))

    machines.look(after=2 * MINUTE)
    assert [each.job_id for each in machines.load(machine_id).claims] == [job_id]
    for _ in range(4):
        machines.look(after=MINUTE)

    assert machines.load(machine_id).state is MachineState.ENDING
    assert "postponed" in machines.log.decisions


def test_a_release_that_comes_twice_changes_nothing(machines):
    job_id = machines.train()
    machine_id = machines.machine(job_id).machine_id
    machines.end(job_id)
    before = machines.load(machine_id)

    finish_pending(replace(machines.job(job_id), pending=(ReleaseMachine(machine_id, "again"),)), machines.deps)

    assert machines.load(machine_id).timeline == before.timeline
    assert machines.count == 1


def test_machines_of_which_ec2_says_nothing_are_looked_at_all_the_same(machines):
    machines.start()
    machines.fleet.describe = Mock(side_effect=TransientError("describing: time-out"))

    for _ in range(5):
        machines.look(after=MINUTE)

    assert "instances not described" in machines.log.decisions
    assert {machines.load(each).state for each in machines.deps.machines.load_living(9)} == {MachineState.ENDING}


def test_one_machine_with_an_error_does_not_keep_the_others_waiting(machines):
    first, second = machines.start(), machines.start("b" * 40)
    for job_id in (first, second):
        machines.register(machines.machine(job_id), is_told=False)
    broken = machines.machine(first).instance_id
    find = machines.tasks.find_node_of

    def find_but_one(instance_id):
        if instance_id == broken:
            raise TransientError("no answer")
        return find(instance_id)

    machines.tasks.find_node_of = find_but_one
    machines.look(after=2 * MINUTE)

    assert machines.machine(first).state is MachineState.STARTING
    assert machines.machine(second).state is MachineState.READY
    assert "postponed" in machines.log.decisions


def test_a_machine_that_cannot_be_loaded_does_not_keep_the_others_waiting(machines):
    first, second = machines.start(), machines.start("b" * 40)
    machines.register(machines.machine(second), is_told=False)
    broken, load = machines.job(first).machine_id, machines.deps.machines.load_machine

    def load_but_one(machine_id):
        if machine_id == broken:
            raise TransientError("no answer")
        return load(machine_id)

    machines.deps.machines.load_machine = load_but_one
    machines.look(after=2 * MINUTE)

    assert machines.machine(second).state is MachineState.READY


def test_what_there_is_no_time_for_stays_due(machines):
    machines.start()
    machines.clock.advance(120)

    assert reconcile_machines(machines.deps, lambda: False) == 0
    assert reconcile_machines(machines.deps) == 1


class TestSweep:
    """The instances with the tag of the stack are compared with its machines."""

    def test_an_instance_of_a_machine_is_left_alone(self, machines):
        machines.train()

        assert machines.sweep() == 0
        assert len(machines.running_instances) == 1

    def test_an_instance_without_a_machine_is_ended(self, machines):
        leaked = launch_for(machines, "m-nobody")
        untagged = launch_for(machines, "")

        assert machines.sweep() == 2
        assert machines.running_instances == set()
        assert {facts["instance_id"] for name, facts in machines.log.lines if name == "leaked"} == {leaked, untagged}

    def test_an_instance_is_ended_only_if_the_second_look_finds_no_machine_either(self, machines):
        job_id = machines.train()
        machine = machines.machine(job_id)
        machines.deps.machines.load_machine = Mock(side_effect=[None, machine])

        assert machines.sweep() == 0
        assert machines.running_instances == {machine.instance_id}

    def test_the_instance_of_a_machine_whose_answer_was_lost_is_taken_for_the_answer(self, machines):
        job_id = machines.submit_and_deliver()
        instance_id = launch_for(machines, machines.job(job_id).machine_id)

        assert machines.sweep() == 0
        assert machines.machine(job_id).state is MachineState.STARTING
        assert machines.machine(job_id).instance_id == instance_id

    def test_the_instance_of_a_machine_that_was_given_up_is_ended_and_counted_meanwhile(self, machines):
        job_id = machines.submit_and_deliver()
        machine_id = machines.job(job_id).machine_id
        cancel_job(job_id, "enough", machines.deps)
        launch_for(machines, machine_id)

        assert machines.sweep() == 0
        assert (machines.load(machine_id).state, machines.count) == (MachineState.ENDING, 1)
        close(machines)

        machines.assert_over(machine_id)

    def test_a_second_instance_of_one_machine_is_ended(self, machines):
        job_id = machines.train()
        second = launch_for(machines, machines.machine(job_id).machine_id)

        assert machines.sweep() == 1
        assert machines.running_instances == {machines.machine(job_id).instance_id} - {second}

    def test_an_instance_that_is_ending_is_no_leak(self, machines):
        leaked = launch_for(machines, "m-nobody")
        seen = machines.fleet.instances[leaked]
        machines.fleet.instances[leaked] = replace(seen, state=InstanceState.SHUTTING_DOWN)

        assert machines.sweep() == 0

    def test_one_that_cannot_be_looked_up_keeps_no_other_from_being_ended(self, machines):
        job_id = machines.train()
        kept = machines.machine(job_id)
        launch_for(machines, "m-nobody")
        load = machines.deps.machines.load_machine

        def load_but_one(machine_id):
            if machine_id == kept.machine_id:
                raise PermanentError("the item cannot be read")
            return load(machine_id)

        machines.deps.machines.load_machine = load_but_one

        assert machines.sweep() == 1
        assert machines.running_instances == {kept.instance_id}

    def test_without_an_answer_of_ec2_it_is_tried_again_with_the_next_sweep(self, machines):
        launch_for(machines, "m-nobody")
        terminate = machines.fleet.terminate
        machines.fleet.terminate = Mock(side_effect=TransientError("terminating: time-out"))
        assert machines.sweep() == 0

        machines.fleet.terminate = terminate
        assert machines.sweep() == 1

    def test_what_there_is_no_time_for_is_left_for_the_next_sweep(self, machines):
        launch_for(machines, "m-nobody")

        assert sweep_instances(machines.deps, lambda: False) == 0
        assert len(machines.running_instances) == 1

    def test_a_leaked_instance_is_ended_also_after_machines_were_turned_off(self, machines):
        launch_for(machines, "m-nobody")
        off = replace(machines.deps.machine_settings, subnets={}, launch_templates={}, instance_role_arn="")

        assert sweep_instances(replace(machines.deps, machine_settings=off)) == 1
        assert machines.running_instances == set()


@pytest.mark.parametrize("answer", list(Termination))
def test_an_end_is_never_given_up_before_ec2_confirms_it(machines, answer: Termination):
    job_id = machines.train()
    machine_id = machines.machine(job_id).machine_id
    machines.fleet.terminate = Mock(side_effect=lambda ids: dict.fromkeys(ids, answer))
    machines.end(job_id)

    for _ in range(5):
        machines.settle_all()
        machines.look(after=2 * MINUTE)

    assert machines.load(machine_id).state is MachineState.ENDING
    assert machines.count == 1
    assert machines.fleet.terminate.call_count > 3
