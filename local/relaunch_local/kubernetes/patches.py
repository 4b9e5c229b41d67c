"""How a change is merged into an object: by a merge patch, and by a strategic one, which knows the keys of lists.

Sources: RFC 7386; "Update API Objects in Place Using kubectl patch"; the merge keys are those of the published schemas
(`x-kubernetes-patch-merge-key`).
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

Document = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
# By the field of a list, the key that its elements are found by; other lists are replaced.
_KEYS = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "env", "imagePullSecrets"), "name"),
    "volumeMounts": "mountPath",
    "conditions": "type",
    "ownerReferences": "uid",
}


def apply_patch(document: Mapping[str, Any], patch: Mapping[str, Any], kind: str) -> Document:
    """Return a document with a patch of this media type applied."""
    return strategic_patch(document, patch) if kind == STRATEGIC else merge_patch(document, patch)


def merge_patch(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Return a document with a JSON Merge Patch applied (RFC 7386)."""
    merged = deepcopy(dict(document))
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            before = merged.get(key)
            merged[key] = merge_patch(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = deepcopy(value)
    return merged


def strategic_patch(document: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Return a document with a strategic merge patch applied: elements of lists are merged by their keys."""
    if patch.get("$patch") == "replace":
        return {key: deepcopy(each) for key, each in patch.items() if key != "$patch"}
    merged = deepcopy(dict(document))
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            before = merged.get(key)
            merged[key] = strategic_patch(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, list) and key in _KEYS:
            merged[key] = _merge_list(merged.get(key) or [], value, _KEYS[key])
        else:
            merged[key] = deepcopy(value)
    return merged


def _merge_list(before: list[Document], patch: list[Document], key: str) -> list[Document]:
    found = {each.get(key): each for each in before}
    for each in patch:
        if each.get("$patch") == "delete":
            found.pop(each.get(key), None)
        else:
            found[each.get(key)] = strategic_patch(found.get(each.get(key), {}), each)
    return list(found.values())
