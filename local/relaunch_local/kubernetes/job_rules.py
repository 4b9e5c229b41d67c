"""What the API server makes of a Job: what it refuses, in its words, what it drops, and the defaults that it adds.

The answers are those of real servers, 1.36.2 and 1.20.2. What they do not refuse, ACK's rules among it, passes here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from relaunch_local.kubernetes.errors import ApiError, invalid, malformed
from relaunch_local.kubernetes.indexed_jobs import check_indices
from relaunch_local.kubernetes.pod_fields import decode, drop_unknown
from relaunch_local.kubernetes.pod_rules import LABEL_RULE, NAME, NAME_RULE, check_pod_spec, store_volumes
from relaunch_local.kubernetes.quantities import parse_quantity, store_quantity

Document = dict[str, Any]
POD_POLICIES = 26
"""The minor version of the first servers with pod failure policies (beta, on by default)."""
INDEXED_JOBS = 22
"""The minor version of the first servers with Indexed Jobs (beta, on by default; alpha in 1.21, and off)."""

_LABEL_KEY = re.compile(r"([a-z0-9][a-z0-9.-]{0,251}[a-z0-9]/|[a-z0-9]/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_LABEL_KEY_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_MAX_LABEL = 63
_MAX_ANNOTATIONS = 256 << 10
_OVERCOMMITTED = frozenset({"cpu", "memory", "ephemeral-storage"})
_CHANGEABLE = frozenset({"activeDeadlineSeconds", "backoffLimit", "parallelism", "suspend", "ttlSecondsAfterFinished"})
_NOT_NEGATIVE = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_SPEC_SINCE = {
    # Alpha in 1.21, and off.
    "suspend": 22,
    "ttlSecondsAfterFinished": 21,
    "completionMode": INDEXED_JOBS,
    "podFailurePolicy": POD_POLICIES,
    "podReplacementPolicy": 28,
    "backoffLimitPerIndex": 28,
    "maxFailedIndexes": 28,
    "managedBy": 30,
    "successPolicy": 30,
    "scheduling": 37,
}
_SPEC_ALWAYS = frozenset(
    {
        *("activeDeadlineSeconds", "backoffLimit", "completions", "manualSelector", "parallelism", "selector"),
        "template",
    }
)


def spec_fields(minor: int) -> set[str]:
    """Return the fields of a Job's specification that a server of this minor version knows."""
    return {*_SPEC_ALWAYS, *(key for key, since in _SPEC_SINCE.items() if since <= minor)}


def admit_job(sent: Mapping[str, Any], minor: int, *, is_strict: bool) -> tuple[Document, list[str]]:
    """Return a Job as it is stored, without UID, and the warnings of the answer.

    Raises:
        ApiError: it cannot be decoded, or is invalid.
    """
    job = deepcopy(dict(sent))
    _decode(job)
    unknown = _drop_unknown(job, minor)
    if unknown and is_strict and minor >= 25:
        raise malformed(f"strict decoding error: {', '.join(unknown)}")
    _check(job, minor)
    _add_defaults(job, minor)
    return job, unknown if minor >= 25 else []


def admit_change(job: Document, before: Mapping[str, Any], minor: int) -> None:
    """Let a Job be changed, or not.

    Raises:
        ApiError: it cannot be decoded any more, or is invalid, or what it changes cannot be changed.
    """
    name = before["metadata"]["name"]
    if job["metadata"].get("name") != name:
        said = f"the name of the object ({job['metadata'].get('name')}) does not match the name on the URL ({name})"
        raise ApiError(400, "BadRequest", said)
    try:
        _decode(job)
    except ApiError as error:
        raise ApiError(422, "Invalid", f' "" is invalid: patch: Invalid value: {error.message}') from error
    _drop_unknown(job, minor)
    _check(job, minor)
    _store_pod(job["spec"]["template"]["spec"])
    fixed = {key for key in (*before["spec"], *job["spec"]) if key not in _CHANGEABLE}
    problems = [
        f"spec.{key}: Invalid value: {_shown(job['spec'].get(key))}field is immutable"
        for key in sorted(fixed)
        if before["spec"].get(key) != job["spec"].get(key)
    ]
    if problems:
        raise invalid("Job.batch", name, problems)


