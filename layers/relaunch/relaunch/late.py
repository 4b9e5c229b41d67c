"""Names of a module that are imported when they are first used (PEP 562): see docs/decisions/0034."""

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

Made = TypeVar("Made")


def load_late(module: str, names: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module that has the names of other modules, which it imports at the first use."""
    homes = {name: home for home, own in names.items() for name in own}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return load


class LazyClient:
    """Stands for what is made when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._made = cache(make)

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of what is made."""
        return getattr(self._made(), name)


def made_late(make: Callable[[], Made]) -> Made:
    """Return what stands for a client, an adapter or a validator, and makes it when it is first used.

    EC2's client takes 65 ms, pydantic's validator of a machine 5 ms, an adapter as long as what only it imports.
    """
    return cast("Made", LazyClient(make))
