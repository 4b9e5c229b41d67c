"""Fields that releases have added to what is stored within a definition: only a value other than the default is stored.

So the item of a definition that does not use them is the same as before, for every release.
"""

from dataclasses import fields
from typing import Any

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload

_LATER = ("callers", "notices", "concurrency", "links", "estimated_on")
_LATER_OF_WORKLOAD = frozenset({"service_account_token", "pod_security", "run_as_user", "queue"})
_DEFAULTS = {each.name: each.default for each in fields(KubernetesWorkload) if each.name in _LATER_OF_WORKLOAD}


def left_out(definition: JobDefinition) -> dict[str, Any]:
    """Return the fields of a definition that are not stored, in the form of pydantic's `exclude`."""
    found: dict[str, Any] = {name: True for name in _LATER if not getattr(definition, name)}
    workload = definition.kubernetes
    unused = {name for name, default in _DEFAULTS.items() if workload and getattr(workload, name) == default}
    return found | ({"kubernetes": unused} if unused else {})
