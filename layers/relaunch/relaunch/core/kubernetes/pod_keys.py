"""What a definition has for its pod beside GPUs, and why that can never run.

Sources: "Taints and Tolerations", "Volumes" and "Persistent Volumes", Kubernetes documentation.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from relaunch.core.definitions.accelerator import SHARED_MEMORY_PATH
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, TaintEffect, Toleration
from relaunch.core.kubernetes import ack, acs
from relaunch.core.kubernetes.pod_fragment import find_fragment_problems, find_gang_fragment_problems
from relaunch.core.kubernetes.problem import Problem, of_workload
from relaunch.core.kubernetes.rules import MAIN_CONTAINER

_SAID_ELSEWHERE = {
    ack.GPU_NAME: "gpu_model",
    ack.SHARING: "gpu_sharing",
    ack.PLACEMENT: "gpu_placement",
    acs.GPU_MODEL: "gpu_model",
}
# The taints of a node that nothing is heard of, for which pods have five minutes.
_LOST_NODE = frozenset({"", "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"})


def find_pod_problems(definition: JobDefinition) -> tuple[Problem, ...]:
    """Return what contradicts itself in the keys for the pod of a definition, or what Relaunch does not let it say.

    It is for who writes a definition; a fragment is held against the same when its pod is made.
    """
    workload = definition.kubernetes
    if workload is None or not definition.target.capabilities.runs_pods:
        return ()
    container = definition.container or MAIN_CONTAINER
    fragment = find_fragment_problems(workload, container, definition.environment)
    if not fragment and definition.nodes > 1:
        fragment = tuple(find_gang_fragment_problems(workload))
    return (*_find_key_problems(definition, workload), *fragment)


def _find_key_problems(definition: JobDefinition, workload: KubernetesWorkload) -> Iterator[Problem]:
    yield from _memory_problems(workload)
    for name in sorted(workload.secrets.keys() & definition.environment.keys()):
        text = f"`{name}` is in `environment` too: leave it out there"
        yield of_workload("secrets", text, name)
    yield from _selector_problems(workload.node_selector)
    yield from _path_problems(workload)
    for number, each in enumerate(workload.tolerations):
        yield from _toleration_problems(each, number)
    if acs.EXTRA_STORAGE in workload.annotations:
        yield of_workload("annotations", f"`{acs.EXTRA_STORAGE}` is taken: say `kubernetes.disk`", acs.EXTRA_STORAGE)


def _memory_problems(workload: KubernetesWorkload) -> Iterator[Problem]:
    shared = workload.shared_memory_mib
    memory = workload.memory_mib
    if shared is not None and memory is not None and shared >= memory:
        text = (
            f"shared memory counts towards `memory`: {shared:,} MiB of it leave nothing of {memory:,} MiB, "
            "so give more `memory`"
        )
        yield of_workload("shared_memory", text)


def _selector_problems(selector: Mapping[str, str]) -> Iterator[Problem]:
    for key in sorted(selector.keys() & _SAID_ELSEWHERE.keys()):
        text = f"`{key}` is taken: say `kubernetes.{_SAID_ELSEWHERE[key]}`"
        yield of_workload("node_selector", text, key)


def _path_problems(workload: KubernetesWorkload) -> Iterator[Problem]:
    used = Counter(each.path for each in workload.volumes)
    if workload.shared_memory_mib is not None:
        used[SHARED_MEMORY_PATH] += 1
    for number, each in enumerate(workload.volumes):
        if used[each.path] > 1:
            text = f"`{each.path}` is the path of something else too: a path has one volume"
            yield of_workload("volumes", text, number, "path")


def _toleration_problems(toleration: Toleration, number: int) -> Iterator[Problem]:
    if toleration.value and not toleration.key:
        yield of_workload("tolerations", "`value` is that of a taint with a key: give `key` too", number, "value")
    if toleration.key in _LOST_NODE and toleration.effect in {None, TaintEffect.NO_EXECUTE}:
        text = (
            "it would keep the pod on a node that nothing is heard of, for ever: give `effect: NoSchedule`, which is "
            "what keeps pods from a node"
        )
        yield of_workload("tolerations", text, number)
