"""What moto has in process, kept to come back to: an account is copied in a tenth of the time that its calls take."""

import copy
import copyreg
import threading
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from moto.core.base_backend import BackendDict, BaseBackend
from moto.ssm.models import ParameterDict

# Nobody holds them between two calls.
_LOCKS: dict[Any, Any] = {
    type(threading.RLock()): lambda _: (threading.RLock, ()),
    threading.Condition: lambda _: (threading.Condition, ()),
}


class MotoState:
    """The content of every backend at the time it is made."""

    def __init__(self) -> None:
        self._backends = list(_backends())
        self._kept = self._copy([backend.__dict__ for backend in self._backends])

    def restore(self) -> None:
        """Let every backend have what it had; one that was made since has nothing."""
        for backend in _backends():
            if backend not in self._backends:
                backend.reset()
        for backend, content in zip(self._backends, self._copy(self._kept), strict=True):
            backend.__dict__.clear()
            backend.__dict__.update(content)

    def _copy(self, contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        # What is in one refers to others, which stay what they are.
        same: dict[int, Any] = {id(backend): backend for backend in self._backends}
        with (
            patch.dict(copyreg.dispatch_table, _LOCKS),
            patch.object(ParameterDict, "__deepcopy__", _copy_parameters, create=True),
        ):
            return copy.deepcopy(contents, same)


def _backends() -> Iterator[BaseBackend]:
    return (
        backend for service in BackendDict._instances for account in service.values() for backend in account.values()
    )


def _copy_parameters(self: ParameterDict, memo: dict[int, Any]) -> ParameterDict:
    """Copy what cannot be made as other dictionaries are: its account and region are arguments of it."""
    made = ParameterDict(self.account_id, self.region_name)
    made.__dict__.update(copy.deepcopy(self.__dict__, memo))
    made.update({name: copy.deepcopy(dict.__getitem__(self, name), memo) for name in dict.keys(self)})
    return made
