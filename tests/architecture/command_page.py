"""What docs/command.md says that each command calls."""

import re
from collections.abc import Iterator
from functools import cache

import typer

from fakes.repository import REPOSITORY
from relaunch_cli.app import app

PAGE = (REPOSITORY / "docs" / "command.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| command |") : PAGE.index("\n\nAll commands but")]
# A transaction needs the permissions of its parts; that of a job also checks other items and updates some.
PARTS = {f"dynamodb:{part}" for part in ("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")}


@cache
def commands() -> set[str]:
    """Every command of the program, with the name of its group."""

    def walk(group: object, path: tuple[str, ...] = ()) -> Iterator[str]:
        for name, command in getattr(group, "commands", {}).items():
            if not getattr(command, "commands", None) or command.invoke_without_command:
                yield " ".join((*path, name))
            yield from walk(command, (*path, name))

    return set(walk(typer.main.get_command(app)))


@cache
def rows() -> dict[str, str]:
    """What docs/command.md says of the calls of each command."""
    # It is no row of the table: what it completes is read as `ps` and `definitions` read it.
    found = {"completion": "`dynamodb:Query`, `GetItem`"}
    for line in TABLE.splitlines()[2:]:
        described, *_does, calls = re.split(r"(?<!\\) \| ", line.strip("| "))
        for usage in re.findall(r"`([^`]+)`", described):
            if not usage.startswith("doctor --target"):
                found[_command_of(usage)] = calls
    return found


def _command_of(usage: str) -> str:
    """Return the command that a usage begins with, such as `definitions show` of `definitions show NAME`."""
    first, *others = usage.split()
    pair = " ".join([first, *others[:1]])
    return pair if pair in commands() else first


def calls_of(command: str) -> set[str]:
    """The calls of a command, with those of the commands that its row refers to."""
    row = rows()[command]
    service, calls = "", {"cloudformation:DescribeStacks"}
    for name in re.findall(r"`((?:[a-z0-9-]+:)?[A-Z]\w+)`", row):
        service = name.partition(":")[0] if ":" in name else service
        calls.add(name if ":" in name else f"{service}:{name}")
    group = command.rpartition(" ")[0]
    for referred in re.findall(r"\bas `([a-z -]+)`", row):
        within = f"{group} {referred}".strip()
        calls |= calls_of(within if within in rows() else referred)
    if "`apply`'s calls of EventBridge" in row:
        calls |= {call for call in calls_of("apply") if call.startswith("events:")}
    if "its calls of Scheduler" in row:
        calls |= {call for call in calls_of("apply") if call.startswith("scheduler:")}
    return calls


def actions_of(command: str) -> set[str]:
    """Return the actions that the calls of a command need a permission for."""
    calls = calls_of(command) - {"sts:GetCallerIdentity"}
    return calls - {"dynamodb:TransactWriteItems"} | PARTS if "dynamodb:TransactWriteItems" in calls else calls
