"""The lines that a training prints, `relaunch: step=120 of=200 loss=0.0081` (docs/checkpoints.md), read strictly.

Anybody's program may print anything: a line of another form says nothing, and nothing of it is kept.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime

from relaunch.core.jobs.reported import MAX_METRICS, MOST_STEPS
from relaunch.core.records import dataclass

_START = "relaunch: step="
_MAX_LINE = 4_000
_PAIR = r"(?P<name>[A-Za-z_][A-Za-z0-9_./-]{0,79})=(?P<value>-?[0-9]{1,40}(\.[0-9]{1,40})?(e[+-]?[0-9]{1,2})?)"


@dataclass(frozen=True, slots=True)
class ReportedStep:
    """What a line says: a step, when the log got it, of how many steps, the loss, and other numbers by name."""

    step: int
    at: datetime
    total_steps: int | None = None
    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)


def read_line(line: str, at: datetime) -> ReportedStep | None:
    """Return what a line of a log says, None if it is no such line."""
    if not line.startswith(_START) or len(line) > _MAX_LINE:
        return None
    pairs = [re.fullmatch(_PAIR, each) for each in line.rstrip().removeprefix("relaunch: ").split(" ")]
    numbers = {each["name"]: each["value"] for each in pairs if each is not None}
    if len(numbers) < len(pairs) or len(pairs) > MAX_METRICS:
        return None
    steps = {name: int(value) for name in ("step", "of") if (value := numbers.pop(name, "")).isdecimal()}
    if "step" not in steps or not steps["step"] <= steps.get("of", MOST_STEPS) <= MOST_STEPS:
        return None
    numbers.pop("save_seconds", None)
    loss = numbers.pop("loss", None)
    metrics = {name: float(value) for name, value in numbers.items()}
    return ReportedStep(steps["step"], at, steps.get("of"), None if loss is None else float(loss), metrics)


def read_lines(lines: Iterable[tuple[datetime, str]]) -> tuple[ReportedStep, ...]:
    """Return the steps that the lines of one task say, in order: one that is no later than those before is left out."""
    found: list[ReportedStep] = []
    for at, line in lines:
        said = read_line(line, at)
        if said is not None and (not found or (said.step > found[-1].step and said.at >= found[-1].at)):
            found.append(said)
    return tuple(found)