def _shown(value: object) -> str:
    """Return a value as an error has it; a server writes structures in Go's form, which nobody reads."""
    return "" if value is None or isinstance(value, dict | list) else f"{json.dumps(value)}: "


def with_requests(pod: Mapping[str, Any]) -> Document:
    """Return the specification of a pod as it is stored: a limit without a request is a request too."""
    stored = deepcopy(dict(pod))
    for container in (*(stored.get("initContainers") or ()), *stored["containers"]):
        requests = {**_quantities(container, "limits"), **_quantities(container, "requests")}
        if requests:
            container["resources"] = {**container["resources"], "requests": requests}
    return stored


def _check(job: Document, minor: int) -> None:
    problems = [*_check_metadata(job, minor), *_check_spec(job["spec"]), *_check_pod(job, minor)]
    problems += check_indices(job)
    if problems:
        raise invalid("Job.batch", job["metadata"].get("name", ""), problems)


def _decode(job: Document) -> None:
    version = job.get("apiVersion")
    kind = job.get("kind")
    if version is not None and kind is not None and (version, kind) != ("batch/v1", "Job"):
        known = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'
        said = f'no kind "{kind}" is registered for version "{version}" {known}'
        short = str(version).rpartition("/")[2]
        raise ApiError(400, "BadRequest", f'{kind} in version "{short}" cannot be handled as a Job: {said}')
    template = job.setdefault("spec", {}).setdefault("template", {})
    for part, path in ((job, "ObjectMeta"), (template, "ObjectMeta.spec.template")):
        texts = part.setdefault("metadata", {}).get("labels") or {}
        annotations = part["metadata"].get("annotations") or {}
        if any(not isinstance(value, str) for value in (*texts.values(), *annotations.values())):
            said = f"json: cannot unmarshal number into Go struct field {path}.metadata.labels of type string"
            raise malformed(said)
    decode(template.get("spec"), "spec.template.spec")


def _drop_unknown(job: Document, minor: int) -> list[str]:
    """Drop what the server does not know, and return it, but for what 1.25 has switched off: that goes silently."""
    spec = job.setdefault("spec", {})
    gone = [key for key in spec if key not in spec_fields(minor)]
    for key in gone:
        del spec[key]
    unknown = [f"spec.{key}" for key in gone if minor >= POD_POLICIES or key not in _SPEC_SINCE]
    pod = (spec.get("template") or {}).get("spec") or {}
    return [f'unknown field "{path}"' for path in (*unknown, *drop_unknown(pod, "spec.template.spec", minor))]


def _check_metadata(job: Document, minor: int) -> Iterator[str]:
    metadata = job["metadata"]
    name = job["metadata"].get("name", "")
    if not name:
        yield "metadata.name: Required value: name or generateName is required"
    elif not NAME.fullmatch(name):
        yield f'metadata.name: Invalid value: "{name}": {NAME_RULE}'
    for key, value in (metadata.get("labels") or {}).items():
        if not _LABEL_KEY.fullmatch(key):
            yield f'metadata.labels: Invalid value: "{key}": {_LABEL_KEY_RULE}'
        yield from _check_label("metadata.labels", value)
    # Its pods have its name as the value of a label.
    for value in ((job["spec"].get("template", {})["metadata"].get("labels")) or {}, {"job-name": name}):
        for each in value.values():
            yield from _check_label("spec.template.labels", each)
    if sum(len(key) + len(value) for key, value in (metadata.get("annotations") or {}).items()) > _MAX_ANNOTATIONS:
        words = "may not be more than" if minor >= 21 else "must have at most"
        yield f"metadata.annotations: Too long: {words} {_MAX_ANNOTATIONS} bytes"


def _check_spec(spec: Document) -> Iterator[str]:
    for key in _NOT_NEGATIVE:
        if isinstance(spec.get(key), int) and spec[key] < 0:
            yield f"spec.{key}: Invalid value: {spec[key]}: must be greater than or equal to 0"


