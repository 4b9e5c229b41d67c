"""Job definitions."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import assert_never

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, NeuronRequirement
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
)
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
from relaunch.core.triggers.schedules import ChangedSchedule
from relaunch.core.triggers.upload_rules import ChangedRule
from relaunch.usecases.plan_jobs import Plan
from relaunch.usecases.register_definitions import DefinitionChange
from relaunch_cli.views.definitions import github_filters
from relaunch_cli.views.json_output.json_time import JsonObject
from relaunch_cli.views.json_output.values import json_seconds, stop_timeout_json


def changes_json(
    changes: Iterable[DefinitionChange],
    changed_rules: Iterable[ChangedRule],
    changed_schedules: Iterable[ChangedSchedule],
    plans: Iterable[Plan],
    *,
    is_dry_run: bool,
) -> JsonObject:
    """Return the document of `apply`."""
    by_name = {plan.definition.name: plan for plan in plans}
    documents = [_change_json(each, by_name.get(each.name)) for each in changes]
    return {"is_dry_run": is_dry_run, "definitions": documents, **_sources_json(changed_rules, changed_schedules)}


def deletion_json(
    deleted: RegisteredDefinition,
    changed_rules: Iterable[ChangedRule],
    changed_schedules: Iterable[ChangedSchedule],
) -> JsonObject:
    """Return the document of `definitions delete`."""
    return {"deleted": definition_json(deleted), **_sources_json(changed_rules, changed_schedules)}


def _sources_json(rules: Iterable[ChangedRule], schedules: Iterable[ChangedSchedule]) -> JsonObject:
    return {"rules": _rules_json(rules), "schedules": _schedules_json(schedules)}


def _schedules_json(changed_schedules: Iterable[ChangedSchedule]) -> list[JsonObject]:
    return [
        {
            "name": each.schedule.name,
            "change": each.change.value,
            "expression": each.schedule.expression,
            "time_zone": each.schedule.time_zone,
        }
        for each in changed_schedules
    ]


def _rules_json(changed_rules: Iterable[ChangedRule]) -> list[JsonObject]:
    return [
        {
            "name": each.rule.name,
            "change": each.change.value,
            "bucket": each.rule.bucket,
            "sources": list(each.rule.sources),
        }
        for each in changed_rules
    ]


def _change_json(change: DefinitionChange, plan: Plan | None) -> JsonObject:
    return {
        "name": change.name,
        "change": change.change.value,
        "is_taken_over": change.is_taken_over,
        "owner_before": owner_json(change.owner_before),
        "notices": list(plan.notices) if plan else [],
        "stop_timeout": stop_timeout_json(plan.stop_timeout if plan else None),
    }


def owner_json(owner: Owner | None) -> JsonObject | None:
    """Return the owner of a definition."""
    if owner is None:
        return None
    return {"repository": owner.repository or None, "file": owner.file, "caller": owner.caller}


def definition_json(registered: RegisteredDefinition) -> JsonObject:
    """Return a definition of `definitions`, and of `definitions show`."""
    definition = registered.definition
    return {
        "name": definition.name,
        "task_definition": definition.task_definition or None,
        "container": definition.container,
        "on": [trigger_json(trigger) for trigger in definition.triggers],
        "inputs": {
            name: {"pattern": each.pattern, "default": each.default} for name, each in definition.inputs.items()
        },
        "command": list(definition.command),
        "environment": dict(definition.environment),
        "accelerator": accelerator_json(definition.accelerator),
        "nodes": definition.nodes,
        "disk_gib": definition.disk_gib,
        "purchase": definition.purchase.value,
        "checkpoint": definition.checkpoint_uri,
        "estimated_duration_seconds": json_seconds(definition.estimated_duration),
        "estimated_on": asdict(definition.estimated_on) if definition.estimated_on else None,
        "precision": definition.precision,
        "total_steps": definition.total_steps,
        "deadline_seconds": json_seconds(definition.deadline),
        "patience_seconds": json_seconds(definition.patience),
        "policy": definition.policy.value,
        "padding": definition.padding,
        "max_runtime_seconds": json_seconds(definition.max_runtime),
        "max_running_jobs": definition.max_running_jobs,
        "max_waiting_jobs": definition.max_waiting_jobs,
        "callers": list(definition.callers),
        "notices": {each.receiver: [kind.value for kind in each.kinds] for each in definition.notices},
        "links": dict(definition.links),
        "concurrency": asdict(definition.concurrency) if definition.concurrency else None,
        "max_failures": definition.max_failures,
        "retry": asdict(definition.retry),
        "max_price_per_hour": definition.max_price_usd_per_hour,
        "target": str(definition.target),
        "kubernetes": _workload_json(definition.kubernetes) if definition.kubernetes else None,
        "owner": owner_json(registered.owner),
    }


def _workload_json(workload: KubernetesWorkload) -> JsonObject:
    """Return a workload; what is not given is null."""
    return {name: value if isinstance(value, dict) else value or None for name, value in asdict(workload).items()}


def accelerator_json(accelerator: AcceleratorRequirement) -> JsonObject:
    """Return an accelerator requirement."""
    gpu = accelerator.gpu
    neuron = accelerator.neuron
    return {
        "gpu": _gpu_json(gpu) if gpu else None,
        "neuron": _neuron_json(neuron) if neuron else None,
        "instance_types": list(accelerator.instance_types),
    }


def _neuron_json(neuron: NeuronRequirement) -> JsonObject:
    return {
        "devices": neuron.devices,
        "cores": neuron.cores,
        "models": list(neuron.models),
        "purpose": neuron.purpose.value,
    }


def _gpu_json(gpu: GpuRequirement) -> JsonObject:
    capability = gpu.compute_capability
    return {
        "count": gpu.count,
        "memory_mib": gpu.memory_mib,
        "models": list(gpu.models),
        "compute_percent": gpu.compute_percent,
        "isolation": gpu.isolation.value if gpu.is_share else None,
        "compute_capability": ".".join(map(str, capability)) if capability else None,
        "interconnect": gpu.interconnect.value if gpu.interconnect else None,
    }


def trigger_json(trigger: Trigger) -> JsonObject:
    """Return a trigger by its source."""
    if isinstance(trigger, GithubTrigger):
        github: JsonObject = {"repository": trigger.repository, "event": trigger.event}
        github |= {name: list(patterns) for name, patterns in github_filters(trigger).items()}
        wait = trigger.wait_for_image
        if wait:
            timeout = wait.timeout.total_seconds()
            github["wait_for_image"] = {"repository": wait.repository, "tag": wait.tag, "timeout_seconds": timeout}
        return {"github": github}
    if isinstance(trigger, ImageTrigger):
        return {"image": {"repository": trigger.repository, "tag": trigger.tag}}
    if isinstance(trigger, S3Trigger):
        return {"s3": {"bucket": trigger.bucket, "prefix": trigger.prefix, "suffix": trigger.suffix}}
    if isinstance(trigger, EventBridgeTrigger):
        return {"eventbridge": {"pattern": json.loads(trigger.pattern), "inputs": dict(trigger.inputs)}}
    if isinstance(trigger, ScheduleTrigger):
        missed = "catch_up" if trigger.catches_up else "skip"
        return {"schedule": {"expression": trigger.expression, "time_zone": trigger.time_zone, "missed": missed}}
    if isinstance(trigger, SnsTrigger):
        return {"sns": {"topic": trigger.topic, "inputs": dict(trigger.inputs)}}
    assert_never(trigger)
