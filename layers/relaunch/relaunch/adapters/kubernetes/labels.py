"""Whose Job a Job is: the names, labels and annotations of the Jobs of Relaunch and of their pods.

Labels are to find Jobs by, and are at most 63 characters long ("Labels and Selectors", Kubernetes documentation);
annotations tell the rest. A pod has the labels and the owner of its Job, so that it can be understood without it.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.attempt import AttemptKey

STACK = "relaunch/stack"
TASK = "relaunch/task"
JOB = "relaunch/job"
ATTEMPT = "relaunch/attempt"
PLACEMENT = "relaunch/placement"
NODES = "relaunch/nodes"
"""The keys of the labels; the last one is that of the pods of a job of several nodes, and says how many."""

OWNER = "relaunch/owner"
REQUEST = "relaunch/request"
STOP_REASON = "relaunch/stop-reason"
"""The keys of the annotations: `<job>/<attempt>`, the hash of the manifest, and why Relaunch stopped the task."""

MAX_NAME_LENGTH = 63
"""Of a Job: its pods have it as the value of a label."""

MAX_GANG_NAME_LENGTH = 54
"""Of a Job of several nodes: `<job>-31-` is what the names of its pods begin with, and is cut at 58 characters
(podGenerateNameWithIndex, pkg/controller/job of Kubernetes)."""

_HASH_LENGTH = 10
_OWNER = re.compile(r"(?P<job_id>.+)/(?P<number>[1-9][0-9]{0,8})", re.ASCII)


def task_name(attempt: AttemptKey, placement_number: int, nodes: int = 1) -> str:
    """Return the name of the Job of a placement, which is unique to it and always the same."""
    room = MAX_NAME_LENGTH if nodes == 1 else MAX_GANG_NAME_LENGTH
    return _fit(attempt.job_id, f"-{attempt.attempt_number}-{placement_number}", room)


def task_labels(stack: str, attempt: AttemptKey, placement_number: int, nodes: int = 1) -> dict[str, str]:
    """Return the labels of the Job of a placement, and of its pods."""
    return {
        **({NODES: str(nodes)} if nodes > 1 else {}),
        STACK: stack_label(stack),
        TASK: task_name(attempt, placement_number, nodes),
        JOB: _fit(attempt.job_id, ""),
        ATTEMPT: str(attempt.attempt_number),
        PLACEMENT: str(placement_number),
    }


def stack_label(stack: str) -> str:
    """Return the value of the label of a stack's Jobs."""
    return _fit(stack, "")


def owner_annotation(attempt: AttemptKey) -> dict[str, str]:
    """Return the annotation that tells whose Job or pod it is."""
    return {OWNER: str(attempt)}


def owner_of(annotations: Mapping[str, str]) -> AttemptKey | None:
    """Return the attempt that a Job or pod is of, None if it is not of Relaunch."""
    found = _OWNER.fullmatch(annotations.get(OWNER, ""))
    return AttemptKey(found["job_id"], int(found["number"])) if found else None


def select_stack(stack: str) -> str:
    """Return the label selector of all Jobs and pods of a stack."""
    return f"{STACK}={stack_label(stack)}"


def select_attempt(stack: str, attempt: AttemptKey) -> str:
    """Return the label selector of the Jobs of an attempt."""
    return f"{select_stack(stack)},{JOB}={_fit(attempt.job_id, '')},{ATTEMPT}={attempt.attempt_number}"


def select_tasks(stack: str, names: Iterable[str]) -> str:
    """Return the label selector of Jobs and pods by the names of their Jobs."""
    return f"{select_stack(stack)},{TASK} in ({','.join(names)})"


def is_task_name(name: str) -> bool:
    """Return whether a task may have this name; no other may be part of a selector."""
    return len(name) <= MAX_NAME_LENGTH and re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name) is not None


def _fit(name: str, suffix: str, length: int = MAX_NAME_LENGTH) -> str:
    """Return a name as a label in RFC 1123; one that had to be changed ends with a hash of the original."""
    room = length - len(suffix)
    plain = re.sub(r"[^a-z0-9-]", "-", name.lower()).strip("-")
    if plain == name and len(plain) <= room:
        return plain + suffix
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{plain[: room - _HASH_LENGTH - 1].rstrip('-')}-{digest}{suffix}".lstrip("-")
