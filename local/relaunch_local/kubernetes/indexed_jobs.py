"""Jobs whose pods have an index: what is refused of them, what a pod gets by its index, and which have succeeded.

Source: validation.go in pkg/apis/batch/validation, and indexed_job_utils.go and job_controller.go in pkg/controller/job
of Kubernetes.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

Document = dict[str, Any]
INDEX = "batch.kubernetes.io/job-completion-index"
"""The annotation with the index of a pod, and from 1.28 on the label too."""
HAS_INDEX_LABELS = 28
"""The minor version of the first servers that write the index as a label too (PodIndexLabel, beta, on by default)."""

_VARIABLE = "JOB_COMPLETION_INDEX"
_MODES = ("Indexed", "NonIndexed")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MAX_GENERATED = 58


def is_indexed(job: Mapping[str, Any]) -> bool:
    """Return whether the pods of a Job have an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def check_indices(job: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the completion mode of a Job."""
    spec = job["spec"]
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        supported = ", ".join(f'"{each}"' for each in _MODES)
        yield f'spec.completionMode: Unsupported value: "{mode}": supported values: {supported}'
    if mode != "Indexed":
        return
    completions = spec.get("completions")
    if completions is None:
        yield "spec.completions: Required value: when completion mode is Indexed"
    elif completions > 0:
        name = job["metadata"].get("name", "")
        longest = f"{name}-{completions - 1}"
        if not _DNS_LABEL.fullmatch(longest):
            said = f"will not able to create pod with invalid DNS label: {longest}"
            yield f'metadata.name: Invalid value: "{name}": {said}'


def index_of(pod: Mapping[str, Any]) -> int | None:
    """Return the index of a pod, None if it has none."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return None if text is None else int(text)


def pod_name_base(job: str, index: int | None) -> str:
    """Return what the name of a pod begins with, before its random end."""
    end = "-" if index is None else f"-{index}-"
    return f"{job[: _MAX_GENERATED - len(end)]}{end}"


def give_index(pod: Document, job: str, index: int, minor: int) -> None:
    """Give a pod its index: as an annotation, a label, a variable of its containers, and in its host name."""
    metadata = pod["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), INDEX: str(index)}
    kind = "annotations"
    if minor >= HAS_INDEX_LABELS:
        metadata["labels"] = {**(metadata.get("labels") or {}), INDEX: str(index)}
        kind = "labels"
    pod["spec"]["hostname"] = f"{job}-{index}"
    variable = {"name": _VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{kind}['{INDEX}']"}}}
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        if all(each["name"] != _VARIABLE for each in container.get("env") or ()):
            container["env"] = [*(container.get("env") or ()), variable]


def write_indices(indices: Collection[int]) -> str:
    """Return indices as `completedIndexes` has them: `0,2-4`, and two that follow each other as `2,3`."""
    parts: list[str] = []
    found = sorted(indices)
    start = 0
    for number, index in enumerate(found):
        if number + 1 < len(found) and found[number + 1] == index + 1:
            continue
        first = found[start]
        joint = "," if index == first + 1 else "-"
        parts.append(str(first) if index == first else f"{first}{joint}{index}")
        start = number + 1
    return ",".join(parts)
