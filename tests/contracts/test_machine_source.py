"""The behaviour of MachineSource: the fake, and the adapter on the ECS simulator."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from fakes.fleet import MACHINE_ID
from fakes.machine_sources import ON_DEMAND, Ec2, FakeEc2, override_of, request_for, request_in, simulated_ec2
from fakes.reservations import make_block, make_reservation
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    FleetDeferred,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    InstanceObservation,
    InstanceState,
    RefusalKind,
)
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.offerings.reservations import Reservation
from relaunch.ports import MachineSource, Termination

ENDED = (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)
NEVER_LAUNCHED = "i-0fffffffffffffff0"
HERE, THERE = override_of(), override_of(zone="us-east-1b")
REQUEST = request_for()


@pytest.fixture(params=["fake", "EC2 in process", "EC2 over HTTP"])
def ec2(request: pytest.FixtureRequest) -> Iterator[Ec2]:
    if request.param == "fake":
        yield FakeEc2()
        return
    with simulated_ec2(over_http=request.param == "EC2 over HTTP") as simulated:
        yield simulated


@pytest.fixture
def source(ec2: Ec2) -> MachineSource:
    return ec2.source


def launched(source: MachineSource, request: FleetRequest = REQUEST) -> InstanceLaunched:
    answer = source.request(request)
    assert isinstance(answer, InstanceLaunched)
    return answer


def launch(ec2: Ec2, request: FleetRequest = REQUEST) -> str:
    """Launch an instance and let EC2 show it; return its ID."""
    instance_id = launched(ec2.source, request).instance_id
    ec2.settle()
    return instance_id


def seen(source: MachineSource, instance_id: str) -> InstanceObservation:
    instance = source.describe([instance_id])[instance_id]
    assert instance is not None
    return instance


def found(source: MachineSource, machine_id: str = MACHINE_ID) -> list[str]:
    return [instance.instance_id for instance in source.find(machine_id)]


def listed(source: MachineSource) -> set[str]:
    return {instance.instance_id for page in source.list_instances() for instance in page}


def test_a_request_launches_one_instance_of_the_machine(ec2: Ec2, source: MachineSource) -> None:
    instance_id = launch(ec2)

    instance = seen(source, instance_id)
    assert (instance.machine_id, instance.offering, instance.state) == (
        MACHINE_ID,
        HERE.offering,
        InstanceState.RUNNING,
    )
    assert instance.launched_at is not None
    assert instance.launched_at.utcoffset() is not None
    assert ec2.launch_count == 1


def test_a_machine_is_found_by_its_id_and_no_other_is(ec2: Ec2, source: MachineSource) -> None:
    first = launch(ec2)
    second = launch(ec2, request_for(machine_id="m-2"))

    assert (found(source), found(source, "m-2"), found(source, "m-3")) == ([first], [second], [])


def test_of_several_overrides_the_cheapest_is_launched(source: MachineSource) -> None:
    assert launched(source, request_for(HERE, THERE)).offering == THERE.offering


def test_on_demand_the_override_with_the_first_priority_is_launched(source: MachineSource) -> None:
    first = override_of(purchase=ON_DEMAND, priority=0)
    second = override_of(zone="us-east-1b", purchase=ON_DEMAND, priority=1)

    assert launched(source, request_for(second, first)).offering == first.offering


def test_on_demand_without_an_order_the_cheapest_is_launched(source: MachineSource) -> None:
    overrides = (override_of(purchase=ON_DEMAND), override_of(zone="us-east-1b", purchase=ON_DEMAND))

    assert launched(source, request_for(*overrides)).offering == overrides[1].offering


def test_what_has_no_capacity_does_not_keep_another_override_from_being_launched(
    ec2: Ec2, source: MachineSource
) -> None:
    ec2.empty(THERE.offering)

    answer = launched(source, request_for(HERE, THERE))

    assert answer.offering == HERE.offering
    assert ec2.launch_count == 1
    assert {each.offering for each in answer.refusals} <= {THERE.offering}


def test_without_capacity_each_offering_is_refused_for_good(ec2: Ec2, source: MachineSource) -> None:
    for each in (HERE, THERE):
        ec2.empty(each.offering)
    request = request_for(HERE, THERE)

    first, again = source.request(request), source.request(request)

    assert isinstance(first, FleetRefused)
    assert {(each.kind, each.offering) for each in first.refusals} == {
        (RefusalKind.NO_CAPACITY, HERE.offering),
        (RefusalKind.NO_CAPACITY, THERE.offering),
    }
    assert again == first
    assert (ec2.launch_count, found(source)) == (0, [])


def test_a_missing_permission_is_not_missing_capacity(ec2: Ec2, source: MachineSource) -> None:
    ec2.forbid_launch()

    answer = source.request(REQUEST)

    assert isinstance(answer, FleetRefused)
    assert [each.kind for each in answer.refusals] == [RefusalKind.NOT_PERMITTED]


def test_the_same_request_again_is_the_same_instance(ec2: Ec2, source: MachineSource) -> None:
    first = launched(source)
    again = launched(source, replace(REQUEST, tags=dict(sorted(REQUEST.tags.items()))))

    assert again == first
    assert ec2.launch_count == 1


def test_the_same_request_launches_no_other_instance_once_the_first_has_ended(ec2: Ec2, source: MachineSource) -> None:
    instance_id = launch(ec2)
    source.terminate([instance_id])
    ec2.settle()

    assert launched(source).instance_id == instance_id
    assert ec2.launch_count == 1


def test_another_request_with_the_same_token_launches_nothing(ec2: Ec2, source: MachineSource) -> None:
    launched(source)

    assert isinstance(source.request(replace(REQUEST, overrides=(THERE,))), FleetUncertain)
    assert ec2.launch_count == 1


def test_another_machine_is_another_instance(ec2: Ec2, source: MachineSource) -> None:
    assert launched(source).instance_id != launched(source, request_for(machine_id="m-2")).instance_id
    assert ec2.launch_count == 2


@pytest.mark.parametrize("is_empty", [False, True], ids=["no answer", "an answer without content"])
def test_an_instance_whose_answer_was_lost_is_found_by_its_tag(
    ec2: Ec2, source: MachineSource, *, is_empty: bool
) -> None:
    if is_empty:
        ec2.empty_answer()
    else:
        ec2.lose_answer()

    answer = source.request(REQUEST)
    ec2.settle()

    assert isinstance(answer, FleetUncertain)
    (instance,) = source.find(MACHINE_ID)
    assert instance.offering == HERE.offering
    assert ec2.launch_count == 1


def test_a_request_whose_answer_was_lost_is_answered_when_it_is_sent_again(ec2: Ec2, source: MachineSource) -> None:
    ec2.lose_answer()
    source.request(REQUEST)

    again = launched(source)
    ec2.settle()

    assert found(source) == [again.instance_id]


def test_a_throttled_request_launches_nothing_and_can_be_sent_again(ec2: Ec2, source: MachineSource) -> None:
    ec2.throttle()

    assert isinstance(source.request(REQUEST), FleetDeferred)
    assert ec2.launch_count == 0
    assert launched(source).offering == HERE.offering


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(request_for(HERE, replace(HERE, subnet_id="subnet-a2")), id="two subnets of one zone"),
        pytest.param(replace(REQUEST, overrides=()), id="no override"),
        pytest.param(replace(REQUEST, launch_template_version="$Latest"), id="no number of a version"),
        pytest.param(replace(REQUEST, tags={}), id="no tags"),
    ],
)
def test_a_request_that_breaks_a_limit_is_refused(ec2: Ec2, source: MachineSource, request_: FleetRequest) -> None:
    answer = source.request(request_)

    assert isinstance(answer, FleetRefused)
    assert [each.kind for each in answer.refusals] == [RefusalKind.CONFIGURATION]
    assert ec2.launch_count == 0
    assert launched(source).offering == HERE.offering, "the token is not spent"


def test_a_new_instance_may_seem_absent_and_live(ec2: Ec2, source: MachineSource) -> None:
    instance_id = ec2.launch_unseen()

    before = (source.describe([instance_id]), found(source), listed(source), source.terminate([instance_id]))
    ec2.settle()

    assert before == ({instance_id: None}, [], set(), {instance_id: Termination.ABSENT})
    assert seen(source, instance_id).state is InstanceState.RUNNING
    assert (found(source), listed(source)) == ([instance_id], {instance_id})
    assert source.terminate([instance_id]) == {instance_id: Termination.ENDING}


def test_instances_are_described_in_the_order_they_were_asked_for(ec2: Ec2, source: MachineSource) -> None:
    first, second = launch(ec2), launch(ec2, request_for(machine_id="m-2"))

    described = source.describe([second, NEVER_LAUNCHED, first])

    assert list(described) == [second, NEVER_LAUNCHED, first]
    assert [instance is None for instance in described.values()] == [False, True, False]


def test_nothing_is_described_and_ended_for_nothing(source: MachineSource) -> None:
    assert source.describe([]) == {}
    assert source.terminate([]) == {}
    assert listed(source) == set()


def test_the_instances_of_the_stack_are_listed_until_they_are_terminated(ec2: Ec2, source: MachineSource) -> None:
    first, second = launch(ec2), launch(ec2, request_for(machine_id="m-2"))
    foreign = ec2.launch_foreign()
    ec2.settle()
    before = listed(source)

    source.terminate([first])
    ec2.settle()

    assert before == {first, second}
    assert listed(source) == {second}
    assert seen(source, foreign).machine_id == ""


def test_an_instance_that_is_terminated_says_why(ec2: Ec2, source: MachineSource) -> None:
    instance_id = launch(ec2)

    assert source.terminate([instance_id]) == {instance_id: Termination.ENDING}

    instance = seen(source, instance_id)
    assert instance.state in ENDED
    assert instance.state_reason.startswith("Client.UserInitiatedShutdown")


def test_an_instance_that_was_interrupted_says_so_and_is_still_found(ec2: Ec2, source: MachineSource) -> None:
    instance_id = launch(ec2)

    ec2.interrupt(instance_id)

    (instance,) = source.find(MACHINE_ID)
    assert (instance.instance_id, instance.state in ENDED) == (instance_id, True)
    assert instance.state_reason.startswith("Server.SpotInstanceTermination")


def test_an_end_can_be_repeated(ec2: Ec2, source: MachineSource) -> None:
    instance_id = launch(ec2)

    answers = [source.terminate([instance_id]) for _ in range(2)]
    ec2.settle()
    answers.append(source.terminate([instance_id]))

    assert answers == [{instance_id: Termination.ENDING}] * 3


def test_neither_unknown_nor_foreign_instances_keep_the_others_from_ending(ec2: Ec2, source: MachineSource) -> None:
    first, second = launch(ec2), launch(ec2, request_for(machine_id="m-2"))
    foreign = ec2.launch_foreign()
    ec2.settle()

    answers = source.terminate([first, NEVER_LAUNCHED, foreign, second])

    assert answers == {
        first: Termination.ENDING,
        NEVER_LAUNCHED: Termination.ABSENT,
        foreign: Termination.REFUSED,
        second: Termination.ENDING,
    }
    assert [seen(source, each).state in ENDED for each in (first, foreign, second)] == [True, False, True]


def test_an_instance_that_ended_long_ago_is_absent_and_does_not_keep_another_from_ending(
    ec2: Ec2, source: MachineSource
) -> None:
    old = launch(ec2)
    source.terminate([old])
    ec2.settle()
    ec2.forget(old)
    new = launch(ec2, request_for(machine_id="m-2"))

    assert source.terminate([old, new]) == {old: Termination.ABSENT, new: Termination.ENDING}
    assert source.describe([old]) == {old: None}
    assert found(source) == []


RESERVED = [pytest.param(make_block(), id="block"), pytest.param(make_reservation(available=3), id="reservation")]


@pytest.mark.parametrize("reserved", RESERVED)
def test_several_machines_in_one_reservation_are_launched_at_once(
    ec2: Ec2, source: MachineSource, reserved: Reservation
) -> None:
    ec2.reserve(reserved)

    answer = launched(source, request_in(reserved, 3))
    ec2.settle()

    instances = {answer.instance_id, *answer.others}
    assert (len(instances), ec2.launch_count) == (3, 3)
    assert set(found(source)) == instances
    assert {seen(source, each).machine_id for each in instances} == {MACHINE_ID}
    assert answer.offering == override_of(purchase=PurchaseOption.RESERVED).offering


@pytest.mark.parametrize("reserved", RESERVED)
def test_a_reservation_with_too_few_free_instances_launches_none(
    ec2: Ec2, source: MachineSource, reserved: Reservation
) -> None:
    ec2.reserve(reserved)

    answer = source.request(request_in(reserved, 4))

    assert isinstance(answer, FleetRefused)
    assert answer.is_raised
    assert [each.kind for each in answer.refusals] == [RefusalKind.PRICE]
    assert ec2.launch_count == 0


def test_several_machines_whose_answer_was_lost_are_those_of_the_same_request_sent_again(
    ec2: Ec2, source: MachineSource
) -> None:
    ec2.reserve(make_block())
    ec2.lose_answer()
    request = request_in(make_block(), 3)

    assert isinstance(source.request(request), FleetUncertain)
    again = launched(source, request)
    ec2.settle()

    assert ec2.launch_count == 3
    assert set(found(source)) == {again.instance_id, *again.others}


def test_a_throttled_request_for_several_in_a_reservation_launches_none(ec2: Ec2, source: MachineSource) -> None:
    ec2.reserve(make_block())
    ec2.throttle()

    assert isinstance(source.request(request_in(make_block(), 2)), FleetDeferred)
    assert ec2.launch_count == 0


def test_another_request_for_several_with_the_same_token_launches_none(ec2: Ec2, source: MachineSource) -> None:
    ec2.reserve(make_block())
    launched(source, request_in(make_block(), 2))

    assert isinstance(source.request(request_in(make_block(), 3)), FleetUncertain)
    assert ec2.launch_count == 2
