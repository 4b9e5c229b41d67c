"""The log of a training, and its loss as a line of block characters."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

BLOCKS = "▁▂▃▄▅▆▇█"
SMALLEST = 1e-12
Entry = Mapping[str, Any]
Value = TypeVar("Value")


@dataclass
class TrainingLog:
    """The log entries of a job's training by attempt, in order."""

    entries: defaultdict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    def add_line(self, attempt: int, message: str) -> Entry | None:
        """Add a line; return its entry, or None if the line is not a log entry."""
        try:
            entry = json.loads(message)
        except ValueError:
            return None
        if not isinstance(entry, dict) or "event" not in entry:
            return None
        self.entries[attempt].append(entry)
        return entry

    def find(self, attempt: int, event: str) -> Entry | None:
        """Return the newest entry of this kind, if any."""
        return next((each for each in reversed(self.entries[attempt]) if each["event"] == event), None)

    def losses(self, attempt: int) -> dict[int, float]:
        """Return the loss after each step of an attempt."""
        return {each["step"]: each["loss"] for each in self.entries[attempt] if each["event"] == "step"}

    def loss_curve(self) -> dict[int, tuple[int, float]]:
        """Return the attempt and the loss of each step, from the latest attempt that took it."""
        return {
            step: (attempt, loss) for attempt in sorted(self.entries) for step, loss in self.losses(attempt).items()
        }

    def first_step(self, attempt: int) -> int:
        """Return the step that an attempt resumed from, or 0."""
        resumed = self.find(attempt, "resumed")
        return int(resumed["step"]) if resumed else 0

    def last_step(self, attempt: int) -> int:
        """Return the last step of an attempt, or 0."""
        return max(self.losses(attempt), default=0)


def draw_losses(losses: Sequence[float]) -> str:
    """Return a block character for each loss, on a logarithmic scale."""
    logarithms = [math.log(max(each, SMALLEST)) for each in losses]
    low = min(logarithms, default=0.0)
    high = max(logarithms, default=0.0)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((each - low) * scale)] for each in logarithms)


def sample_evenly(values: Sequence[Value], count: int) -> Sequence[Value]:
    """Return at most `count` (at least 2) evenly spaced values, including the first and the last."""
    if len(values) <= count:
        return values
    return [values[round(index * (len(values) - 1) / (count - 1))] for index in range(count)]
