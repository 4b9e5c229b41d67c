"""Devices of nodes, which a kubelet knows by plug-ins that are pods themselves ("Device Plugins")."""

from typing import Any

Document = dict[str, Any]
CHECKS_DEVICES = 25
"""The minor version of the first kubelets that look whether devices are there which a pod had before a restart."""


def refuse_after_boot(pod: Document, minor: int) -> str:
    """Return why a kubelet does not admit a pod again after its node was rebooted, empty if it does.

    It decides before the plug-in of the devices, which is a pod too, has said that they are there.

    Source: devicesToAllocate in pkg/kubelet/cm/devicemanager/manager.go (kubernetes#116376, and patch releases of 1.25
    to 1.27), kubernetes#128043.
    """
    names = sorted(name for container in pod["spec"]["containers"] for name in _devices_of(container))
    if minor < CHECKS_DEVICES or not names:
        return ""
    said = f"Allocate failed due to no healthy devices present; cannot allocate unhealthy devices {names[0]}"
    return f"UnexpectedAdmissionError: {said}, which is unexpected"


def _devices_of(container: Document) -> list[str]:
    limits = (container.get("resources") or {}).get("limits") or {}
    return [name for name, count in limits.items() if "/" in name and str(count) != "0"]
