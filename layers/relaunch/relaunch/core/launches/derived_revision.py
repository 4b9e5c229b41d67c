"""Derived revisions: task definitions that Relaunch registers itself, to change what RunTask cannot override.

A derived revision differs from its source by image digests and Neuron devices, and has what the source leaves out: a
`stopTimeout` of the main container, NVIDIA_DRIVER_CAPABILITIES of containers with GPUs, and what torchrun needs to let
its workers save (core.revisions.revision). Its family is `<source family>--<hash of all registered content>`: it can be
found by name, its name implies its content, and it is never the newest revision of the source family.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import (
    NEURON_DEVICE_PATH,
    SHUTDOWN_TIMEOUT,
    STOP_TIMEOUT_SECONDS,
    has_shell_before,
    runs_torchrun,
    shutdown_seconds,
)
from relaunch.core.selection.neuron_devices import NeuronClaim

DERIVED_FROM = "relaunch:derived-from"
"""Key of the tag of derived revisions; the value is the ARN of the source."""

MAX_FAMILY_LENGTH = 255
MAX_TAGS = 50
_HASH_LENGTH = 16
_DERIVED_FAMILY = re.compile(rf"(?P<source>[A-Za-z0-9_-]+)--[0-9a-f]{{{_HASH_LENGTH}}}")
_NEURON_RESOURCE = "NeuronDevice"
# What ECS answers where nothing was registered ("ContainerDefinition" and others, Amazon ECS API Reference).
_ECS_DEFAULTS: Mapping[str, Any] = {"essential": True, "networkMode": "bridge", "protocol": "tcp"}
# ECS sets NVIDIA_VISIBLE_DEVICES only ("Amazon ECS task definitions for GPU workloads"). A variable of the container
# definition replaces that of the image, which is not known here; `all` takes nothing from any image, as it means all
# that the runtime of the instance allows ("Driver Capabilities", NVIDIA Container Toolkit).
_DRIVER_CAPABILITIES = {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "all"}


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """The parameters of RegisterTaskDefinition; `content` is everything except family and tags."""

    family: str
    content: Mapping[str, Any]
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevisionChanges:
    """The differences between a derived revision and its source.

    `images` maps containers to images. `neuron`, if set, replaces the Neuron devices of `container` and of all
    containers with Neuron devices; an empty claim only removes them (Managed Instances assign devices themselves).
    `container` is the main container; `has_gpu`: RunTask gives it GPUs, whatever the source requires. `command` is what
    RunTask gives it in the place of the source's, empty if it gives none.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    container: str = ""
    neuron: NeuronClaim | None = None
    has_gpu: bool = False
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedRevision:
    """The revision of a placement try (None: the job's own) and the Neuron devices that it claims."""

    revision_arn: str | None = None
    neuron_devices: tuple[int, ...] = ()
    takes_all_neuron: bool = False


def derivation_id(source_arn: str, changes: RevisionChanges) -> str:
    """Return an ID of the source and the changes, for which the content of the source need not be known."""
    neuron = changes.neuron and changes.neuron.devices
    command = changes.command if runs_torchrun(changes.command) else bool(changes.command)
    parts = json.dumps(
        [source_arn, changes.images, changes.container, neuron, changes.has_gpu, command], sort_keys=True
    )
    return hashlib.sha256(parts.encode()).hexdigest()


def is_derived_family(family: str) -> bool:
    """Return whether the family name is that of a derived revision."""
    return _DERIVED_FAMILY.fullmatch(family) is not None


def source_family(family: str) -> str:
    """Return the family that a derived family comes from, at most its first 237 characters; others are their own."""
    match = _DERIVED_FAMILY.fullmatch(family)
    return match["source"] if match else family


def derive(source_arn: str, source: TaskDefinition, changes: RevisionChanges) -> TaskDefinition:
    """Return the derived task definition, which is the same for the same source and changes.

    If the source has 50 tags, the limit of ECS, the last one by name is left out.
    """
    containers = [_derive_container(each, changes) for each in source.content["containerDefinitions"]]
    content = {**source.content, "containerDefinitions": containers}
    kept = sorted(item for item in source.tags.items() if item[0] != DERIVED_FROM)[: MAX_TAGS - 1]
    tags = {**dict(kept), DERIVED_FROM: source_arn}
    return TaskDefinition(_family(source.family, content, tags), content, tags)


def has_content(found: TaskDefinition, wanted: TaskDefinition) -> bool:
    """Return whether a revision that is registered is the wanted one.

    ECS may add its defaults and members that are empty or off, and answer lists of objects in another order; tags may
    have changed.
    """
    return found.family == wanted.family and _is_same(found.content, wanted.content)


