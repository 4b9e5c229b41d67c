"""An index of the jobs table, which lags behind the table."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from relaunch_local.ecs import Clock
from relaunch_local.simulation.chance import Chance

T = TypeVar("T")


@dataclass
class LaggingIndex(Generic[T]):
    """What was written by name, as an eventually consistent index shows it."""

    _clock: Clock
    _chance: Chance
    _entries: dict[str, list[tuple[datetime, T]]] = field(default_factory=lambda: defaultdict(list))

    def note_written(self, name: str, written: T) -> None:
        """Propagate a write, with a delay; the writes of one name stay in their order."""
        entries = self._entries[name]
        visible_at = self._clock.now() + timedelta(seconds=self._lag(name))
        entries.append((max(visible_at, entries[-1][0]) if entries else visible_at, written))

    def all_shown(self) -> list[T]:
        """Return everything as the index shows it."""
        shown = (self._shown(name) for name in self._entries)
        return [each for each in shown if each is not None]

    def _shown(self, name: str) -> T | None:
        now = self._clock.now()
        entries = self._entries[name]
        while len(entries) > 1 and entries[1][0] <= now:
            del entries[0]
        return entries[0][1] if entries[0][0] <= now else None

    def _lag(self, name: str) -> float:
        if self._chance.strikes("index-behind", 0.01, note=name):
            return self._chance.stream("index-lag").uniform(3.0, 60.0)
        return self._chance.stream("index-latency").uniform(0.0, 0.3)
