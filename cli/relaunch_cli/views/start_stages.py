"""The stages of a start as one bar to scale, with a legend."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from relaunch.core.lifecycle.start_stages import Stage, Start, StartState
from relaunch.core.machines.machine import describe_request
from relaunch_cli.terminal import one_line
from relaunch_cli.views.formatting import format_duration, format_time, format_timestamp
from relaunch_cli.views.table import PlainTable

# Neighbours differ, and each is black on a light ground: the letters say the same without colours.
_STYLES = ("black on cyan", "black on yellow", "black on green", "black on magenta", "black on white")
_PIPE_WIDTH = 80
_KEYS = "ABCDEFGHIJKLM"


class _Bar:
    """A bar as wide as the terminal, in which each stage has as many cells of its letter as its time takes."""

    def __init__(self, start: Start) -> None:
        self._start = start

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the bar; in a pipe, where nothing is wrapped, it has the width of a usual terminal."""
        bar = Text(no_wrap=True, overflow="ignore")
        width = _PIPE_WIDTH if options.no_wrap else options.max_width
        seconds = [self._start.duration(each).total_seconds() for each in self._start.stages]
        for index, cells in enumerate(share_cells(seconds, width)):
            bar.append(_key(index, self._start.stages[index]) * cells, style=_style(index))
        yield bar


def share_cells(seconds: Sequence[float], width: int) -> list[int]:
    """Return the cells of each stage: their sum is the width, and each end is rounded to the nearest cell."""
    total = sum(seconds)
    ends = [round(sum(seconds[: index + 1]) / total * width) for index in range(len(seconds))]
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]


def _key(index: int, stage: Stage) -> str:
    """Return the letter of a stage: a small one while it is not over."""
    return _KEYS[index] if stage.ended_at is not None else _KEYS[index].lower()


def _style(index: int) -> str:
    return _STYLES[index % len(_STYLES)]


def render_starts(starts: Sequence[Start], now: datetime, *, has_more: bool) -> RenderableType:
    """Return what `explain --machine` prints of these starts; `has_more`: the job has others."""
    parts: list[RenderableType] = []
    for start in starts:
        parts += [*([Text()] if parts else []), *_render_start(start, now)]
    if has_more:
        parts.append(Text("the newest start: --full has all", style="dim"))
    return Group(*parts)


def _render_start(start: Start, now: datetime) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(_title(start), style="bold"), Text(_describe_outcome(start, now)), Text()]
    if start.until > start.began_at:
        parts += [_Bar(start), Text()]
    parts.append(_legend(start, now))
    return [*parts, *(Text(one_line(note), style="dim") for note in start.notes)]


def _title(start: Start) -> str:
    attempt = start.record.attempt
    machine = start.record.machine
    title = f"Attempt {start.record.number}"
    if machine is not None:
        what = f"{machine.instance_id} ({machine.offering})" if machine.instance_id else describe_request(machine)
        return f"{title}: {what}"
    if attempt is None:
        return title
    return f"{title}: {attempt.placement.offering} by {attempt.placement.capacity_provider or 'its cluster'}"


def _describe_outcome(start: Start, now: datetime) -> str:
    began = f"asked for at {format_time(start.began_at, now)} UTC"
    took = format_duration(start.until - start.began_at)
    match start.state:
        case StartState.STARTED:
            return f"{began}; its program ran {took} later"
        case StartState.STARTING:
            return f"{began}; {took} so far"
        case _:
            reason = f": {one_line(start.reason)}" if start.reason else ""
            return f"{began}; stopped {format_timestamp(start.until, now)}, after {took}{reason}"


def _legend(start: Start, now: datetime) -> PlainTable:
    headings = ("", "STAGE", "SECONDS", "UNTIL (UTC)", "ENDED BY")
    table = PlainTable(*headings, right=("SECONDS",), optional=("UNTIL (UTC)",), prose="wrapped")
    for index, stage in enumerate(start.stages):
        is_over = stage.ended_at is not None
        going_on = "it stopped here" if start.state is StartState.STOPPED else "it goes on"
        table.add_row(
            Text(_key(index, stage), style=_style(index)),
            ", ".join(stage.parts),
            f"{start.duration(stage).total_seconds():.1f}",
            format_time(stage.ended_at or start.until, now),
            stage.ended_by if is_over else f"{going_on}, since {format_time(stage.began_at, now)}",
        )
    return table
