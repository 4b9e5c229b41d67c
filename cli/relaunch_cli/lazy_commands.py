"""A group of commands whose modules are imported when they are called: its help and completion import none of them."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer import core
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from relaunch_cli.errors import reports_errors

COMPLETE_VARIABLE = "_RELAUNCH_COMPLETE"
"""The variable with which a shell asks what completes a line (Typer's form)."""
Places = Mapping[str, tuple[str, str]]
"""Names of commands; where each is in `commands`, as `module:attribute`; the first line of its help."""


def lazy_group(places: Places) -> type[TyperGroup]:
    """Return the class of a group of these commands, each a function or, with subcommands of its own, a Typer."""
    summaries = {name: TyperCommand(name, help=summary) for name, (_, summary) in places.items()}
    loaded = _Commands(places)

    class LazyGroup(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings | {"commands": loaded})

        def list_commands(self, _context: Any) -> list[str]:
            return list(places)

        def get_command(self, _context: Any, name: str) -> TyperCommand | None:
            return summaries.get(name)

        def resolve_command(self, context: Any, arguments: list[str]) -> Any:
            name, _, others = super().resolve_command(context, arguments)
            return name, loaded[name] if name else None, others

    return LazyGroup


class _Commands(Mapping[str, Any]):
    """The commands by name; looking one up imports it."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> Any:
        module, _, attribute = self._places[name][0].partition(":")
        found = getattr(import_module(f"relaunch_cli.commands.{module}"), attribute)
        if isinstance(found, typer.Typer):
            group = get_group(found)
            for each in (group, *group.commands.values()):
                _report_errors(each)
            group.name = name
            return group
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(found)
        command = get_command(single)
        _report_errors(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def _report_errors(command: Any) -> None:
    if command.callback is not None:
        command.callback = reports_errors(command.callback)


class _Given:
    """Takes a text, a number or a default as it is; Typer itself reads the rest, and says what is wrong with it.

    Typer has pydantic make an adapter for each parameter, and importing pydantic takes a third as long as boto3.
    """

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of a parameter."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        kind = self._descriptor.annotation
        if kind is str and isinstance(value, str):
            return value
        if kind == list[str] and isinstance(value, list | tuple):
            return list(value)
        if kind is int and (number := self._read_number(value)) is not None:
            return number
        return _build_own(self._descriptor).coerce(value, param=param, ctx=ctx)

    def _read_number(self, value: Any) -> int | None:
        """Return a whole number within the limits of the parameter; None leaves it to Typer."""
        limits = self._descriptor.parameter_info
        text = str(value)
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            return None
        number = int(text)
        return None if limits.max is not None or (limits.min is not None and number < limits.min) else number


# It has no public name.
_build_own: Any = core.build_runtime_param  # type: ignore[attr-defined]
core.build_runtime_param = _Given  # type: ignore[attr-defined,assignment]
