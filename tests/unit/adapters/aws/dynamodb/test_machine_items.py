"""Machines become items and items the same machines, within DynamoDB's limits."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from fakes.builders import NOW, make_offering_key
from fakes.stored_items import kinds, size_of
from fakes.stored_machines import make_claim, make_gone, make_machine, make_override
from fakes.strategies import any_of
from relaunch.adapters.aws.dynamodb import machine_items
from relaunch.adapters.aws.dynamodb.table import stamp
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.machine import (
    AskFleet,
    DeregisterNode,
    FleetRequest,
    Machine,
    MachineState,
    MachineTimelineEntry,
    RememberFailures,
    RememberLaunch,
    Resources,
    TellJobs,
    TerminateInstance,
)
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.ports import TransientError

KEPT = timedelta(days=30)
SPOT = PurchaseOption.SPOT


def item_of(**fields: Any) -> dict[str, Any]:
    return machine_items.machine_item(make_machine(**fields), "a write")


def large_machine(overrides: int) -> Machine:
    """Return a machine with eight claims and a full timeline, whose request has this many overrides."""
    offered = tuple(
        make_override(
            offering=make_offering_key(f"g{number % 5 + 4}dn.{number}xlarge", zone=f"us-east-1{'abcdef'[number % 6]}"),
            subnet_id=f"subnet-0123456789abcde{number:02d}",
            usd_per_hour=0.4 + number / 7,
            capacity=Resources(4096 * number, 15_000 + 811 * number, number % 8 + 1),
            priority=number,
        )
        for number in range(overrides)
    )
    tags = {"relaunch:machine": "m-0123456789abcdef01234567", "relaunch:stack": "relaunch", "Name": "relaunch-resnet"}
    timeline = tuple(
        MachineTimelineEntry(
            NOW + timedelta(seconds=number), MachineState.READY, "claimed", f"resnet-20260314-{number:06d} claimed it"
        )
        for number in range(20)
    )
    return make_machine(
        request=FleetRequest("relaunch-m-0123456789abcdef01234567", SPOT, "lt-0123456789abcdef0", "7", offered, tags),
        timeline=timeline,
        claims=tuple(make_claim(f"resnet-20260314-092653-{number:06x}") for number in range(8)),
        instance_id="i-0123456789abcdef0",
    )


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(any_of(Machine))
def test_every_machine_comes_back_as_it_was(machine: Machine) -> None:
    if not machine.request.overrides:
        machine = replace(machine, request=replace(machine.request, overrides=(make_override(),)))
    if machine.state is not MachineState.GONE and machine.wake_at is None:
        machine = replace(machine, wake_at=NOW)
    read = machine_items.read_machine(machine_items.machine_item(machine, "a write"))
    assert read == machine
    assert kinds(read) == kinds(machine)


def test_every_effect_comes_back_as_it_was() -> None:
    failure = CapacityFailure(make_offering_key(), "no capacity", NOW, NOW + timedelta(minutes=3))
    effects = (
        AskFleet(30),
        TellJobs(("a", "b")),
        TerminateInstance("i-1"),
        DeregisterNode("node"),
        RememberFailures((failure,)),
        RememberLaunch(make_offering_key(), NOW),
    )
    assert machine_items.read_machine(item_of(pending=effects)).pending == effects


class TestKeys:
    def test_a_machine_is_due_and_has_room_under_keys_that_jobs_do_not_use(self) -> None:
        item = item_of(machine_id="m-1", version=3)
        assert {name: value for name, value in item.items() if name != "body"} == {
            "pk": {"S": "MACHINE#m-1"},
            "sk": {"S": "MACHINE"},
            "version": {"N": "3"},
            "write_id": {"S": "a write"},
            "due": {"S": "MACHINES"},
            "wake_at": {"S": stamp(NOW + timedelta(minutes=1))},
            "slot": {"S": "#ROOM"},
            "accepted_at": {"S": stamp(NOW)},
        }

    def test_one_without_room_is_not_in_the_index_of_those_with_room(self) -> None:
        assert not {"slot", "accepted_at"} & item_of(warned_at=NOW).keys()

    def test_the_instance_has_an_item_of_its_own(self) -> None:
        item = machine_items.instance_item(make_machine(), "i-1")
        assert item == {"pk": {"S": "EC2#i-1"}, "sk": {"S": "MACHINE"}, "machine_id": {"S": "m-1"}}


class TestExpiry:
    @pytest.mark.parametrize("state", [state for state in MachineState if state is not MachineState.GONE])
    def test_a_machine_that_is_not_gone_stays(self, state: MachineState) -> None:
        assert "expires_at" not in item_of(state=state, state_since=NOW)

    def test_one_that_is_gone_expires_with_the_item_of_its_instance(self) -> None:
        gone = make_gone(make_machine())
        expected = {"N": str(int((NOW + KEPT).timestamp()))}
        assert machine_items.machine_item(gone, "a write")["expires_at"] == expected
        assert machine_items.instance_item(gone, "i-1")["expires_at"] == expected


class TestSizes:
    def test_a_usual_machine_is_kept_readable(self) -> None:
        item = item_of(instance_id="i-0123456789abcdef0", claims=(make_claim(),))
        assert json.loads(item["body"]["S"])["request"]["purchase"] == "spot"
        assert size_of(item) < 1536

    @pytest.mark.parametrize("overrides", [3, 50])
    def test_a_busy_machine_with_fifty_overrides_fits_into_one_read_unit(self, overrides: int) -> None:
        machine = large_machine(overrides)
        item = machine_items.machine_item(machine, "0" * 36)
        assert "body" not in item
        assert size_of(item) <= 4096
        assert machine_items.read_machine(item) == machine

    def test_what_is_not_compressed_fits_into_one_read_unit(self) -> None:
        rest = 4096 - 384 - len(item_of()["body"]["S"])
        longest = machine_items.machine_item(make_machine(reason="x" * rest), "0" * 36)
        assert "body" in longest
        assert size_of(longest) <= 4096
        assert "packed" in item_of(reason="x" * (rest + 1))


def test_a_machine_in_words_of_a_newer_release_cannot_be_read_for_now() -> None:
    item = item_of() | {"body": {"S": '{"machine_id": "m-1", "state": "SLEEPING"}'}}
    with pytest.raises(TransientError, match=r"MACHINE#m-1 MACHINE cannot be read, a newer release .*state"):
        machine_items.read_machine(item)
