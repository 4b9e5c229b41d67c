"""Machines and their claims."""

from fakes.machines import CAPACITY, claim, fleet_request, machine, offering, override
from relaunch.core.machines.machine import MachineState, Resources


def test_until_ec2_has_chosen_a_machine_offers_the_least_that_it_may():
    request = fleet_request(override(), override("g5.12xlarge", capacity=Resources(49_152, 180_000, 4.0)))

    assert machine(request=request).capacity == CAPACITY
    chosen = machine(MachineState.READY, request=request, offering=offering("g5.12xlarge"))
    assert chosen.capacity == Resources(49_152, 180_000, 4.0)


def test_claims_take_room():
    before = machine(MachineState.READY, claims=(claim(resources=Resources(1024, 5_000, 0.5)),))

    assert before.free == Resources(3072, 10_000, 0.5)
    assert before.accepts(Resources(1024, 5_000, 0.5))
    assert not before.accepts(Resources(1024, 5_000, 0.6))


def test_a_machine_that_ends_accepts_nothing():
    assert not machine(MachineState.ENDING).accepts(Resources())


def test_claims_are_found_by_job():
    assert machine().claim_of("resnet-1") == claim()
    assert machine().claim_of("bert-1") is None
