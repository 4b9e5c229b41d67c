"""What the demo draws: requests to EC2 and ECS, a selection, the loss, the objects of a checkpoint, the results."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG
from relaunch.ports import StoredSelection
from relaunch_cli.views.selection import SelectionOptions, render_selection
from relaunch_cli.views.table import PlainTable
from relaunch_local.demo.outcome import JobResult
from relaunch_local.demo.training_log import draw_losses, sample_evenly
from relaunch_local.ecs.engine.model import BillLine

SHOWN_ENVIRONMENT = ("RELAUNCH_ATTEMPT", "RELAUNCH_CHECKPOINT_URI", "RELAUNCH_RESUME_URI", "RELAUNCH_GIT_SHA")
SHOWN_TAGS = (MACHINE_TAG, JOB_TAG)
ATTEMPT_STYLES = ("cyan", "green")


def draw_facts(facts: Sequence[tuple[str, str]], width: int) -> Table:
    """Return a table of names and values, one per line."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    room = width - max(len(name) for name, _ in facts) - 2
    for name, value in facts:
        table.add_row(name, Text(elide(value, room)))
    return table


def elide(text: str, width: int) -> str:
    """Replace the middle of a text that is too long with an ellipsis."""
    if len(text) <= width:
        return text
    kept = max(width - 1, 2)
    return f"{text[: kept // 3]}…{text[-(kept - kept // 3) :]}"


def draw_create_fleet(request: Mapping[str, Any], width: int) -> RenderableType:
    """Return the fields of a CreateFleet request that decide what is launched where."""
    (config,) = request["LaunchTemplateConfigs"]
    template = config["LaunchTemplateSpecification"]
    capacity = request["TargetCapacitySpecification"]
    options = request.get("SpotOptions") or request.get("OnDemandOptions") or {}
    tags = next(each["Tags"] for each in request["TagSpecifications"] if each["ResourceType"] == "instance")
    shown = {tag["Key"]: tag["Value"] for tag in tags if tag["Key"] in SHOWN_TAGS}
    least = options.get("MinTargetCapacity")
    facts = [
        ("Type", f"{request['Type']}: {capacity['TotalTargetCapacity']} {capacity['DefaultTargetCapacityType']}"),
        *((("MinTargetCapacity", f"{least}: all or none"),) if least else ()),
        ("AllocationStrategy", str(options.get("AllocationStrategy", ""))),
        ("LaunchTemplate", f"{template['LaunchTemplateId']}, version {template['Version']}"),
        *(("Override", f"{each['InstanceType']} in {each['AvailabilityZone']}") for each in config["Overrides"]),
        ("ClientToken", request["ClientToken"]),
        *(("Tag", f"{key}={value}") for key, value in shown.items()),
    ]
    return draw_facts(facts, width)


def draw_run_task(request: Mapping[str, Any], width: int, shown: Sequence[str] = SHOWN_ENVIRONMENT) -> RenderableType:
    """Return the fields of a RunTask request that decide what runs where, and the variables that are `shown`."""
    constraints = (f"{each['type']}: {each['expression']}" for each in request.get("placementConstraints", ()))
    environment = read_environment(request)
    facts = [
        ("taskDefinition", request["taskDefinition"]),
        ("launchType", request.get("launchType", "")),
        *(("constraint", part) for each in constraints for part in each.replace(" and ", "\nand ").splitlines()),
        ("startedBy", request["startedBy"]),
        ("clientToken", request["clientToken"]),
    ]
    variables = [f"{name}={environment[name]}" for name in shown if name in environment]
    return Group(draw_facts(facts, width), *(Text(elide(each, width)) for each in variables))


def read_environment(request: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment variables of a RunTask request's overrides."""
    overrides = request.get("overrides", {}).get("containerOverrides", ())
    return {each["name"]: each["value"] for override in overrides for each in override.get("environment", ())}


def draw_selection(selection: StoredSelection) -> RenderableType:
    """Return the tables of `relaunch explain --full`."""
    return render_selection(selection.rows, selection.filter_counts, SelectionOptions(has_rejected=True))


def describe_choice(attempt: Attempt) -> str:
    """Describe the offering of an attempt."""
    chosen = attempt.placement
    return f"{chosen.offering.instance_type} {chosen.offering.purchase} at {chosen.price_text}"


def draw_loss_curve(curve: Mapping[int, tuple[int, float]], width: int) -> Text:
    """Return the loss over the steps of a job, with a colour for each attempt."""
    if not curve:
        return Text("no step yet", style="dim")
    steps = sorted(curve)
    start = f"loss {curve[steps[0]][1]:.4f} "
    end = f" {curve[steps[-1]][1]:.4f}"
    shown = sample_evenly(steps, max(width - len(start) - len(end), 2))
    blocks = draw_losses([curve[step][1] for step in shown])
    drawn = Text(start)
    for step, block in zip(shown, blocks, strict=True):
        drawn.append(block, style=ATTEMPT_STYLES[(curve[step][0] - 1) % len(ATTEMPT_STYLES)])
    return drawn.append(end)


def draw_objects(rows: Sequence[Mapping[str, Any]], prefix: str) -> Table:
    """Return a table of a checkpoint's objects below a prefix, with their sizes in bytes."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True, style="dim")
    for row in rows:
        table.add_row(Text(row["key"].removeprefix(prefix)), f"{row['size']:,}")
    return table


def draw_results(results: Sequence[JobResult]) -> PlainTable:
    """Return a table of the results of both jobs."""
    table = PlainTable("STARTED BY", "JOB", "MACHINE TAKEN", "RESUMED", "AGAIN", "LOSS")
    for result in results:
        how = {"push": "with a warning", "upload": "without one"}[result.kind]
        again = f"{result.steps_taken_twice} steps"
        table.add_row(result.kind, result.job_id, how, f"step {result.resumed_step}", again, f"{result.loss:.6f}")
    return table


def describe_bill(bill: Sequence[Mapping[str, Any]]) -> str:
    """Describe the cost of the machines, of which none may be left."""
    ended = sum(line["terminated_at"] is not None for line in bill)
    cost = sum(line["cost_usd"] for line in bill)
    free = sum(line["is_free"] for line in bill)
    why = f"; EC2 bills nothing for {free}, interrupted in the first hour" if free else ""
    return f"{len(bill)} machines were launched and {ended} terminated; they cost ${cost:.4f}{why}"


def describe_end(line: BillLine, now: datetime) -> str:
    """Describe the end of a machine: how long it is paid for, if it is."""
    seconds = ((line.billing_ended_at or now) - line.launched_at).total_seconds()
    if line.is_free:
        return (
            f"{line.instance_id} is terminated after {seconds:.1f} s; interrupted in its first hour, it costs nothing"
        )
    paid = line.billed_seconds(now)
    what = f"; {paid:.0f} s are paid, the least that EC2 bills" if paid > seconds else ", which are paid"
    return f"{line.instance_id} is terminated after {seconds:.1f} s{what}"
