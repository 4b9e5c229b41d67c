"""The fields of a pod's specification, and the types as which a server decodes them ("Pod v1 core", API Reference).

A field that its version does not know is dropped, with a warning, or refused where the request asks for strict
validation; one of another type cannot be decoded. What no launcher writes is `any`, and what is in it is not looked at.
"""

import re
from collections.abc import Mapping
from typing import Any

from relaunch_local.kubernetes.errors import malformed
from relaunch_local.kubernetes.quantities import parse_quantity

_TEXTS = "map[string]string"
_NAMED = {"name": "string"}
_KEY = {**_NAMED, "key": "string", "optional": "bool"}
_PROFILE = {"type": "string", "localhostProfile": "string"}
_OF_USER = {
    "runAsUser": "int64",
    "runAsGroup": "int64",
    "runAsNonRoot": "bool",
    "seccompProfile": "SeccompProfile",
    "seLinuxOptions": "any",
    "windowsOptions": "any",
    "appArmorProfile": "any",
}
_STRUCTS: Mapping[str, Mapping[str, str]] = {
    "PodSpec": {
        "volumes": "[]Volume",
        "initContainers": "[]Container",
        "containers": "[]Container",
        "ephemeralContainers": "any",
        "restartPolicy": "string",
        "terminationGracePeriodSeconds": "int64",
        "activeDeadlineSeconds": "int64",
        "dnsPolicy": "string",
        "nodeSelector": _TEXTS,
        "serviceAccountName": "string",
        "serviceAccount": "string",
        "automountServiceAccountToken": "bool",
        "nodeName": "string",
        "hostNetwork": "bool",
        "hostPID": "bool",
        "hostIPC": "bool",
        "hostUsers": "bool",
        "shareProcessNamespace": "bool",
        "securityContext": "PodSecurityContext",
        "imagePullSecrets": "[]LocalObjectReference",
        "hostname": "string",
        "subdomain": "string",
        "affinity": "any",
        "schedulerName": "string",
        "tolerations": "[]Toleration",
        "hostAliases": "any",
        "priorityClassName": "string",
        "priority": "int32",
        "dnsConfig": "any",
        "readinessGates": "any",
        "runtimeClassName": "string",
        "enableServiceLinks": "bool",
        "preemptionPolicy": "string",
        "overhead": "quantities",
        "topologySpreadConstraints": "any",
        "setHostnameAsFQDN": "bool",
        "os": "any",
        "schedulingGates": "any",
        "resourceClaims": "any",
        "resources": "ResourceRequirements",
    },
    "Container": {
        **_NAMED,
        "image": "string",
        "command": "[]string",
        "args": "[]string",
        "workingDir": "string",
        "ports": "any",
        "envFrom": "any",
        "env": "[]EnvVar",
        "resources": "ResourceRequirements",
        "resizePolicy": "any",
        "restartPolicy": "string",
        "volumeMounts": "[]VolumeMount",
        "volumeDevices": "any",
        "livenessProbe": "any",
        "readinessProbe": "any",
        "startupProbe": "any",
        "lifecycle": "any",
        "terminationMessagePath": "string",
        "terminationMessagePolicy": "string",
        "imagePullPolicy": "string",
        "securityContext": "SecurityContext",
        "stdin": "bool",
        "stdinOnce": "bool",
        "tty": "bool",
    },
    "ResourceRequirements": {"limits": "quantities", "requests": "quantities", "claims": "any"},
    "EnvVar": {**_NAMED, "value": "string", "valueFrom": "EnvVarSource"},
    "EnvVarSource": {
        "fieldRef": "any",
        "resourceFieldRef": "any",
        "configMapKeyRef": "ConfigMapKeySelector",
        "secretKeyRef": "SecretKeySelector",
    },
    "ConfigMapKeySelector": _KEY,
    "SecretKeySelector": _KEY,
    "VolumeMount": {
        **_NAMED,
        "readOnly": "bool",
        "mountPath": "string",
        "subPath": "string",
        "subPathExpr": "string",
        "mountPropagation": "string",
        "recursiveReadOnly": "string",
    },
    "Volume": {
        **_NAMED,
        "emptyDir": "EmptyDirVolumeSource",
        "persistentVolumeClaim": "PersistentVolumeClaimVolumeSource",
        "hostPath": "HostPathVolumeSource",
        "secret": "SecretVolumeSource",
        **dict.fromkeys(("configMap", "csi", "downwardAPI", "ephemeral", "image", "nfs", "projected"), "any"),
    },
    "EmptyDirVolumeSource": {"medium": "string", "sizeLimit": "quantity"},
    "PersistentVolumeClaimVolumeSource": {"claimName": "string", "readOnly": "bool"},
    "HostPathVolumeSource": {"path": "string", "type": "string"},
    "SecretVolumeSource": {"secretName": "string", "items": "any", "defaultMode": "int32", "optional": "bool"},
    "LocalObjectReference": _NAMED,
    "Toleration": {
        "key": "string",
        "operator": "string",
        "value": "string",
        "effect": "string",
        "tolerationSeconds": "int64",
    },
    "PodSecurityContext": {
        **_OF_USER,
        "supplementalGroups": "any",
        "supplementalGroupsPolicy": "string",
        "fsGroup": "int64",
        "fsGroupChangePolicy": "string",
        "sysctls": "any",
    },
    "SecurityContext": {
        **_OF_USER,
        "capabilities": "Capabilities",
        "privileged": "bool",
        "readOnlyRootFilesystem": "bool",
        "allowPrivilegeEscalation": "bool",
        "procMount": "string",
    },
    "Capabilities": {"add": "[]string", "drop": "[]string"},
    "SeccompProfile": _PROFILE,
}
KINDS = tuple(_STRUCTS)
"""The kinds that a pod's specification consists of, as far as they are looked at."""
_SINCE: Mapping[tuple[str, str], int] = {
    ("Container", "resizePolicy"): 27,
    ("Container", "restartPolicy"): 28,
    ("PodSecurityContext", "appArmorProfile"): 30,
    ("SecurityContext", "appArmorProfile"): 30,
    ("VolumeMount", "recursiveReadOnly"): 30,
    ("PodSecurityContext", "supplementalGroupsPolicy"): 31,
    ("Volume", "image"): 31,
    ("PodSpec", "resources"): 32,
}
"""The first minor version whose published schema has a field, of those since 1.27."""
_KINDS: Mapping[type, str] = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_PLAIN: Mapping[str, type] = {"string": str, "bool": bool, "int32": int, "int64": int}
_QUANTITY_RULE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def known_fields(kind: str, minor: int) -> Mapping[str, str]:
    """Return the fields of a kind that a server of this minor version knows, with their types."""
    return {key: found for key, found in _STRUCTS[kind].items() if _SINCE.get((kind, key), 0) <= minor}


