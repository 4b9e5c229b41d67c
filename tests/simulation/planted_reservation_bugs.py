"""Bugs in what becomes of capacity reservations: their use, their price, their end, and that they cannot be read."""

import itertools
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from relaunch.adapters.aws.ec2 import run_instances
from relaunch.adapters.offerings import reserved
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.reservations import Reservation
from relaunch.entrypoints import warnings
from relaunch.usecases import choose_placement
from relaunch_local.simulation import drawn_scenario, reservation_scenario
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _reservations() -> AbstractContextManager[object]:
    return patched(reservation_scenario, _SHARE=1.0, _TAKING_SHARE=1.0, _UNLIMITED_SHARE=1.0, _UNREADABLE_SHARE=0.0)


def _long_trainings_in_blocks() -> AbstractContextManager[object]:
    return patched(reservation_scenario, _SHARE=1.0, _TAKING_SHARE=1.0, _BLOCKS_SHARE=1.0, _LONG_SHARE=1.0)


def _unreadable_reservations() -> AbstractContextManager[object]:
    return patched(reservation_scenario, _SHARE=1.0, _TAKING_SHARE=1.0, _UNLIMITED_SHARE=1.0, _UNREADABLE_SHARE=1.0)


@contextmanager
def _gangs_in_reservations() -> Iterator[None]:
    with (
        patched(drawn_scenario, has_gang=lambda _seed: True),
        patched(reservation_scenario, _GANG_SHARE=1.0),
    ):
        yield


def _token_of_each_launch() -> AbstractContextManager[object]:
    numbers = itertools.count()
    original = run_instances.build_run_instances

    def build(request: FleetRequest, reservation: Reservation) -> Mapping[str, Any]:
        return {**original(request, reservation), "ClientToken": f"t{next(numbers)}"}

    return patched(run_instances, build_run_instances=build)


def _at_a_price(**fields: Any) -> Offering:
    return Offering(**{**fields, "price_usd_per_hour": 0.01})


RESERVATION_BUGS = (
    PlantedBug(
        "block-end-ignored",
        "machines in a Capacity Block whose end EC2 announces keep their tasks",
        lambda: patched(warnings, observe_reservation=lambda _event, _deps: []),
        "no task runs in a Capacity Block when EC2 begins to end it",
        90,
        world=_long_trainings_in_blocks,
    ),
    PlantedBug(
        "reserved-left-free",
        "something is bought while a free instance is reserved",
        lambda: patched(Reservation, is_active=property(lambda _self: False)),
        "nothing that fits a job is much cheaper than its first choice",
        60,
        world=_reservations,
    ),
    PlantedBug(
        "reserved-paid-twice",
        "what is reserved has a price in the cost of a job",
        lambda: patched(reserved, Offering=_at_a_price),
        "a task costs nothing more in a reservation alone",
        60,
        world=_reservations,
    ),
    PlantedBug(
        "unreadable-reservations-waited-for",
        "a job waits for reservations that cannot be read, whatever else it may use",
        lambda: patched(choose_placement, goes_without_reserved=lambda _job, _now: False),
        "no job waits for what is reserved beside what is open to it",
        90,
        world=_unreadable_reservations,
    ),
    PlantedBug(
        "group-token-of-each-launch",
        "RunInstances gets another client token each time the request of a group is sent",
        _token_of_each_launch,
        "one machine has one instance",
        10,
        first=30_010,
        world=_gangs_in_reservations,
    ),
)
