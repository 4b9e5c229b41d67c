"""Pod Security admission: pods that a namespace refuses by its label ("Pod Security Standards").

It is about pods: a Job that makes such pods is taken, and has none. The words are those of the checks in
k8s.io/pod-security-admission. Of the levels, baseline here has what a specification may have at all in this cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ENFORCE = "pod-security.kubernetes.io/enforce"
"""The label of a namespace: privileged, baseline or restricted."""
HAS_ADMISSION = 23
"""The minor version of the first servers that do this (beta, on by default)."""

_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
_VOLUMES = frozenset(
    {
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"),
    }
)


def find_refusal(namespace: Mapping[str, Any] | None, pod: Mapping[str, Any]) -> str:
    """Return why the namespace refuses a pod, empty if it takes it."""
    labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    level = labels.get(ENFORCE, "")
    violations = find_violations(pod["spec"], level)
    if not violations:
        return ""
    name = pod["metadata"]["name"]
    return f'pods "{name}" is forbidden: violates PodSecurity "{level}:latest": {", ".join(violations)}'


def find_violations(spec: Mapping[str, Any], level: str) -> list[str]:
    """Return what a level does not allow in the specification of a pod; privileged, or an unknown one, allows all."""
    if level == "baseline":
        return list(_of_baseline(spec))
    return [*_of_baseline(spec), *_of_restricted(spec)] if level == "restricted" else []


def _of_baseline(spec: Mapping[str, Any]) -> Iterator[str]:
    if shared := [each for each in _HOST_NAMESPACES if spec.get(each)]:
        yield f"host namespaces ({', '.join(f'{each}=true' for each in shared)})"
    if named := _named(spec, lambda context: bool(context.get("privileged"))):
        yield f"privileged ({named} must not set securityContext.privileged=true)"
    if named := _named(spec, lambda context: not _added(context) <= _CAPABILITIES):
        yield f"non-default capabilities ({named} must not include other than the default ones in capabilities.add)"
    if any("hostPath" in each for each in spec.get("volumes") or ()):
        yield "hostPath volumes"


def _added(context: Mapping[str, Any]) -> set[str]:
    return set((context.get("capabilities") or {}).get("add") or ())


def _of_restricted(spec: Mapping[str, Any]) -> Iterator[str]:
    pod = spec.get("securityContext") or {}
    if named := _named(spec, lambda context: context.get("allowPrivilegeEscalation") is not False):
        yield (f"allowPrivilegeEscalation != false ({named} must set securityContext.allowPrivilegeEscalation=false)")
    if named := _named(spec, lambda context: "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())):
        yield f'unrestricted capabilities ({named} must set securityContext.capabilities.drop=["ALL"])'
    if any(not _VOLUMES & each.keys() for each in spec.get("volumes") or ()):
        yield "restricted volume types"
    if named := _named(spec, lambda context: context.get("runAsNonRoot", pod.get("runAsNonRoot")) is not True):
        yield f"runAsNonRoot != true (pod or {named} must set securityContext.runAsNonRoot=true)"
    if pod.get("runAsUser") == 0 or _named(spec, lambda context: context.get("runAsUser") == 0):
        yield "runAsUser=0 (pod must not set runAsUser=0)"
    if named := _named(spec, lambda context: (_profile(context) or _profile(pod)) not in _PROFILES):
        yield (
            f"seccompProfile (pod or {named} must set securityContext.seccompProfile.type to "
            '"RuntimeDefault" or "Localhost")'
        )


def _named(spec: Mapping[str, Any], is_wrong: Any) -> str:
    """Return the containers whose security context is wrong, in the words of the checks; empty if none is."""
    containers: Sequence[Mapping[str, Any]] = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    names = [f'"{each["name"]}"' for each in containers if is_wrong(each.get("securityContext") or {})]
    return f"container{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""


def _profile(context: Mapping[str, Any]) -> str:
    return str((context.get("seccompProfile") or {}).get("type", ""))
