"""Tables of job definitions."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, Isolation, NeuronPurpose
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    JobDefinition,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
)
from relaunch.core.definitions.event_pattern import pattern_sources
from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
from relaunch.core.definitions.schedule_expression import next_time
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.instance_type_filters import format_gpu_memory
from relaunch.core.triggers.schedules import ChangedSchedule
from relaunch.core.triggers.upload_rules import ChangedRule, RuleChange
from relaunch.usecases.plan_jobs import Plan
from relaunch.usecases.register_definitions import Change, DefinitionChange
from relaunch_cli.views.formatting import format_price
from relaunch_cli.views.table import PlainTable


def render_definitions(registered: Iterable[RegisteredDefinition]) -> PlainTable:
    """Return the table of `definitions`."""
    headings = ("DEFINITION", "TASK DEFINITION", "ACCELERATOR", "OWNER", "STARTED BY")
    table = PlainTable(*headings, optional=("OWNER", "TASK DEFINITION", "ACCELERATOR"), prose="wrapped")
    for each in registered:
        definition = each.definition
        triggers = "; ".join(describe_trigger(trigger) for trigger in definition.triggers) or "direct calls only"
        table.add_row(
            definition.name,
            describe_runnable(definition),
            describe_gpus(definition),
            str(each.owner) if each.owner else "-",
            triggers,
        )
    return table


def describe_runnable(definition: JobDefinition) -> str:
    """Return what a definition runs: its task definition, or its image on Kubernetes."""
    if definition.target.capabilities.runs_pods and definition.kubernetes is not None:
        return f"{definition.target}: {definition.kubernetes.image}"
    return definition.task_definition


def describe_owner(owner: Owner | None) -> str:
    """Describe where a definition comes from."""
    if owner is None:
        return "registered by an earlier release, without an owner"
    return f"registered from {owner}, applied by {owner.caller}"


def describe_take_over(change: DefinitionChange) -> str:
    """Describe whose a definition was that another owner replaces or removes."""
    if change.owner_before is None:
        verb = "removed" if change.change is Change.REMOVED else "taken over by this file"
        return f"{change.name}: {verb}; an earlier release registered it, without an owner"
    verb = "removed" if change.change is Change.REMOVED else "taken over"
    return f"{change.name}: {verb} from {change.owner_before}, which {change.owner_before.caller} applied"


def render_changes(changes: Iterable[DefinitionChange], plans: Iterable[Plan]) -> PlainTable:
    """Return the table of `apply`: what changes, where each would run now, and when SIGKILL follows SIGTERM."""
    by_name = {plan.definition.name: plan for plan in plans}
    headings = ("DEFINITION", "CHANGE", "WOULD RUN NOW ON", "SIGKILL AFTER SIGTERM")
    table = PlainTable(*headings, optional=("SIGKILL AFTER SIGTERM",))
    for each in changes:
        plan = by_name.get(each.name)
        where = "-" if each.change is Change.REMOVED else _describe_place(plan)
        table.add_row(each.name, each.change.value, where, _stop_timeout(plan))
    return table


def _describe_place(plan: Plan | None) -> str:
    offering = plan.selection.chosen if plan and plan.selection else None
    if plan is not None and plan.quota_problem:
        return "nothing before AWS grants a quota"
    return _describe_offering(offering) if offering else "nothing right now"


def _stop_timeout(plan: Plan | None) -> str:
    stop_timeout = plan.stop_timeout if plan else None
    if stop_timeout is None:
        return "-"
    return f"{stop_timeout.seconds} s, {'task definition' if stop_timeout.is_own else 'set by Relaunch'}"


def _describe_offering(offering: Offering) -> str:
    price = offering.expected_usd_per_hour
    if price is None:
        return f"{offering.key} at an unknown price"
    limit = "up to " if offering.price_usd_per_hour is None else ""
    return f"{offering.key} at {limit}${format_price(price)}/h"


def describe_gpus(definition: JobDefinition) -> str:
    """Describe what a definition requires; the model and driver of pods are those of the definition, as it has them."""
    workload = definition.kubernetes
    nodes = f"{definition.nodes} nodes of " if definition.nodes > 1 else ""
    parts = [f"{nodes}{describe_accelerator(definition.accelerator)}"]
    if workload is not None and workload.gpu_model:
        parts.append(f"gpu_model {workload.gpu_model}")
    if workload is not None and workload.gpu_driver:
        parts.append(f"gpu_driver {workload.gpu_driver}")
    return ", ".join(parts)


def describe_accelerator(accelerator: AcceleratorRequirement) -> str:
    """Describe an accelerator requirement in a few words."""
    gpu = accelerator.gpu
    neuron = accelerator.neuron
    parts: list[str] = []
    if gpu:
        models = f" {'/'.join(gpu.models)}" if gpu.models else ""
        memory = f" {format_gpu_memory(gpu.memory_mib)}" if gpu.memory_mib else ""
        part = f"{gpu.compute_percent}% of a" if gpu.is_share else f"{gpu.count}x"
        isolated = " isolated" if gpu.is_share and gpu.isolation is Isolation.REQUIRED else ""
        parts.append(f"{part} GPU{models}{memory}{isolated}{_describe_generation(gpu)}")
    if neuron:
        part = f"{neuron.devices} Neuron devices" if neuron.devices else f"{neuron.cores} Neuron cores"
        models = f" {'/'.join(neuron.models)}" if neuron.models else ""
        parts.append(f"{part}{models}{' for inference' if neuron.purpose is NeuronPurpose.INFERENCE else ''}")
    if accelerator.instance_types:
        parts.append(", ".join(accelerator.instance_types))
    return "; ".join(parts)


def _describe_generation(gpu: GpuRequirement) -> str:
    capability = gpu.compute_capability
    least = f" compute capability {'.'.join(map(str, capability))}" if capability else ""
    return least + (f" {gpu.interconnect}" if gpu.interconnect else "")


def describe_changed_rule(changed: ChangedRule) -> str:
    """Describe the change of a rule."""
    return f"rule {changed.rule.name} for {changed.rule}: {changed.change.value}"


def describe_changed_schedule(changed: ChangedSchedule, now: datetime) -> str:
    """Describe the change of a schedule, with its next time unless it is removed."""
    schedule = changed.schedule
    text = f"schedule {schedule.name} ({schedule}): {changed.change.value}"
    if changed.change is RuleChange.REMOVED:
        return text
    try:
        zone = ZoneInfo(schedule.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return f"{text}; this machine does not know the time zone"
    following = next_time(schedule.expression, zone, now)
    return f"{text}, next at {following.astimezone(zone):%Y-%m-%d %H:%M %Z}" if following else text


def describe_trigger(trigger: Trigger) -> str:
    """Describe a trigger in a few words."""
    if isinstance(trigger, GithubTrigger):
        filters = "".join(f" [{' '.join(patterns)}]" for patterns in github_filters(trigger).values())
        wait = f", then image {trigger.wait_for_image.repository}" if trigger.wait_for_image else ""
        return f"{trigger.event} {trigger.repository}{filters}{wait}"
    if isinstance(trigger, ImageTrigger):
        return f"image {trigger.repository}:{trigger.tag}"
    if isinstance(trigger, S3Trigger):
        return f"s3://{trigger.bucket}/{trigger.prefix}*{trigger.suffix}"
    if isinstance(trigger, EventBridgeTrigger):
        return f"events of {', '.join(pattern_sources(trigger.pattern))}"
    if isinstance(trigger, ScheduleTrigger):
        return f"{trigger.expression} {trigger.time_zone}" + (", catching up" if trigger.catches_up else "")
    if isinstance(trigger, SnsTrigger):
        return f"messages on {trigger.topic}"
    assert_never(trigger)


def github_filters(trigger: GithubTrigger) -> dict[str, Sequence[str]]:
    """Return the filters that a GitHub trigger has, by their keys in a definition file."""
    names = ("branches", "tags", "paths", "workflows", "types", "packages", "run_events")
    return {name: getattr(trigger, name) for name in names if getattr(trigger, name)}
