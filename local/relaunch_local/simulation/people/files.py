"""Files of definitions that people write: right ones, which are read as they are meant, and ones with one mistake.

What is wrong with each is what ECS, EC2, EventBridge Scheduler or a cluster would refuse, or never do.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.definition_file.writer import write_definitions
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.usecases.plan_jobs import plan_on_kubernetes
from relaunch_local.simulation.checks.record import Check

_IMAGE = "registry.cn-beijing.aliyuncs.com/acme/atari:1"
_POD: Mapping[str, Any] = {"image": _IMAGE, "vcpus": 2, "memory": "4GiB"}
_ON_ECS: Mapping[str, Any] = {"task_definition": "resnet", "accelerator": {"gpu": {"count": 1}}}
_ON_CLUSTER: Mapping[str, Any] = {"target": "kubernetes", "accelerator": {"gpu": {"count": 1}}, "kubernetes": _POD}
_ON_ACK: Mapping[str, Any] = {**_ON_CLUSTER, "target": "ack"}
_ON_ACS: Mapping[str, Any] = {**_ON_CLUSTER, "target": "acs", "kubernetes": {**_POD, "gpu_model": "T4"}}
_MOST = 3


def _pod(spec: Mapping[str, Any], **others: Any) -> dict[str, Any]:
    return {**_ON_CLUSTER, **others, "kubernetes": {**_POD, "pod": {"spec": spec}}}


def _volume(**kind: Any) -> dict[str, Any]:
    return _pod({"volumes": [{"name": "data", **kind}]})


def _gpu(base: Mapping[str, Any], **gpu: Any) -> dict[str, Any]:
    return {**base, "accelerator": {"gpu": {"count": 1, **gpu}}}


# The keys of a definition, and the key where it is wrong.
_WRONG: Sequence[tuple[str, Mapping[str, Any]]] = (
    ("max_running_jobs", {**_ON_ECS, "max_running_jobs": 0}),
    ("purchase", {**_ON_ECS, "purchase": "cheap"}),
    ("max_runtime", {**_ON_ECS, "max_runtime": "soon"}),
    ("accelerator", {**_ON_ECS, "accelerator": {"gpu": {"count": 0}}}),
    ("schedule", {**_ON_ECS, "on": [{"schedule": {"expression": "cron(0 6 * * * *)"}}]}),
    ("schedule", {**_ON_ECS, "on": [{"schedule": {"expression": "rate(2 hour)"}}]}),
    ("nodes", {**_ON_ECS, "nodes": 0}),
    ("trains", {**_ON_ECS, "trains": True}),
    ("memory", _gpu(_ON_CLUSTER, memory="8GiB")),
    ("compute_percent", _gpu(_ON_CLUSTER, memory="8GiB", compute_percent=30)),
    ("compute_percent", _gpu(_ON_ACK, memory="8GiB", compute_percent=33)),
    ("hostNetwork", _pod({"hostNetwork": True})),
    ("hostPath", _volume(hostPath={"path": "/"})),
    ("privileged", _pod({"containers": [{"name": "main", "securityContext": {"privileged": True}}]})),
    ("dnsPolicy", _pod({"dnsPolicy": "Default"}, nodes=2)),
    ("hostname", _pod({"hostname": "main"}, nodes=2)),
    ("gpu_driver", {**_ON_ACS, "kubernetes": {**_POD, "gpu_model": "T4", "gpu_driver": "newest"}}),
    ("gpu_model", {**_ON_CLUSTER, "target": "acs"}),
)
_RIGHT: Sequence[Mapping[str, Any]] = (
    _ON_ECS,
    {**_ON_ECS, "on": [{"schedule": {"expression": "cron(0 6 ? * MON-FRI *)", "missed": "skip"}}]},
    {**_ON_ECS, "on": [{"schedule": {"expression": "rate(2 hours)", "missed": "catch_up"}}]},
    _ON_CLUSTER,
    _ON_ACS,
    _gpu(_ON_ACK, memory="8GiB"),
    _gpu(_ON_ACK, memory="8GiB", compute_percent=30),
    _volume(configMap={"name": "settings"}),
    _volume(csi={"driver": "disk.csi.example.com"}),
    _volume(downwardAPI={"items": []}),
    _volume(emptyDir={"medium": "Memory"}),
    _volume(ephemeral={"volumeClaimTemplate": {"spec": {}}}),
    _volume(secret={"secretName": "token"}),
    _volume(persistentVolumeClaim={"claimName": "data"}),
    _pod({"dnsPolicy": "Default"}),
    _pod({"dnsPolicy": "ClusterFirst"}, nodes=2),
)


def ask_for_files(check: Check, dice: random.Random, definitions: Sequence[JobDefinition], now: datetime) -> None:
    """Check what is read of some files."""
    _check_written(check, dice.choice(definitions))
    for key, written in dice.sample(_WRONG, _MOST):
        problems = _problems_of(written)
        is_told = any(key in each.rpartition(": ")[0] or f"`{key}`" in each for each in problems)
        check("a mistake in a file is shown where it is", is_told, f"{key}: {problems}")
    for written in dice.sample(_RIGHT, _MOST):
        problems = _problems_of(written)
        check("a file that is right is read", not problems, f"{written}: {problems}")
    _check_notices(check, dice, now)


def _problems_of(written: Mapping[str, Any]) -> list[str]:
    try:
        parse_definitions(json.dumps({"jobs": {"asked": written}}), "relaunch.yaml", load_catalogue())
    except DefinitionFileError as error:
        return [str(each) for each in error.problems]
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody learns what is wrong
        return [repr(error)]
    return []


def _check_written(check: Check, drawn: JobDefinition) -> None:
    """Check that a definition that is written to a file is read as it was."""
    definition = _as_in_file(drawn)
    try:
        text = write_definitions([definition])
        found = parse_definitions(text, "relaunch.yaml", load_catalogue())
    except Exception as error:  # noqa: BLE001 - whatever it is, the file is useless
        found = []
        text = repr(error)
    check("a definition that is written to a file is read as it was", found == [definition], text[:200])


def _as_in_file(definition: JobDefinition) -> JobDefinition:
    """Return a definition as a file can say it: in minutes, names without hyphens, what a limit needs with it alone."""
    changed: dict[str, Any] = {
        name: timedelta(minutes=round(value / timedelta(minutes=1)))
        for name in ("max_runtime", "estimated_duration", "deadline", "patience")
        if (value := getattr(definition, name)) is not None
    }
    if definition.deadline is None and definition.patience is None:
        plain = JobDefinition("", "", definition.accelerator)
        changed |= {"policy": plain.policy, "padding": plain.padding}
    elif definition.estimated_duration is None and definition.total_steps is None:
        changed["estimated_duration"] = timedelta(minutes=5)
    if (estimated := changed.get("estimated_duration")) is not None:
        changed["max_runtime"] = max(changed["max_runtime"], estimated)
    inputs = {name.replace("-", "_"): rule for name, rule in definition.inputs.items()}
    return replace(definition, inputs=inputs, **changed)


def _check_notices(check: Check, dice: random.Random, now: datetime) -> None:
    """Check that who plans a job for a cluster learns which of its keys do nothing there."""
    chosen = {"disk": "100GiB", "max_price_per_hour": 1.5}
    given = {name: chosen[name] for name in chosen if dice.random() < 0.5}
    for base in (_ON_CLUSTER, _ON_ACK, _ON_ACS):
        text = json.dumps({"jobs": {"asked": {**base, **given}}})
        try:
            (definition,) = parse_definitions(text, "relaunch.yaml", load_catalogue())
            plan = plan_on_kubernetes(definition, now, None)
            notices = plan.notices
            asked = [each.gpu_count for each in plan.revision.containers] if plan.revision is not None else []
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody learns anything
            notices = (repr(error),)
            asked = []
        named = {name for name in chosen if any(f"`{name}` has no effect" in each for each in notices)}
        is_told = named == given.keys() and (
            "disk" not in given or any("`kubernetes.disk`" in each for each in notices)
        )
        check("what does nothing on a cluster is said to", is_told, f"{base['target']} {given}: {notices}")
        check("a plan for a cluster asks for the GPUs of its job", asked == [1], f"{base['target']}: {asked}")