def drop_unknown(value: Any, path: str, minor: int, kind: str = "PodSpec") -> list[str]:
    """Drop the fields of a decoded value that a server does not know, and return their paths."""
    if kind.startswith("[]") and kind[2:] in _STRUCTS:
        dropped = (drop_unknown(each, f"{path}[{number}]", minor, kind[2:]) for number, each in enumerate(value))
        return [each for found in dropped for each in found]
    if kind not in _STRUCTS:
        return []
    fields = known_fields(kind, minor)
    gone = [f"{path}.{key}" for key in value if key not in fields]
    for key in value.keys() - fields.keys():
        del value[key]
    inner = (drop_unknown(each, f"{path}.{key}", minor, fields[key]) for key, each in value.items() if each is not None)
    return [*gone, *(each for found in inner for each in found)]


def decode(value: Any, path: str, kind: str = "PodSpec", owner: str = "JobSpec") -> None:
    """Decode a value, which null leaves as if it was not there.

    Raises:
        ApiError: 400, a field has another type.
    """
    if value is None or kind == "any":
        return
    if kind in {"quantity", "quantities"}:
        _decode_quantities({"": value} if kind == "quantity" else value, path, owner)
    elif kind in _PLAIN:
        _check_type(value, path, _PLAIN[kind], owner, kind)
    elif kind.startswith("[]"):
        _check_type(value, path, list, owner, f"[]v1.{kind[2:]}" if kind[2:] in _STRUCTS else kind)
        for each in value:
            decode(each, path, kind[2:], owner)
    else:
        is_map = kind == _TEXTS
        _check_type(value, path, dict, owner, kind if is_map else f"v1.{kind}")
        for key, each in value.items():
            found = "string" if is_map else _STRUCTS[kind].get(key, "any")
            decode(each, path if is_map else f"{path}.{key}", found, owner if is_map else kind)


def _decode_quantities(quantities: Any, path: str, owner: str) -> None:
    _check_type(quantities, path, dict, owner, "v1.ResourceList")
    if any(parse_quantity(each) is None for each in quantities.values()):
        raise malformed(_QUANTITY_RULE)


def _check_type(value: Any, path: str, wanted: type, owner: str, kind: str) -> None:
    if type(value) is not wanted:
        found = _KINDS[type(value)]
        raise malformed(f"json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {kind}")


def expand(value: str, variables: Mapping[str, str]) -> str:
    """Return a value with `$(NAME)` replaced by a variable before it, and `$$` by `$` (third_party/forked/golang)."""
    return re.sub(
        r"\$\$|\$\(([^()]+)\)",
        lambda found: "$" if found[1] is None else variables.get(found[1], found[0]),
        value,
    )