def _is_same(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        names = {*wanted, *found} if isinstance(found, Mapping) else set()
        return isinstance(found, Mapping) and all(
            _is_same(found.get(each), wanted.get(each, _ECS_DEFAULTS.get(each))) for each in names
        )
    if isinstance(wanted, list) and isinstance(found, list) and all(isinstance(each, Mapping) for each in wanted):
        left = list(found)
        for each in wanted:
            match = next((one for one in left if _is_same(one, each)), None)
            if match is None:
                return False
            left.remove(match)
        return not left
    return bool(found == wanted) or not (found or wanted)


def derives_nothing(source: TaskDefinition, changes: RevisionChanges) -> bool:
    """Return whether the changes have no effect on the source."""
    containers = list(source.content["containerDefinitions"])
    return [_derive_container(each, changes) for each in containers] == containers


def is_run_by_torchrun(source: TaskDefinition, changes: RevisionChanges) -> bool:
    """Return whether the command line of the main container starts torchrun; that of its image is not known."""
    return any(
        runs_torchrun(_command_line(each, changes))
        for each in source.content["containerDefinitions"]
        if each["name"] == changes.container
    )


def _command_line(container: Mapping[str, Any], changes: RevisionChanges) -> tuple[str, ...]:
    return (*(container.get("entryPoint") or ()), *(changes.command or container.get("command") or ()))


def _family(source: str, content: Mapping[str, Any], tags: Mapping[str, str]) -> str:
    registered = json.dumps([source, content, tags], sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(registered.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{source[: MAX_FAMILY_LENGTH - len('--') - _HASH_LENGTH]}--{digest}"


def _derive_container(container: Mapping[str, Any], changes: RevisionChanges) -> dict[str, Any]:
    derived = dict(container)
    is_main = container["name"] == changes.container
    if container["name"] in changes.images:
        derived["image"] = changes.images[container["name"]]
    if is_main and container.get("stopTimeout") is None:
        derived["stopTimeout"] = STOP_TIMEOUT_SECONDS
    if (is_main and changes.has_gpu) or any(
        each.get("type") == "GPU" for each in container.get("resourceRequirements") or ()
    ):
        _set_variable(derived, _DRIVER_CAPABILITIES)
    if is_main and runs_torchrun(command := _command_line(container, changes)):
        _prepare_for_torchrun(derived, command)
    if changes.neuron is not None:
        _assign_devices(derived, changes.neuron, is_main=is_main)
    return derived


def _set_variable(container: dict[str, Any], variable: Mapping[str, str]) -> None:
    """Set a variable unless the container has it; ECS rejects one that is also a secret."""
    variables = list(container.get("environment") or ())
    known = {each.get("name") for each in (*variables, *(container.get("secrets") or ()))}
    if variable["name"] not in known:
        container["environment"] = [*variables, dict(variable)]


def _prepare_for_torchrun(container: dict[str, Any], command: Sequence[str]) -> None:
    """Let torchrun wait for its workers almost until SIGKILL, and let it get SIGTERM while it waits for its peers."""
    if seconds := shutdown_seconds(container["stopTimeout"]):
        _set_variable(container, {"name": SHUTDOWN_TIMEOUT, "value": str(seconds)})
    linux = dict(container.get("linuxParameters") or {})
    if linux.get("initProcessEnabled") is None and not has_shell_before(command):
        container["linuxParameters"] = {**linux, "initProcessEnabled": True}


def _assign_devices(container: dict[str, Any], claim: NeuronClaim, *, is_main: bool) -> None:
    """Assign the claimed devices to the main container, with their host ports, and to others with Neuron devices."""
    linux = dict(container.get("linuxParameters") or {})
    listed = list(linux.get("devices") or ())
    others = [device for device in listed if not re.fullmatch(NEURON_DEVICE_PATH, str(device.get("hostPath", "")))]
    if is_main or len(others) < len(listed):
        # torch-neuronx asks for core 0, which Neuron's runtime looks for on the container's /dev/neuron0. AWS numbers
        # so on EKS ("Neuron Containers Release Notes", September 2023).
        claimed = [
            {"hostPath": path, "containerPath": f"/dev/neuron{number}", "permissions": ["read", "write"]}
            for number, path in enumerate(claim.paths)
        ]
        if others + claimed or "devices" in linux:
            container["linuxParameters"] = {**linux, "devices": others + claimed}
    if not claim.devices:
        return
    if resources := container.get("resourceRequirements"):
        container["resourceRequirements"] = [each for each in resources if each.get("type") != _NEURON_RESOURCE]
    if is_main:
        ports = [{"containerPort": port, "hostPort": port, "protocol": "tcp"} for port in claim.host_ports]
        container["portMappings"] = [*(container.get("portMappings") or ()), *ports]
