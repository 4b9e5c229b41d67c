"""What was read, kept for seconds: several pages, tabs and looks in a row cost one read."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

MOST = 2_000
"""How many results are kept."""
T = TypeVar("T")


@dataclass(slots=True)
class _Read:
    """A read: one thread does it at a time, and those that wait for it get what it found."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    at: datetime | None = None
    version: int | None = None
    found: Any = None


class Kept:
    """Results of reads by their keys; no two threads read the same, and a slow read keeps no other one waiting."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._reads: OrderedDict[Hashable, _Read] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, seconds: float, load: Callable[[], T], version: int | None = None) -> T:
        """Return what was read of a key within the last seconds, or read it; what `load` raises is not kept.

        What was read of another version is not returned, and no longer kept.
        """
        with self._lock:
            read = self._reads.setdefault(key, _Read())
            self._reads.move_to_end(key)
            while len(self._reads) > MOST:
                self._reads.popitem(last=False)
        with read.lock:
            now = self._now()
            # A clock that was set back makes nothing last for ever.
            is_new = read.at is not None and timedelta(0) <= now - read.at < timedelta(seconds=seconds)
            if not is_new or read.version != version:
                read.found = load()
                read.at = now
                read.version = version
            return read.found  # type: ignore[no-any-return]  # it is what `load` of this key returned

    def forget(self) -> None:
        """Forget everything, also what is being read: something was changed."""
        with self._lock:
            self._reads.clear()
