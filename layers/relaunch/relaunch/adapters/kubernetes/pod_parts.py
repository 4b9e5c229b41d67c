"""The parts of a pod that are not about its GPUs: variables, volumes, tolerations, and the fragment of a definition.

Sources: the Kubernetes API Reference (v1); for memory as a volume "Volumes: emptyDir", Kubernetes documentation.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from relaunch.core.definitions.accelerator import SHARED_MEMORY_PATH
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodVolume, Toleration
from relaunch.core.kubernetes.pod_fragment import OWN_VOLUMES

_SHARED_MEMORY = f"{OWN_VOLUMES}shared-memory"
_OWN_VARIABLES = "RELAUNCH_"
_MIB_PER_GIB = 1024
# What is merged by a key that tells its items apart; other lists are appended.
_MERGED_BY_NAME = frozenset({"containers"})


def variables(environment: Mapping[str, str], workload: KubernetesWorkload) -> list[dict[str, Any]]:
    """Return the variables of the main container: values, and references to keys of Secrets.

    A kubelet replaces `$(NAME)` by a variable before it, and `$$` by `$`. An input of an event may have either, and
    means itself: so each `$` is doubled, and the references come last.
    """
    plain = [{"name": name, "value": value.replace("$", "$$")} for name, value in sorted(environment.items())]
    references = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": each.secret, "key": each.key}}}
        for name, each in sorted(workload.secrets.items())
    ]
    return [*plain, *references]


def volumes(workload: KubernetesWorkload) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the volumes of a pod, and where its main container has them."""
    claims = list(dict.fromkeys(each.claim for each in workload.volumes))
    names = {claim: f"{OWN_VOLUMES}claim-{number}" for number, claim in enumerate(claims)}
    found: list[dict[str, Any]] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in names.items()
    ]
    mounts = [_mount(names[each.claim], each) for each in workload.volumes]
    if workload.shared_memory_mib is not None:
        source = {"medium": "Memory", "sizeLimit": memory_quantity(workload.shared_memory_mib)}
        found.append({"name": _SHARED_MEMORY, "emptyDir": source})
        mounts.append({"name": _SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH})
    return found, mounts


def _mount(name: str, volume: PodVolume) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name, "mountPath": volume.path}
    if volume.sub_path:
        given["subPath"] = volume.sub_path
    return {**given, "readOnly": True} if volume.read_only else given


def placement(workload: KubernetesWorkload, tolerations: Iterable[Toleration] = ()) -> dict[str, Any]:
    """Return what a pod asks of nodes, its scheduler and registries, as far as it is given.

    `tolerations` are those that follow from its GPUs.
    """
    found = {
        "tolerations": [_toleration(each) for each in dict.fromkeys((*tolerations, *workload.tolerations))],
        "imagePullSecrets": [{"name": name} for name in workload.image_pull_secrets],
        "priorityClassName": workload.priority_class,
        "schedulerName": workload.scheduler_name,
    }
    return {key: value for key, value in found.items() if value}


def _toleration(toleration: Toleration) -> dict[str, str]:
    value = {"operator": "Equal", "value": toleration.value} if toleration.value else {"operator": "Exists"}
    key = {"key": toleration.key} if toleration.key else {}
    return {**key, **value, **({"effect": toleration.effect.value} if toleration.effect else {})}


def merge_fragment(
    template: dict[str, Any], workload: KubernetesWorkload, context: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a pod template with the fragment of a definition: mappings are merged, lists appended.

    The main container is merged by its name. An init container has the variables that Relaunch sets, and of the
    security `context` of containers what it does not say itself.
    """
    merged: dict[str, Any] = _merge(template, workload.pod)
    spec = merged["spec"]
    (main,) = spec["containers"]
    own = [each for each in main.get("env", ()) if each["name"].startswith(_OWN_VARIABLES)]
    if "initContainers" in spec:
        spec["initContainers"] = [_init(each, own, context) for each in spec["initContainers"]]
    return merged


def _init(container: Mapping[str, Any], own: list[dict[str, Any]], context: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **container,
        "env": [*own, *container.get("env", ())],
        "securityContext": _merge(context, container.get("securityContext", {})),
    }


def _merge(before: Any, fragment: Any, key: str = "") -> Any:
    if isinstance(before, Mapping) and isinstance(fragment, Mapping):
        both = before.keys() & fragment.keys()
        return {**before, **fragment, **{name: _merge(before[name], fragment[name], name) for name in both}}
    if key in _MERGED_BY_NAME:
        given = {each["name"]: each for each in fragment}
        return [_merge(each, given.get(each["name"], {})) for each in before]
    return [*before, *fragment] if isinstance(before, list) else fragment


def cpu_quantity(vcpus: float) -> str:
    """Return a number of vCPUs as a quantity: `4`, `500m`."""
    thousandths = round(vcpus * 1000)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


def memory_quantity(mib: int) -> str:
    """Return an amount of memory as a quantity: `16Gi`, `1500Mi`."""
    return f"{mib}Mi" if mib % _MIB_PER_GIB else f"{mib // _MIB_PER_GIB}Gi"
