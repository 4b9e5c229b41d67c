"""Derived revisions: task definitions that Relaunch registers itself, with what RunTask cannot override.

A derived revision differs from its source by images named by digest and by Neuron devices. It has a family of its own,
`<source family>--<hash of everything registered>`, so that it is found again by name, what is found is what was wanted,
and it is never counted as the newest revision of anything.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relaunch.core.revisions.revision import NEURON_DEVICE_PATH
from relaunch.core.selection.neuron_devices import NeuronClaim

DERIVED_FROM = "relaunch:derived-from"
"""The tag of every derived revision: the ARN of its source."""

MAX_FAMILY_LENGTH = 255
MAX_TAGS = 50
_HASH_LENGTH = 16
_DERIVED_FAMILY = re.compile(rf"(?P<source>[A-Za-z0-9_-]+)--[0-9a-f]{{{_HASH_LENGTH}}}")
_NEURON_RESOURCE = "NeuronDevice"


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """A task definition as RegisterTaskDefinition takes it: `content` is everything but family and tags."""

    family: str
    content: Mapping[str, Any]
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevisionChanges:
    """How a derived revision differs from its source.

    `images` maps containers to images. `neuron`, when set, replaces the Neuron devices of `container` and of every
    container that lists some; a claim of no devices only removes them (Managed Instances give them out themselves).
    """

    images: Mapping[str, str] = field(default_factory=dict)
    container: str = ""
    neuron: NeuronClaim | None = None


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    """What a placement try runs: a derived revision (None: the job's own) and the Neuron devices that go with it."""

    revision_arn: str | None = None
    neuron_devices: tuple[int, ...] = ()
    takes_all_neuron: bool = False


def is_derived_family(family: str) -> bool:
    """Tell whether a family has the name of a derived one."""
    return _DERIVED_FAMILY.fullmatch(family) is not None


def derive(source_arn: str, source: TaskDefinition, changes: RevisionChanges) -> TaskDefinition:
    """Return the derived definition; the same source and changes always give the same one.

    Of 50 tags, which is all ECS takes, the last by name makes room for ours.
    """
    containers = [_derive_container(each, changes) for each in source.content["containerDefinitions"]]
    content = {**source.content, "containerDefinitions": containers}
    kept = sorted(item for item in source.tags.items() if item[0] != DERIVED_FROM)[: MAX_TAGS - 1]
    tags = {**dict(kept), DERIVED_FROM: source_arn}
    return TaskDefinition(_family(source.family, content, tags), content, tags)


def derives_nothing(source: TaskDefinition, changes: RevisionChanges) -> bool:
    """Tell whether the changes leave the source as it is."""
    containers = list(source.content["containerDefinitions"])
    return [_derive_container(each, changes) for each in containers] == containers


def _family(source: str, content: Mapping[str, Any], tags: Mapping[str, str]) -> str:
    registered = json.dumps([source, content, tags], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(registered.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{source[: MAX_FAMILY_LENGTH - len('--') - _HASH_LENGTH]}--{digest}"


def _derive_container(container: Mapping[str, Any], changes: RevisionChanges) -> dict[str, Any]:
    derived = dict(container)
    if container["name"] in changes.images:
        derived["image"] = changes.images[container["name"]]
    if changes.neuron is not None:
        _give_devices(derived, changes.neuron, is_main=container["name"] == changes.container)
    return derived


def _give_devices(container: dict[str, Any], claim: NeuronClaim, *, is_main: bool) -> None:
    """Put the claimed devices where Neuron devices are listed, and into the main container with their ports."""
    linux = dict(container.get("linuxParameters") or {})
    listed = list(linux.get("devices") or ())
    others = [device for device in listed if not NEURON_DEVICE_PATH.fullmatch(str(device.get("hostPath", "")))]
    if is_main or len(others) < len(listed):
        claimed = [{"hostPath": path, "containerPath": path, "permissions": ["read", "write"]} for path in claim.paths]
        if others + claimed or "devices" in linux:
            container["linuxParameters"] = {**linux, "devices": others + claimed}
    if not claim.devices:
        return
    if resources := container.get("resourceRequirements"):
        container["resourceRequirements"] = [each for each in resources if each.get("type") != _NEURON_RESOURCE]
    if is_main:
        ports = [{"containerPort": port, "hostPort": port, "protocol": "tcp"} for port in claim.host_ports]
        container["portMappings"] = [*(container.get("portMappings") or ()), *ports]
