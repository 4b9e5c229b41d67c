"""What becomes of the machines of a job of several nodes where EC2 launches a part, and functions die over it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.story import MINUTE
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.events import FleetAnswer, FleetAnswered, FleetAsked, FleetRefused, Refusal, RefusalKind
from relaunch.core.machines.machine import FleetRequest, Machine, MachineState
from relaunch.usecases.advance_machine import advance_machine
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from stories.test_gangs import NODES, GangStory

MISSING = Refusal(RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")


class KilledError(Exception):
    """The function was killed."""


def asked_for() -> tuple[GangStory, tuple[str, ...]]:
    """Let a job wait for the machines of one request, which EC2 was not sent yet; return their IDs."""
    story = GangStory()
    job_id = story.submit_and_deliver()
    return story, story.job(job_id).next_machines


def kill_at(story: GangStory, save: int) -> None:
    """Let the function die that saves a machine for this time, counted from 0, before it has an effect."""
    save_machine = story.deps.machines.save_machine
    left = iter(range(save))

    def die(decision: MachineDecision) -> Machine:
        if next(left, None) is None:
            raise KilledError
        return save_machine(decision)

    story.deps.machines.save_machine = die  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        story.make_ec2_calls()
    story.deps.machines.save_machine = save_machine  # type: ignore[method-assign]


def go_on(story: GangStory) -> None:
    """Let what is due be done, for some minutes, without a sweep."""
    for _ in range(4):
        story.look(after=MINUTE)
        story.settle_all()


@pytest.mark.parametrize("save", range(9))
def test_a_function_that_dies_over_a_part_leaves_no_instance_to_the_sweep(save):
    """The first three saves are from before EC2 is asked."""
    story, machine_ids = asked_for()
    story.fleet.missing = 1
    kill_at(story, save)
    story.fleet.missing = 0

    launched = [each.instance_id for each in story.fleet.instances.values()]
    known = {story.load(each).instance_id for each in machine_ids}
    assert known.issuperset(launched) or story.load(machine_ids[0]).state is MachineState.REQUESTED
    go_on(story)

    states = {story.load(each).state for each in machine_ids}
    assert states <= {MachineState.ENDING, MachineState.GONE, MachineState.STARTING}
    assert not set(launched) & story.running_instances or states == {MachineState.STARTING}


@pytest.mark.parametrize("save", range(3, 9))
def test_a_function_that_dies_over_the_whole_answer_loses_none_of_the_machines(save):
    story, machine_ids = asked_for()
    kill_at(story, save)
    go_on(story)

    machines = [story.load(each) for each in machine_ids]
    assert {each.state for each in machines} == {MachineState.STARTING}
    assert len({each.instance_id for each in machines}) == NODES


def test_a_pool_that_has_a_part_only_is_avoided_by_the_job_alone():
    story = GangStory()
    story.fleet.missing = 1
    job_id = story.start()
    story.fleet.missing = 0
    story.settle_all()

    assert [each.overrides[0].offering.instance_type for each in story.fleet.requests] == ["g5.xlarge", "g6.xlarge"]
    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    assert {each.state for each in story.machines(job_id)} == {MachineState.STARTING}


def refused_though_launched() -> tuple[GangStory, tuple[str, ...]]:
    """Let EC2 answer for the first machine that it launched none, although it has; the others have no answer."""
    story, machine_ids = asked_for()
    first = story.load(machine_ids[0])
    for each in machine_ids:
        story.deps.machines.save_machine(MachineDecision(replace(story.load(each), asked_at=story.now)))
    story.fleet.request(first.request)
    advance_machine(machine_ids[0], lambda _first: FleetAnswered(FleetRefused((MISSING,))), story.deps)
    assert story.load(machine_ids[0]).state is MachineState.GONE
    return story, machine_ids


def test_instances_of_a_request_that_was_refused_are_ended_by_its_machines():
    story, machine_ids = refused_though_launched()
    hidden = sorted(story.fleet.instances)[0]
    story.fleet.hidden.add(hidden)
    make_ec2_calls(machine_ids[1], story.deps)
    # Another one may be seen yet, which changes whose they are.
    assert story.load(machine_ids[1]).state is MachineState.REQUESTED
    story.fleet.hidden.clear()
    make_ec2_calls(machine_ids[1], story.deps)
    story.settle_all()

    assert len({story.load(each).instance_id for each in machine_ids}) == NODES
    go_on(story)
    assert not story.running_instances & {story.load(each).instance_id for each in machine_ids}


def test_a_machine_of_a_group_is_given_up_with_the_first_if_there_is_no_instance():
    story, machine_ids = refused_though_launched()
    story.fleet.instances.clear()
    make_ec2_calls(machine_ids[1], story.deps)

    second = story.load(machine_ids[1])
    assert (second.state, second.refusal) == (MachineState.GONE, story.load(machine_ids[0]).refusal)


def test_a_call_that_failed_says_nothing_to_the_group_while_another_function_has_sent_the_request():
    story, machine_ids = asked_for()
    request = story.fleet.request

    def fail_beside_another(sent: FleetRequest) -> FleetAnswer:
        story.fleet.request = request  # type: ignore[method-assign]
        advance_machine(machine_ids[0], lambda _first: FleetAsked(), story.deps)
        request(sent)
        return FleetRefused((Refusal(RefusalKind.CONFIGURATION, "InvalidFleetConfig"),), is_raised=True)

    story.fleet.request = fail_beside_another  # type: ignore[method-assign]
    story.make_ec2_calls()
    assert {story.load(each).state for each in machine_ids} == {MachineState.REQUESTED}
    go_on(story)

    machines = [story.load(each) for each in machine_ids]
    assert {each.state for each in machines} == {MachineState.STARTING}
    assert {each.instance_id for each in machines} == set(story.fleet.instances)


def test_a_call_that_failed_gives_up_the_group_where_nobody_else_has_sent_the_request():
    story, machine_ids = asked_for()
    refused = FleetRefused((Refusal(RefusalKind.CONFIGURATION, "InvalidFleetConfig"),), is_raised=True)
    story.fleet.request = lambda _sent: refused  # type: ignore[method-assign]
    story.make_ec2_calls()

    assert {story.load(each).state for each in machine_ids} == {MachineState.GONE}


def test_a_machine_of_a_group_is_given_up_when_ec2_has_forgotten_its_instance():
    """Nobody could look at it for hours, and the others have ended."""
    story, machine_ids = asked_for()
    story.make_ec2_calls()
    second = story.load(machine_ids[1])
    lost = replace(second, state=MachineState.REQUESTED, instance_id=None, offering=None, version=second.version)
    story.deps.machines.save_machine(MachineDecision(lost))
    story.fleet.instances.clear()
    story.clock.advance(timedelta(hours=2))
    make_ec2_calls(machine_ids[1], story.deps)

    assert story.load(machine_ids[1]).state is MachineState.GONE
