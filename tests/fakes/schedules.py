"""Schedules in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field

from relaunch.core.triggers.schedules import FoundSchedule, Schedule


@dataclass
class FakeSchedules:
    """Implements Schedules; `log` has every change, and each change calls the next function of `on_change` first."""

    found: dict[str, FoundSchedule] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    on_change: list[Callable[[], object]] = field(default_factory=list)
    takes_schedules: bool = True
    reads: int = 0

    def list_schedules(self) -> list[FoundSchedule]:
        self.reads += 1
        return list(self.found.values())

    def put_schedule(self, schedule: Schedule) -> None:
        self._change("put", str(schedule))
        self.found[schedule.name] = FoundSchedule(schedule, is_complete=True)

    def remove_schedule(self, name: str) -> None:
        self._change("remove", name)
        self.found.pop(name, None)

    def _change(self, kind: str, what: str) -> None:
        if self.on_change:
            self.on_change.pop(0)()
        self.log.append((kind, what))