def _check_label(path: str, value: str) -> Iterator[str]:
    if len(value) > _MAX_LABEL:
        yield f'{path}: Invalid value: "{value}": must be no more than {_MAX_LABEL} bytes'
    elif not _LABEL_VALUE.fullmatch(value):
        yield f'{path}: Invalid value: "{value}": {LABEL_RULE}'


def _check_pod(job: Document, minor: int) -> Iterator[str]:
    path = "spec.template.spec"
    spec = job["spec"].get("template", {}).get("spec") or {}
    if not spec.get("containers"):
        yield f"{path}.containers: Required value"
    if spec.get("restartPolicy") not in {"Never", "OnFailure"}:
        yield f'{path}.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    if minor >= POD_POLICIES and "podFailurePolicy" in job["spec"] and spec.get("restartPolicy") != "Never":
        yield f'{path}.restartPolicy: Invalid value: only "Never" is supported when podFailurePolicy is specified'
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(kind) or ()):
            for key in ("name", "image"):
                if not container.get(key):
                    yield f"{path}.{kind}[{number}].{key}: Required value"
            yield from _check_resources(f"{path}.{kind}[{number}].resources", container, minor)
    yield from check_pod_spec(spec, path)


def _check_resources(path: str, container: Document, minor: int) -> Iterator[str]:
    limits = _quantities(container, "limits")
    requests = _quantities(container, "requests")
    for kind, quantities in (("limits", limits), ("requests", requests)):
        for name, quantity in quantities.items():
            yield from _check_quantity(f"{path}.{kind}[{name}]", name, quantity)
    for name, quantity in requests.items():
        if name in _OVERCOMMITTED:
            yield from _check_overcommitted(f"{path}.requests", name, quantity, limits.get(name))
        elif name not in limits:
            yield f"{path}.limits: Required value: Limit must be set for non overcommitable resources"
        elif parse_quantity(limits[name]) != parse_quantity(quantity):
            known = f" of {store_quantity(limits[name])}" if minor >= 21 else ""
            yield f'{path}.requests: Invalid value: "{store_quantity(quantity)}": must be equal to {name} limit{known}'


def _check_overcommitted(path: str, name: str, quantity: object, limit: object) -> Iterator[str]:
    asked = parse_quantity(quantity)
    allowed = parse_quantity(limit)
    if asked is not None and allowed is not None and asked > allowed:
        yield f'{path}: Invalid value: "{store_quantity(quantity)}": must be less than or equal to {name} limit'


def _check_quantity(path: str, name: str, quantity: object) -> Iterator[str]:
    value = parse_quantity(quantity)
    if "/" not in name and name not in _OVERCOMMITTED and not name.startswith("hugepages-"):
        yield f'{path}: Invalid value: "{name}": must be a standard resource type or fully qualified'
        yield f'{path}: Invalid value: "{name}": must be a standard resource for containers'
    if value is not None and value < 0:
        yield f'{path}: Invalid value: "{store_quantity(quantity)}": must be greater than or equal to 0'
    elif value is not None and name not in _OVERCOMMITTED and value != value.to_integral_value():
        yield f'{path}: Invalid value: "{store_quantity(quantity)}": must be an integer'


def _add_defaults(job: Document, minor: int) -> None:
    mode = {"completionMode": "NonIndexed"} if minor >= INDEXED_JOBS else {}
    job["spec"] = {"parallelism": 1, "completions": 1, "backoffLimit": 6, **mode, **job["spec"]}
    job["status"] = {}
    _store_pod(job["spec"]["template"]["spec"])


def _store_pod(pod: Document) -> None:
    """Write the specification of a pod as it is stored: with defaults, and quantities as texts."""
    pod.setdefault("terminationGracePeriodSeconds", 30)
    pod.setdefault("schedulerName", "default-scheduler")
    store_volumes(pod)
    for container in (*(pod.get("initContainers") or ()), *pod["containers"]):
        stored = {
            kind: {name: store_quantity(each) for name, each in _quantities(container, kind).items()}
            for kind in ("limits", "requests")
        }
        container["resources"] = {kind: quantities for kind, quantities in stored.items() if quantities}


def _quantities(container: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return (container.get("resources") or {}).get(kind) or {}
