"""Until when nobody buys a machine for the tasks of a family, because machines that were bought for them ran none.

All jobs of a family share that pause, which may be longer than one of them would wait for its own next probe. It is
reckoned from what ECS refused to place or to start on which instance, and from the tasks that ran.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

# What the design says, written down here once more: the checks believe no constant of the application.
_BY_CHANCE = 2
_PAUSES = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4))
_SPACED_AFTER = 8
_SPACED = timedelta(hours=6)
_MOST_IN_A_DAY = 12
_DAY = timedelta(days=1)
# The clock of a function decides, once the refusal is handled.
_SLACK = timedelta(minutes=1)


@dataclass(slots=True)
class FamilyPauses:
    """Knows when each instance was last useless for a family, since a task of that ran."""

    _useless: dict[str, dict[str, datetime]] = field(default_factory=lambda: defaultdict(dict))

    def note_useless(self, family: str, instance: str, at: datetime) -> None:
        """Note that ECS placed or started no task of a family on an instance."""
        # Again at the end of its order: a machine that is kept is useless only when it is given up.
        self._useless[family].pop(instance, None)
        self._useless[family][instance] = at

    def note_useful(self, family: str) -> None:
        """Note that a task of a family runs, which ends its pause."""
        self._useless.pop(family, None)

    def until(self, family: str, now: datetime) -> datetime:
        """Return until when no machine is bought for a family, `now` if one may be."""
        times = list(self._useless.get(family, {}).values())
        until = now
        count = 0
        paused_until: datetime | None = None
        for at in times:
            if paused_until is not None and at < paused_until - _SLACK:
                continue
            count += 1
            paused_until = at + _PAUSES[min(count - _BY_CHANCE, len(_PAUSES)) - 1] if count > _BY_CHANCE else None
            until = max(until, paused_until or now)
        recent = [at for at in times if now - at < _DAY]
        if len(recent) >= _MOST_IN_A_DAY:
            return max(until, recent[-_MOST_IN_A_DAY] + _DAY)
        return max(until, recent[-1] + _SPACED) if len(recent) >= _SPACED_AFTER else until
