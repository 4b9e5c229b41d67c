"""Writes job definitions as a definition file, which `parse_definitions` reads as the same definitions."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, assert_never

import yaml

from relaunch.adapters.core_schema import CORE_SCHEMA_RESOLVERS
from relaunch.adapters.definition_file.notices import write_routes
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    GpuRequirement,
    MeasuredOn,
    NeuronRequirement,
    usual_purchase,
)
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.definition import (
    EventBridgeTrigger,
    GithubTrigger,
    ImageTrigger,
    InputRule,
    JobDefinition,
    RetryRules,
    S3Trigger,
    ScheduleTrigger,
    SnsTrigger,
    Trigger,
)
from relaunch.core.definitions.durations import write_duration
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload

_WIDTH = 120


def write_definitions(definitions: Iterable[JobDefinition]) -> str:
    """Return the text of a definition file: ASCII, without the keys whose values are their defaults."""
    document = {"jobs": {definition.name: written_keys(definition) for definition in definitions}}
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH, default_flow_style=False)


class _Dumper(yaml.SafeDumper):
    """A dumper for the core schema of YAML 1.2, in which `on` is a string; texts of several lines are blocks."""

    yaml_implicit_resolvers = CORE_SCHEMA_RESOLVERS

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = "|" if "\n" in text else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)


def written_keys(definition: JobDefinition) -> dict[str, Any]:
    """Return the keys of a definition in a file, without those whose values are their defaults."""
    written = _given(
        definition,
        {
            "task_definition": ("task_definition", str),
            "kubernetes": ("kubernetes", _workload),
            "container": ("container", str),
            "triggers": ("on", lambda triggers: [_trigger(each) for each in triggers]),
            "inputs": ("inputs", lambda rules: {name: _input(rule) for name, rule in rules.items()}),
            "command": ("command", list),
            "environment": ("environment", dict),
            "accelerator": ("accelerator", _accelerator),
            "disk_gib": ("disk", lambda gib: f"{gib}GiB"),
            "purchase": ("purchase", str),
            "checkpoint_uri": ("checkpoint", str),
            "max_runtime": ("max_runtime", write_duration),
            "estimated_duration": ("estimated_duration", write_duration),
            "precision": ("precision", str),
            "total_steps": ("total_steps", int),
            "deadline": ("deadline", write_duration),
            "patience": ("patience", write_duration),
            "policy": ("policy", str),
            "padding": ("padding", float),
            "max_running_jobs": ("max_running_jobs", int),
            "max_waiting_jobs": ("max_waiting_jobs", int),
            "callers": ("callers", list),
            "notices": ("notices", write_routes),
            "links": ("links", dict),
            "concurrency": ("concurrency", _concurrency),
            "max_failures": ("max_failures", int),
            "retry": ("retry", _retry),
            "max_price_usd_per_hour": ("max_price_per_hour", float),
            "target": ("target", str),
            "nodes": ("nodes", int),
        },
        purchase=usual_purchase(definition.target),
    )
    if definition.estimated_duration is not None and definition.estimated_on is not None:
        written["estimated_duration"] = _measured(definition.estimated_duration, definition.estimated_on)
    # Empty in a definition for Kubernetes alone.
    return {key: value for key, value in written.items() if key != "task_definition" or value}


def _given(value: Any, keys: Mapping[str, tuple[str, Any]], **others: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by their keys in a file, without those that have their defaults, or `others`."""
    defaults = {
        each.name: each.default_factory() if callable(each.default_factory) else each.default for each in fields(value)
    } | others
    return {
        key: write(getattr(value, name))
        for name, (key, write) in keys.items()
        if getattr(value, name) != defaults[name]
    }


def _measured(duration: timedelta, measured: MeasuredOn) -> dict[str, Any]:
    hours = duration / timedelta(hours=1)
    on = {"model": measured.model, "count": measured.count} if measured.count else measured.model
    return {"on": on, "hours": int(hours) if hours.is_integer() else hours}


def _input(rule: InputRule) -> dict[str, Any]:
    return _given(rule, {"pattern": ("pattern", str), "default": ("default", str)})


def _concurrency(concurrency: Concurrency) -> dict[str, Any]:
    rest = {"cancel_in_progress": True} if concurrency.cancel_in_progress else {}
    return {"group": concurrency.group, **rest}


def _retry(rules: RetryRules) -> dict[str, Any]:
    codes = ("on_exit_codes", "never_on_exit_codes", "machine_exit_codes")
    limits = ("max_early_failures", "max_attempts_without_progress")
    written = {**{each: (each, int) for each in limits}, **{each: (each, list) for each in codes}}
    return _given(rules, written)


def _accelerator(accelerator: AcceleratorRequirement) -> dict[str, Any]:
    return _given(
        accelerator, {"gpu": ("gpu", _gpu), "neuron": ("neuron", _neuron), "instance_types": ("instance_types", list)}
    )


def _gpu(gpu: GpuRequirement) -> dict[str, Any]:
    return _given(
        gpu,
        {
            "count": ("count", int),
            "memory_mib": ("memory", _size),
            "compute_percent": ("compute_percent", int),
            "isolation": ("isolation", str),
            "models": ("models", list),
            "compute_capability": ("compute_capability", lambda version: ".".join(map(str, version))),
            "interconnect": ("interconnect", str),
        },
    )


def _neuron(neuron: NeuronRequirement) -> dict[str, Any]:
    return _given(
        neuron,
        {
            "devices": ("devices", int),
            "cores": ("cores", int),
            "models": ("models", list),
            "purpose": ("purpose", str),
        },
    )


def _trigger(trigger: Trigger) -> dict[str, Any]:
    if isinstance(trigger, GithubTrigger):
        filters = ("branches", "tags", "paths", "workflows", "types", "packages", "run_events")
        keys = {name: (name, list) for name in filters}
        names = {"repository": ("repository", str), "event": ("event", str)}
        return {"github": _given(trigger, {**names, **keys, "wait_for_image": ("wait_for_image", _wait)})}
    if isinstance(trigger, ImageTrigger):
        return {"image": _given(trigger, {"repository": ("repository", str), "tag": ("tag", str)})}
    if isinstance(trigger, S3Trigger):
        return {"s3": _given(trigger, {name: (name, str) for name in ("bucket", "prefix", "suffix")})}
    if isinstance(trigger, EventBridgeTrigger):
        return {"eventbridge": _given(trigger, {"pattern": ("pattern", json.loads), "inputs": ("inputs", dict)})}
    if isinstance(trigger, ScheduleTrigger):
        written = _given(trigger, {"expression": ("expression", str), "time_zone": ("time_zone", str)})
        return {"schedule": {**written, **({"missed": "catch_up"} if trigger.catches_up else {})}}
    if isinstance(trigger, SnsTrigger):
        return {"sns": _given(trigger, {"topic": ("topic", str), "inputs": ("inputs", dict)})}
    assert_never(trigger)


def _wait(wait: Any) -> dict[str, Any]:
    keys = {"repository": ("repository", str), "tag": ("tag", str), "timeout": ("timeout", write_duration)}
    return _given(wait, keys)


def _workload(workload: KubernetesWorkload) -> dict[str, Any]:
    names = ("memory", "card_memory", "shared_memory", "disk")
    sizes = {f"{name}_mib": (name, _size) for name in names}
    return _given(workload, {each.name: sizes.get(each.name, (each.name, _plain)) for each in fields(workload)})


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return _given(value, {each.name: (each.name, _plain) for each in fields(value)})
    return value


def _size(mib: int) -> str:
    return f"{mib // 1024}GiB" if mib % 1024 == 0 else f"{mib}MiB"
