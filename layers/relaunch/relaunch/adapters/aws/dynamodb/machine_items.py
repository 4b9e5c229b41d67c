"""Conversion of machines to items of the jobs table and back."""

from typing import Any

from relaunch.adapters.aws.dynamodb.table import (
    READ_UNIT_BYTES,
    Item,
    body_attribute,
    epoch,
    key,
    number,
    read_item,
    stamp,
    text,
)
from relaunch.adapters.stored_type import StoredType
from relaunch.core.machines.decision import KEPT_AFTER_END, due_at, gone_at, has_room
from relaunch.core.machines.machine import Machine
from relaunch.late import made_late

MACHINE = "MACHINE"
"""The sort key of machines, and of the items that link instances to them."""
DUE = "MACHINES"
"""The key in the index `due` of machines that are not gone; that of jobs is job_listing.OPEN."""
ROOM = "#ROOM"
"""The key in the index `slots` of machines with room for another job."""

BODY = made_late(lambda: StoredType(Machine))
_LATER = ("boot", "paid_since", "beside_usd_per_hour", "on_demand", "is_away_with_most", "with_most_until")
# For keys, version, write ID, times and expiry.
_OTHER_BYTES = 384


def machine_pk(machine_id: str) -> str:
    """Return the partition key of a machine."""
    return f"MACHINE#{machine_id}"


def machine_id_of(pk: str) -> str:
    """Return the machine ID of a partition key."""
    return pk.removeprefix("MACHINE#")


def instance_pk(instance_id: str) -> str:
    """Return the partition key of the item that links an instance to its machine."""
    return f"EC2#{instance_id}"


def machine_item(machine: Machine, write_id: str) -> Item:
    """Return the MACHINE item; its body is compressed if it does not fit into one read unit.

    Raises:
        ValueError: the machine is not gone and has no `wake_at`.
    """
    item = key(machine_pk(machine.machine_id), MACHINE) | {
        "version": number(machine.version),
        "write_id": text(write_id),
    }
    if wake_at := due_at(machine):
        item |= {"due": text(DUE), "wake_at": text(stamp(wake_at))}
    if has_room(machine):
        item |= {"slot": text(ROOM), "accepted_at": text(stamp(machine.created_at))}
    body = BODY.dump_json(machine, exclude=_unused(machine))
    return _expiring(item | body_attribute(body, READ_UNIT_BYTES - _OTHER_BYTES), machine)


def _unused(machine: Machine) -> dict[str, Any]:
    """Return the fields of later releases that are not stored of a machine that does not have them."""
    unused: dict[str, Any] = {name: True for name in _LATER if not getattr(machine, name)}
    if machine.holdings is None:
        unused["holdings"] = True
    alone = {name for name, usual in (("size", 1), ("place", 0)) if getattr(machine.request, name) == usual}
    if alone:
        unused["request"] = alone
    return unused


def instance_item(machine: Machine, instance_id: str) -> Item:
    """Return the item that links the instance to its machine."""
    item = key(instance_pk(instance_id), MACHINE)
    return _expiring(item | {"machine_id": text(machine.machine_id)}, machine)


def read_machine(item: Item) -> Machine:
    """Return the machine of a MACHINE item.

    Raises:
        TransientError: this release cannot read it.
    """
    return read_item(item, BODY)


def _expiring(item: Item, machine: Machine) -> Item:
    ended_at = gone_at(machine)
    return item | {"expires_at": epoch(ended_at + KEPT_AFTER_END)} if ended_at else item
