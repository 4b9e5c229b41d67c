"""The machines that start, and those that were of no use lately: one item a cause, written with each new machine.

An item changes only if it is as it was read, so of two machines that take what is left one is saved.
"""

from collections.abc import Sequence

from relaunch.adapters.aws.dynamodb.table import Action, Item, JobsTable, epoch, key, number, put, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.machines.machine import Machine
from relaunch.core.machines.starts import Starts, StartsByCause, Worth, counted_as, forgotten_at, settled
from relaunch.core.offerings.offering import OfferingKey
from relaunch.late import made_late
from relaunch.ports import TransientError

_PK = "STARTS"
# Each conflict means that another write succeeded, of which a cause has few at a time.
_ATTEMPTS = 12
_STARTS = made_late(lambda: StoredType(Starts))


def load_starts(table: JobsTable) -> StartsByCause:
    """Load what is known of all causes."""
    found = (_read(item, table) for item in table.query("pk = :pk", {":pk": text(_PK)}))
    return {each.cause: each for each in found}


def save_starts(starts: Sequence[Starts]) -> list[Action]:
    """Return the actions that save what is known of causes."""
    return [put(_item(each), *_unchanged(each)) for each in starts]


def settle_start(table: JobsTable, causes: Sequence[OfferingKey], machine: Machine, worth: Worth) -> None:
    """Note for these causes what a machine is worth."""
    launched_at = machine.launched_at or machine.created_at
    for cause in causes:
        for _ in range(_ATTEMPTS):
            item = table.get(_PK, _sk(cause))
            before = _read(item, table) if item else Starts(cause)
            after = settled(before, counted_as(machine), launched_at, worth)
            is_known = after == before or (item is None and worth is not Worth.USELESS)
            if is_known or table.put(_item(after), *_unchanged(after)):
                break
        else:
            raise TransientError(f"what is known of {cause} was changed by others {_ATTEMPTS} times")


def _item(starts: Starts) -> Item:
    last = forgotten_at(starts)
    return key(_PK, _sk(starts.cause)) | {
        "version": number(starts.version + 1),
        "body": text(_STARTS.dump_json(starts).decode()),
        **({"expires_at": epoch(last)} if last else {}),
    }


def _unchanged(starts: Starts) -> tuple[str, dict[str, dict[str, str]]]:
    if not starts.version:
        return "attribute_not_exists(pk)", {}
    return "version = :version", {":version": number(starts.version)}


def _read(item: Item, table: JobsTable) -> Starts:
    stored = table.read(item, _STARTS)
    return Starts(stored.cause, stored.starting, stored.useless, stored.useful_at, int(item["version"]["N"]))


def _sk(cause: OfferingKey) -> str:
    return f"{cause.instance_type}#{cause.zone or '*'}#{cause.purchase}"
