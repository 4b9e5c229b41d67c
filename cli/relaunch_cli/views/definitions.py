"""Registered job definitions as a table."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from relaunch.core.definitions.accelerator import AcceleratorRequirement, Isolation
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, JobDefinition, Trigger
from relaunch_cli.views.screen import plain_table


def render_definitions(definitions: Iterable[JobDefinition]) -> Table:
    """Return the registered definitions, a line per trigger."""
    table = plain_table("DEFINITION", "TASK DEFINITION", "ACCELERATOR", "STARTED BY")
    for definition in definitions:
        triggers = "\n".join(describe_trigger(trigger) for trigger in definition.triggers) or "direct calls only"
        table.add_row(
            definition.name, definition.task_definition, describe_accelerator(definition.accelerator), Text(triggers)
        )
    return table


def describe_accelerator(accelerator: AcceleratorRequirement) -> str:
    """Say in short what the machine must have."""
    gpu, neuron = accelerator.gpu, accelerator.neuron
    parts: list[str] = []
    if gpu:
        models = f" {'/'.join(gpu.models)}" if gpu.models else ""
        memory = f" {gpu.memory_mib / 1024:g}GiB" if gpu.memory_mib else ""
        part = f"{gpu.compute_percent}% of a" if gpu.is_share else f"{gpu.count}x"
        isolated = " isolated" if gpu.is_share and gpu.isolation is Isolation.REQUIRED else ""
        parts.append(f"{part} GPU{models}{memory}{isolated}")
    if neuron:
        parts.append(f"{neuron.devices} Neuron devices" if neuron.devices else f"{neuron.cores} Neuron cores")
    if accelerator.instance_types:
        parts.append(", ".join(accelerator.instance_types))
    return "; ".join(parts)


def describe_trigger(trigger: Trigger) -> str:
    """Say in short what starts a job."""
    if isinstance(trigger, GithubTrigger):
        names = ("branches", "tags", "paths", "workflows", "types", "packages")
        filters = [" ".join(getattr(trigger, name)) for name in names if getattr(trigger, name)]
        wait = f", then image {trigger.wait_for_image.repository}" if trigger.wait_for_image else ""
        return f"{trigger.event} {trigger.repository}" + "".join(f" [{each}]" for each in filters) + wait
    if isinstance(trigger, ImageTrigger):
        return f"image {trigger.repository}:{trigger.tag}"
    return f"s3://{trigger.bucket}/{trigger.prefix}*{trigger.suffix}"
