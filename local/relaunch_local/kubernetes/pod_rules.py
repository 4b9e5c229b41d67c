"""What the API server refuses in the specification of a pod: volumes, mounts, variables, tolerations, selectors.

The words are those of pkg/apis/core/validation of Kubernetes. None of it is about other objects: a claim, a Secret or a
scheduler that does not exist is a matter of the pod's later life.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from relaunch_local.kubernetes.quantities import parse_quantity, store_quantity

Document = Mapping[str, Any]
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DNS_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_VARIABLE_RULE = (
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not "
    "start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is "
    "'[-._a-zA-Z][-._a-zA-Z0-9]*')"
)
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")


def check_pod_spec(spec: Document, path: str) -> Iterator[str]:
    """Yield what is wrong with the specification of a pod, but for what job_rules look at."""
    volumes: Sequence[Document] = spec.get("volumes") or ()
    yield from _check_volumes(volumes, f"{path}.volumes")
    names = {each.get("name") for each in volumes}
    for kind in ("initContainers", "containers"):
        for number, container in enumerate(spec.get(kind) or ()):
            yield from _check_mounts(container, names, f"{path}.{kind}[{number}].volumeMounts")
            yield from _check_variables(container, f"{path}.{kind}[{number}].env")
    for number, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _check_toleration(toleration, f"{path}.tolerations[{number}]")
    for value in (spec.get("nodeSelector") or {}).values():
        if not _LABEL_VALUE.fullmatch(value):
            yield f'{path}.nodeSelector: Invalid value: "{value}": {LABEL_RULE}'
    if spec.get("priorityClassName") and not NAME.fullmatch(spec["priorityClassName"]):
        yield f'{path}.priorityClassName: Invalid value: "{spec["priorityClassName"]}": {NAME_RULE}'


def _check_volumes(volumes: Sequence[Document], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, volume in enumerate(volumes):
        name = volume.get("name") or ""
        if not name:
            yield f"{path}[{number}].name: Required value"
        elif not _DNS_LABEL.fullmatch(name):
            yield f'{path}[{number}].name: Invalid value: "{name}": {_DNS_LABEL_RULE}'
        if name in seen:
            yield f'{path}[{number}].name: Duplicate value: "{name}"'
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        for extra in sources[1:]:
            yield f"{path}[{number}].{extra}: Forbidden: may not specify more than 1 volume type"
        yield from _check_source(volume, f"{path}[{number}]")


def _check_source(volume: Document, path: str) -> Iterator[str]:
    claim = volume.get("persistentVolumeClaim")
    if claim is not None and not claim.get("claimName"):
        yield f"{path}.persistentVolumeClaim.claimName: Required value"
    limit = (volume.get("emptyDir") or {}).get("sizeLimit")
    size = parse_quantity(limit) if limit is not None else None
    if size is not None and size < 0:
        yield f"{path}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"


def _check_mounts(container: Document, volumes: set[Any], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        name = mount.get("name") or ""
        where = mount.get("mountPath") or ""
        if not name:
            yield f"{path}[{number}].name: Required value"
        elif name not in volumes:
            yield f'{path}[{number}].name: Not found: "{name}"'
        if not where:
            yield f"{path}[{number}].mountPath: Required value"
        if where in seen:
            yield f'{path}[{number}].mountPath: Invalid value: "{where}": must be unique'
        seen.add(where)
        if ".." in (mount.get("subPath") or "").split("/"):
            # Without the number of the mount, as the server has it.
            yield f"{path}.subPath: Invalid value: \"{mount['subPath']}\": must not contain '..'"


def _check_variables(container: Document, path: str) -> Iterator[str]:
    for number, variable in enumerate(container.get("env") or ()):
        name = variable.get("name") or ""
        if not name:
            yield f"{path}[{number}].name: Required value"
        elif not _VARIABLE.fullmatch(name):
            yield f'{path}[{number}].name: Invalid value: "{name}": {_VARIABLE_RULE}'
        if variable.get("valueFrom") is not None:
            yield from _check_reference(variable, f"{path}[{number}].valueFrom")


def _check_reference(variable: Document, path: str) -> Iterator[str]:
    source = variable["valueFrom"]
    if variable.get("value"):
        yield f'{path}: Invalid value: "": may not be specified when `value` is not empty'
    if len(source) != 1:
        said = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield f'{path}: Invalid value: "": {said}'
    for kind in ("secretKeyRef", "configMapKeyRef"):
        if kind in source and not source[kind].get("key"):
            yield f"{path}.{kind}.key: Required value"


def _check_toleration(toleration: Document, path: str) -> Iterator[str]:
    operator = toleration.get("operator") or ""
    effect = toleration.get("effect") or ""
    if not toleration.get("key") and operator != "Exists":
        said = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield f'{path}.operator: Invalid value: "{operator}": {said}'
    if operator not in {"", "Equal", "Exists"}:
        yield f'{path}.operator: Unsupported value: "{operator}": supported values: "Equal", "Exists"'
    if operator == "Exists" and toleration.get("value"):
        said = "value must be empty when `operator` is 'Exists'"
        shown = (
            f'core.Toleration{{Key:"{toleration.get("key", "")}", Operator:"Exists", Value:"{toleration["value"]}", '
            f'Effect:"{effect}", TolerationSeconds:(*int64)(nil)}}'
        )
        yield f"{path}.operator: Invalid value: {shown}: {said}"
    if effect and effect not in _EFFECTS:
        yield f'{path}.effect: Unsupported value: "{effect}": supported values: {", ".join(map(_quoted, _EFFECTS))}'
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        said = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield f'{path}.effect: Invalid value: "{effect}": {said}'


def _quoted(word: str) -> str:
    return f'"{word}"'


def store_volumes(spec: Any) -> None:
    """Write volumes as they are stored: sizes as quantities, and one of no type as an empty folder."""
    for volume in spec.get("volumes") or ():
        if volume.keys() == {"name"}:
            volume["emptyDir"] = {}
        source = volume.get("emptyDir") or {}
        if "sizeLimit" in source:
            source["sizeLimit"] = store_quantity(source["sizeLimit"])
