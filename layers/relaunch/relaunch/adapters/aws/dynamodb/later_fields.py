"""Fields that releases have added to what is stored of a definition or revision: a default value is not stored.

So the item of one that does not use them is the same as before, for every release.
"""

from dataclasses import MISSING, fields
from typing import Any

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.revisions.revision import Revision

_LATER = ("callers", "notices", "concurrency", "links", "estimated_on", "precision")
_LATER_OF_CONTAINER = ("torchrun_variables", "has_shared_memory")
# Those of a workload were added after this one, at the end.
_LAST_OF_WORKLOAD = "strict"
_NAMES = [each.name for each in fields(KubernetesWorkload)]
_DEFAULTS = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(KubernetesWorkload)[_NAMES.index(_LAST_OF_WORKLOAD) + 1 :]
}


def left_out(definition: JobDefinition) -> dict[str, Any]:
    """Return the fields of a definition that are not stored, in the form of pydantic's `exclude`."""
    found: dict[str, Any] = {name: True for name in _LATER if not getattr(definition, name)}
    if definition.nodes == 1:
        found["nodes"] = True
    workload = definition.kubernetes
    unused = {name for name, default in _DEFAULTS.items() if workload and getattr(workload, name) == default}
    return found | ({"kubernetes": unused} if unused else {})


def left_out_of_revision(revision: Revision) -> dict[str, Any]:
    """Return the fields of a revision that are not stored, in the form of pydantic's `exclude`."""
    unused = ({name for name in _LATER_OF_CONTAINER if not getattr(each, name)} for each in revision.containers)
    return {"containers": dict(enumerate(unused))}
