"""Maps the answers to the creation of a Job to launch outcomes.

The answers are those of Kubernetes 1.20 and 1.36 (tests/unit/adapters/kubernetes), and of quotas and admission
controllers ("Resource Quotas", "Admission Controllers", Kubernetes documentation).
"""

import json
from collections.abc import Mapping
from typing import Any

from relaunch.adapters.kubernetes.api.errors import ApiRefusedError, TooManyRequestsError
from relaunch.adapters.kubernetes.api.models import Job
from relaunch.adapters.kubernetes.labels import REQUEST
from relaunch.adapters.kubernetes.pod_refusals import DENIED_FOR_CONTENT
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchOutcome,
    LaunchRefused,
    LaunchUncertain,
    TaskPlaced,
)
from relaunch.ports import NotGrantedError, PermanentError, PortError

MAX_BODY_BYTES = 1_500_000
"""The maximum size of a request to etcd is 1.5 MiB by default ("etcd: system limits"); an API server takes 3 MiB."""
MAX_VARIABLE_BYTES = 131_072
"""MAX_ARG_STRLEN of Linux: no program starts with a longer variable or argument."""

_QUOTA = "exceeded quota"
_FORBIDDEN = 403
# Invalid as a Job, or refused by an admission webhook such as that of ACK (400, 403), whatever it is sent again with.
_ABOUT_MANIFEST = frozenset({400, 413, 422})
_WEBHOOK = "admission webhook"


def check_limits(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the limits that a manifest violates."""
    violations = []
    size = len(json.dumps(manifest).encode())
    if size > MAX_BODY_BYTES:
        violations.append(f"the manifest has {size} bytes, a cluster takes {MAX_BODY_BYTES}")
    for container in manifest["spec"]["template"]["spec"]["containers"]:
        for each in container.get("env", ()):
            length = len(f"{each['name']}={each.get('value', '')}".encode())
            if length >= MAX_VARIABLE_BYTES:
                violations.append(f"the variable {each['name']} has {length} bytes, Linux takes {MAX_VARIABLE_BYTES}")
    return tuple(violations)


def outcome_of_error(error: PortError) -> LaunchOutcome:
    """Return the outcome of an error of the creation; without an answer it may have taken effect."""
    if isinstance(error, TooManyRequestsError):
        return LaunchDeferred(str(error))
    if not isinstance(error, PermanentError):
        return LaunchUncertain(str(error))
    status = error.status if isinstance(error, ApiRefusedError) else 0
    if status == _FORBIDDEN and _QUOTA in str(error):
        return LaunchDeferred(str(error))
    is_about_manifest = status in _ABOUT_MANIFEST or _WEBHOOK in str(error)
    may_heal = isinstance(error, NotGrantedError) and not DENIED_FOR_CONTENT.search(str(error))
    return LaunchRefused(str(error), is_about_manifest, may_heal=may_heal and not is_about_manifest)


def outcome_of_existing(name: str, existing: Job | None, request_hash: str) -> LaunchOutcome:
    """Return the outcome of the creation of a Job whose name is taken."""
    if existing is None:
        return LaunchUncertain(f"the Job {name} was there and is not: it was deleted meanwhile")
    is_same = existing.metadata.annotations.get(REQUEST) == request_hash
    return TaskPlaced(name) if is_same else LaunchConflict((name,))
