"""Groups of machines that are requested together."""

from dataclasses import replace

import pytest

from fakes.builders import NOW
from fakes.machines import claim, fleet_request, machine, offering, override
from fakes.reservations import make_block
from relaunch.core.machines.decision import MachineTotals, may_give_way
from relaunch.core.machines.events import (
    FleetAnswered,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    InstanceObservation,
    InstanceState,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.groups import (
    PARTIAL,
    answer_of_found,
    answer_of_member,
    first_id_of,
    member_id,
    member_ids,
    requests_of_members,
    reservation_of_group,
)
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import (
    AskFleet,
    Consequence,
    MachineState,
    RememberFailures,
    TellJobs,
    TerminateInstance,
    describe_machine,
)
from relaunch.core.machines.requesting import request_machine, settles
from relaunch.core.machines.settings import GROUP_TAG, MACHINE_TAG
from relaunch.core.machines.table import decide

ONE = fleet_request(override(), tags={MACHINE_TAG: "m-1"})
FIRST, SECOND, THIRD = requests_of_members(ONE, 3)
LAUNCHED = InstanceLaunched("i-c", offering(), others=("i-a", "i-b"))


def seen(instance_id, state=InstanceState.RUNNING, **fields):
    return InstanceObservation(instance_id, state, "m-1", **{"offering": offering(), "launched_at": NOW, **fields})


def test_the_machines_of_a_group_are_named_after_the_first_one():
    assert member_ids("m-1", 3) == ("m-1", "m-1-n1", "m-1-n2")
    assert [first_id_of(each) for each in member_ids("m-1", 3)] == ["m-1"] * 3
    assert member_id("m-1", 0) == "m-1"
    assert member_ids("m-1-n2", 2) == ("m-1", "m-1-n1")


def test_the_requests_of_a_group_are_one_request():
    assert requests_of_members(ONE, 1) == (ONE,)
    assert requests_of_members(ONE, 3) == (FIRST, SECOND, THIRD)
    assert [each.place for each in (FIRST, SECOND, THIRD)] == [0, 1, 2]
    assert {each.size for each in (FIRST, SECOND, THIRD)} == {3}
    assert {each.client_token for each in (FIRST, SECOND, THIRD)} == {ONE.client_token}
    assert FIRST.tags == {MACHINE_TAG: "m-1", GROUP_TAG: "m-1"}


def test_ec2_is_asked_for_the_first_one_alone_which_counts_for_all_that_start():
    totals = MachineTotals(20, 0)
    first, second = (request_machine(f"m-{each.place}", each, claim(), NOW, totals) for each in (FIRST, SECOND))

    assert (first.machine.pending, second.machine.pending) == ((AskFleet(),), ())
    assert (len(first.starts), second.starts) == (2, ())
    assert second.machine.timeline[0].detail.endswith("(2 of 3)")
    assert describe_machine(first.machine) == "EC2 is asked for 3 times g5.xlarge on spot in us-east-1a"


@pytest.mark.parametrize(("request_", "own"), [(FIRST, "i-a"), (SECOND, "i-b"), (THIRD, "i-c")])
def test_instances_are_dealt_out_by_the_order_of_their_ids(request_, own):
    assert answer_of_member(request_, LAUNCHED) == InstanceLaunched(own, offering())


def test_of_a_part_none_is_used_and_each_is_ended_by_one_write():
    part = InstanceLaunched("i-b", offering(), others=("i-a",))
    own = answer_of_member(SECOND, part)
    none = answer_of_member(THIRD, part)

    assert isinstance(none, FleetRefused)
    assert none.refusals[-1].code == PARTIAL
    assert own == InstanceLaunched("i-b", offering(), none.refusals, is_part=True)
    decision = decide(machine(request=SECOND, asked_at=NOW), FleetAnswered(own), NOW, MachineLimits())
    ended = decision.machine
    job_id = claim().job_id
    assert (ended.state, ended.instance_id, ended.claims) == (MachineState.ENDING, "i-b", ())
    assert ended.pending == (TerminateInstance("i-b"), TellJobs((job_id,)))
    # It counts until it is gone.
    assert (decision.added.machines, ended.refusal) == (0, Consequence.NEXT)
    given_up = decide(machine(request=THIRD, asked_at=NOW), FleetAnswered(none), NOW, MachineLimits()).machine
    assert (given_up.state, given_up.refusal) == (MachineState.GONE, Consequence.NEXT)
    assert given_up.timeline[-1].detail == ended.timeline[-1].detail


def test_other_answers_are_those_of_all():
    for answer in (FleetUncertain("time-out"), FleetRefused(())):
        assert answer_of_member(SECOND, answer) == answer
    assert answer_of_member(ONE, LAUNCHED) == LAUNCHED


def test_an_answer_settles_a_request_unless_an_earlier_call_may_have_had_an_effect():
    asked = machine(request=FIRST, asked_at=NOW)
    unknown = replace(asked, uncertain_since=NOW)

    for answer in (LAUNCHED, FleetRefused(()), FleetRefused((), is_raised=True)):
        assert settles(asked, answer)
    assert settles(unknown, FleetRefused(()))
    assert not settles(unknown, FleetRefused((), is_raised=True))
    assert not settles(asked, FleetUncertain("time-out"))


def test_that_ec2_has_not_as_many_says_nothing_of_one():
    refused = FleetAnswered(FleetRefused((Refusal(RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity"),)))

    def effects(request):
        pending = decide(machine(request=request, asked_at=NOW), refused, NOW, MachineLimits()).machine.pending
        return [each for each in pending if isinstance(each, RememberFailures)]

    assert (len(effects(ONE)), effects(FIRST)) == (1, [])


def test_a_group_gives_way_to_no_other_machine():
    own = machine(request=replace(FIRST, size=2), asked_at=None)

    assert not may_give_way(own)


def test_what_is_found_is_the_answer_once_it_is_all_or_nothing_can_come():
    two = [seen("i-b"), seen("i-a")]

    assert answer_of_found([], 3, is_certain=True) is None
    assert answer_of_found(two, 3, is_certain=False) is None
    assert answer_of_found(two, 3, is_certain=True) == InstanceLaunched("i-a", offering(), at=NOW, others=("i-b",))
    assert answer_of_found([*two, seen("i-c")], 3, is_certain=False) == InstanceLaunched(
        "i-a", offering(), at=NOW, others=("i-b", "i-c")
    )


def test_what_has_ended_keeps_its_place():
    over = [seen("i-a", InstanceState.TERMINATED), seen("i-b", InstanceState.TERMINATED)]

    assert answer_of_found([*over, seen("i-c")], 3, is_certain=False) == InstanceLaunched(
        "i-a", offering(), at=NOW, others=("i-b", "i-c")
    )
    assert answer_of_found(over, 2, is_certain=False) == InstanceLaunched("i-a", offering(), at=NOW, others=("i-b",))
    assert answer_of_found([seen("i-a", offering=None)], 1, is_certain=True) is None


def test_of_more_instances_than_were_asked_for_those_that_live_are_dealt_out():
    over = [seen("i-a", InstanceState.TERMINATED), seen("i-b", InstanceState.TERMINATED)]

    assert answer_of_found([*over, seen("i-c")], 2, is_certain=True) == InstanceLaunched("i-c", offering(), at=NOW)
    assert answer_of_found(over, 1, is_certain=False) == InstanceLaunched("i-a", offering(), at=NOW, others=("i-b",))


def test_only_several_in_a_reservation_are_a_group_of_it():
    reserved = replace(ONE, reservation=make_block())

    assert reservation_of_group(replace(reserved, size=2)) == make_block()
    assert reservation_of_group(reserved) is None
    assert reservation_of_group(replace(ONE, size=2)) is None
