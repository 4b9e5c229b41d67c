"""The parts of the story that are looked at: a request, a selection, a loss, the objects of a checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.jobs.job import Attempt
from relaunch.ports import StoredSelection
from relaunch_cli.views.screen import plain_table
from relaunch_cli.views.selection import render_selection
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.training_log import draw_losses, sample_evenly

SHOWN_ENVIRONMENT = ("RELAUNCH_ATTEMPT", "RELAUNCH_CHECKPOINT_URI", "RELAUNCH_RESUME_URI", "RELAUNCH_GIT_SHA")
ATTEMPT_STYLES = ("cyan", "green")


def draw_facts(facts: Sequence[tuple[str, str]], width: int) -> Table:
    """Names and what they stand for, below each other, one line each."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    room = width - max(len(name) for name, _ in facts) - 2
    for name, value in facts:
        table.add_row(name, Text(elide(value, room)))
    return table


def elide(text: str, width: int) -> str:
    """Leave out the middle of what is too long."""
    if len(text) <= width:
        return text
    kept = max(width - 1, 2)
    return f"{text[: kept // 3]}…{text[-(kept - kept // 3) :]}"


def draw_run_task(request: Mapping[str, Any], width: int) -> RenderableType:
    """The fields of a RunTask request that decide what runs where."""
    strategy = ", ".join(each["capacityProvider"] for each in request.get("capacityProviderStrategy", ()))
    constraints = "; ".join(f"{each['type']}: {each['expression']}" for each in request.get("placementConstraints", ()))
    environment = read_environment(request)
    facts = [
        ("taskDefinition", request["taskDefinition"]),
        ("capacityProvider", strategy),
        ("placementConstraint", constraints),
        ("startedBy", request["startedBy"]),
        ("clientToken", request["clientToken"]),
    ]
    variables = [f"{name}={environment[name]}" for name in SHOWN_ENVIRONMENT if name in environment]
    return Group(draw_facts(facts, width), *(Text(elide(each, width)) for each in variables))


def read_environment(request: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a RunTask request gives to its containers."""
    overrides = request.get("overrides", {}).get("containerOverrides", ())
    return {each["name"]: each["value"] for override in overrides for each in override.get("environment", ())}


def draw_selection(selection: StoredSelection, width: int) -> RenderableType:
    """The table of `relaunch explain`."""
    return render_selection(selection.rows, selection.filter_counts, width)


def describe_choice(attempt: Attempt) -> str:
    """What was chosen for an attempt."""
    chosen = attempt.placement
    return f"{chosen.offering.instance_type} {chosen.offering.purchase} at ${chosen.price_usd_per_hour:.4f}/h"


def draw_loss_curve(curve: Mapping[int, tuple[int, float]], width: int) -> Text:
    """The loss over the steps of a job, each attempt in a colour of its own."""
    if not curve:
        return Text("no step yet", style="dim")
    steps = sorted(curve)
    start, end = f"loss {curve[steps[0]][1]:.4f} ", f" {curve[steps[-1]][1]:.4f}"
    shown = sample_evenly(steps, max(width - len(start) - len(end), 2))
    blocks = draw_losses([curve[step][1] for step in shown])
    drawn = Text(start)
    for step, block in zip(shown, blocks, strict=True):
        drawn.append(block, style=ATTEMPT_STYLES[(curve[step][0] - 1) % len(ATTEMPT_STYLES)])
    return drawn.append(end)


def draw_objects(rows: Sequence[Mapping[str, Any]], prefix: str) -> Table:
    """The objects of a checkpoint with their sizes in bytes, below a prefix."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    for row in rows:
        table.add_row(Text(row["key"].removeprefix(prefix)), f"{row['size']:,}")
    return table


def draw_results(endings: Sequence[JobResult]) -> Table:
    """How both jobs ended."""
    table = plain_table("STARTED BY", "JOB", "MACHINE TAKEN", "RESUMED", "AGAIN", "LOSS")
    for result in endings:
        how = {"push": "with a warning", "upload": "without one"}[result.kind]
        again = f"{result.steps_taken_twice} steps"
        table.add_row(result.kind, result.job_id, how, f"step {result.resumed_step}", again, f"{result.loss:.6f}")
    return table


def describe_bill(bill: Sequence[Mapping[str, Any]]) -> str:
    """What the machines cost, from their launch to their end or until now."""
    return f"{len(bill)} machines were launched; they cost ${sum(line['cost_usd'] for line in bill):.4f}"
