"""`dataclass` for what never changes, at a tenth of the time that the standard one takes when it is imported.

The standard one writes and compiles six methods for each class: of 330 classes that is a quarter of a cold start. Here
only `__init__` is compiled, when the first record of a class is made; what compares, hashes and shows is shared by all.
An attribute is not protected when the program runs: the type checker, for which this is the standard one, refuses to
set it (docs/decisions/0034).
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - for everybody
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """Return the decorator of a class with fields; without `frozen`, or with `order`, it is the standard one."""
        if options.get("order") or not options.get("frozen"):
            return dataclasses.dataclass(**options)
        make = dataclasses.dataclass(**options | {"frozen": False, "eq": False, "repr": False, "init": False})
        return lambda cls: _share_methods(make(cls))


def _share_methods(cls: Any) -> type:
    compared = [each for each in dataclasses.fields(cls) if each.compare]
    shared = {"__init__": _late_init(cls), "__repr__": _show, "__eq__": _equals, "__hash__": _hash}
    for name, method in shared.items():
        # A base has its own of another class.
        if name not in cls.__dict__:
            setattr(cls, name, method)
    cls._compared_fields = _values_of([each.name for each in compared])
    cls._hashed_fields = _values_of([each.name for each in compared if each.hash is not False])
    made: type = cls
    return made


def _late_init(cls: Any) -> Callable[..., None]:
    """Return what makes the `__init__` of a class when it is first called: most classes make no record in a start."""

    def init(self: object, *args: object, **given: object) -> None:
        cls.__init__ = _standard_init(cls)
        cls.__init__(self, *args, **given)

    return init


def _standard_init(cls: Any) -> Any:
    """Return the `__init__` that the standard library makes of these fields, which it does for whole classes only."""
    fields = [
        (
            each.name,
            each.type,
            dataclasses.field(default=each.default, default_factory=each.default_factory, kw_only=each.kw_only),
        )
        for each in dataclasses.fields(cls)
    ]
    own = {name: getattr(cls, name) for name in ("__doc__", "__post_init__") if hasattr(cls, name)}
    made: Any = dataclasses.make_dataclass(cls.__name__, fields, namespace=own, repr=False, eq=False, match_args=False)
    return made.__init__


def _values_of(names: list[str]) -> Callable[[object], tuple[Any, ...]]:
    """Return what gets the values as a tuple, for which there have to be two at least."""
    return attrgetter(*(names if len(names) > 1 else ["__class__", *names, "__class__"]))


def _show(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _equals(self: Any, other: Any) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented  # type: ignore[no-any-return]
    return bool(self._compared_fields(self) == other._compared_fields(other))  # noqa: SLF001 - of the same class


def _hash(self: Any) -> int:
    return hash(self._hashed_fields(self))
