"""What was read, kept for seconds: several pages, tabs and looks in a row cost one read."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime, timedelta
from typing import Any, TypeVar

_MOST = 2_000
T = TypeVar("T")


class Kept:
    """Results of reads by their keys; one read at a time, so that no two threads read the same."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._found: OrderedDict[Hashable, tuple[datetime, Any]] = OrderedDict()
        self._lock = threading.RLock()

    def get(self, key: Hashable, seconds: float, load: Callable[[], T]) -> T:
        """Return what was read of a key within the last seconds, or read it; what `load` raises is not kept."""
        with self._lock:
            now = self._now()
            kept = self._found.get(key)
            # A clock that was set back makes nothing last for ever.
            if kept is not None and timedelta(0) <= now - kept[0] < timedelta(seconds=seconds):
                self._found.move_to_end(key)
                return kept[1]  # type: ignore[no-any-return]  # it is what `load` of this key returned
            loaded = load()
            self._found[key] = (now, loaded)
            self._found.move_to_end(key)
            while len(self._found) > _MOST:
                self._found.popitem(last=False)
            return loaded

    def forget(self) -> None:
        """Forget everything: something was changed."""
        with self._lock:
            self._found.clear()
