"""What the training wrote, line by line, and its loss as a line of blocks."""

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
    """The entries of a job's training, in the order in which they were written, by attempt."""

    entries: defaultdict[int, list[Entry]] = field(default_factory=lambda: defaultdict(list))

    def add_line(self, attempt: int, message: str) -> Entry | None:
        """Keep a line; return its entry, None when it is not one of the training's."""
        try:
            entry = json.loads(message)
        except ValueError:
            return None
        if not isinstance(entry, dict) or "event" not in entry:
            return None
        self.entries[attempt].append(entry)
        return entry

    def find(self, attempt: int, event: str) -> Entry | None:
        """The newest entry of this kind; None when there is none yet."""
        return next((each for each in reversed(self.entries[attempt]) if each["event"] == event), None)

    def losses(self, attempt: int) -> dict[int, float]:
        """The loss after each step that an attempt took."""
        return {each["step"]: each["loss"] for each in self.entries[attempt] if each["event"] == "step"}

    def loss_curve(self) -> dict[int, tuple[int, float]]:
        """The attempt and the loss that count for each step: those of the latest attempt that took it."""
        return {
            step: (attempt, loss) for attempt in sorted(self.entries) for step, loss in self.losses(attempt).items()
        }

    def first_step(self, attempt: int) -> int:
        """The step that an attempt started from; 0 for the first."""
        resumed = self.find(attempt, "resumed")
        return int(resumed["step"]) if resumed else 0

    def last_step(self, attempt: int) -> int:
        """The last step that an attempt took; 0 before the first."""
        return max(self.losses(attempt), default=0)


def draw_losses(losses: Sequence[float]) -> str:
    """Draw each loss as a block, on a logarithmic scale: a training that learns goes down."""
    logarithms = [math.log(max(each, SMALLEST)) for each in losses]
    low, high = min(logarithms, default=0.0), max(logarithms, default=0.0)
    scale = (len(BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(BLOCKS[round((each - low) * scale)] for each in logarithms)


def sample_evenly(values: Sequence[Value], count: int) -> Sequence[Value]:
    """Leave at most `count` of the values, two at least, evenly spread, the first and the last among them."""
    if len(values) <= count:
        return values
    return [values[round(index * (len(values) - 1) / (count - 1))] for index in range(count)]
