"""What `kubernetes.pod` may say: part of a pod template in the words of the API, for which there is no key.

It is an allow list: what Relaunch sets itself, what there is a key for, and what gives a pod more of its node than the
Pod Security Standard baseline does is refused by its path, and so is a field that is not known here. One thing goes
beyond baseline: the capability IPC_LOCK, which RDMA needs to pin memory.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, PodSecurity
from relaunch.core.kubernetes import ack, acs
from relaunch.core.kubernetes.problem import Problem, of_workload

OWN_VOLUMES = "relaunch-"
"""What the names of Relaunch's own volumes start with."""

IDENTITIES = ("k8s.aliyun.com/eci-ram-role-name", "iam.amazonaws.com/role")
"""The annotations that give a pod a role of the cloud without a service account."""
OF_IDENTITIES = "gives a pod an identity: that of a job is its `service_account`"
APPARMOR = "container.apparmor.security.beta.kubernetes.io"
"""What begins the annotations that may take a container's AppArmor profile away."""

Place = tuple[str | int, ...]
_OF_NODE = "a pod gets nothing of its node but what it asks for: leave it out"
_INSTEAD: Mapping[str, str] = {
    "activeDeadlineSeconds": "say `max_runtime` or `deadline`",
    "allowPrivilegeEscalation": "no program of a pod gains privileges: leave it out",
    "args": "say `command`, which has the arguments too",
    "automountServiceAccountToken": "say `kubernetes.service_account_token`",
    "command": "say `command` of the job",
    "hostIPC": f"{_OF_NODE}; for shared memory say `kubernetes.shared_memory`",
    "hostNetwork": _OF_NODE,
    "hostPID": _OF_NODE,
    "host": "a probe is of the pod itself: leave it out",
    "hostPath": f"{_OF_NODE}, and mount a claim by `kubernetes.volumes`",
    "hostPort": _OF_NODE,
    "image": "say `kubernetes.image`",
    "imagePullSecrets": "say `kubernetes.image_pull_secrets`",
    "nfs": "mount a claim by `kubernetes.volumes`",
    "nodeName": "the scheduler chooses the node: say `kubernetes.node_selector`, or `affinity`",
    "nodeSelector": "say `kubernetes.node_selector`",
    "priority": "say `kubernetes.priority_class`",
    "priorityClassName": "say `kubernetes.priority_class`",
    "privileged": _OF_NODE,
    "restartPolicy": "a new attempt is a new Job, and Kubernetes restarts nothing: leave it out",
    "runAsNonRoot": "say `kubernetes.pod_security`",
    "runAsUser": "say `kubernetes.run_as_user`",
    "schedulerName": "say `kubernetes.scheduler_name`",
    "seccompProfile": "it is RuntimeDefault: leave it out",
    "serviceAccount": "say `kubernetes.service_account`",
    "serviceAccountName": "say `kubernetes.service_account`",
    "terminationGracePeriodSeconds": "every job has the same time to save: leave it out",
    "tolerations": "say `kubernetes.tolerations`",
    "workingDir": "say `kubernetes.working_directory`",
}
# What a value may have: None is anything, `dict` a mapping of any keys, a list of one is a list of such.
_HANDLER: Mapping[str, Any] = {
    **dict.fromkeys(("exec", "grpc", "sleep")),
    "httpGet": dict.fromkeys(("path", "port", "scheme", "httpHeaders")),
    "tcpSocket": {"port": None},
}
_PROBE: Mapping[str, Any] = {
    **_HANDLER,
    **dict.fromkeys(("initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold")),
}
_CONTAINER: Mapping[str, Any] = {
    **dict.fromkeys(("name", "envFrom", "imagePullPolicy", "terminationMessagePath", "terminationMessagePolicy")),
    **dict.fromkeys(("livenessProbe", "readinessProbe", "startupProbe"), _PROBE),
    "env": [{"name": None, "value": None, "valueFrom": None}],
    "lifecycle": {"postStart": _HANDLER, "preStop": _HANDLER},
    "ports": [dict.fromkeys(("name", "containerPort", "protocol"))],
    "resources": {"limits": dict, "requests": dict},
    "securityContext": {
        "capabilities": {"add": [None], "drop": [None]},
        "readOnlyRootFilesystem": None,
        "runAsGroup": None,
    },
    "volumeMounts": [dict],
}
_SPEC: Mapping[str, Any] = {
    **dict.fromkeys(("affinity", "dnsConfig", "dnsPolicy", "enableServiceLinks", "hostAliases", "hostUsers")),
    **dict.fromkeys(("hostname", "runtimeClassName", "schedulingGates", "setHostnameAsFQDN")),
    **dict.fromkeys(("subdomain", "topologySpreadConstraints")),
    "containers": [_CONTAINER],
    "initContainers": [
        {**_CONTAINER, **dict.fromkeys(("image", "command", "args", "workingDir", "restartPolicy"))},
    ],
    "securityContext": dict.fromkeys(
        ("fsGroup", "fsGroupChangePolicy", "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy")
    ),
    "volumes": [
        {
            **dict.fromkeys(("name", "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "secret")),
            "persistentVolumeClaim": None,
            "projected": {"defaultMode": None, "sources": [dict]},
        }
    ],
}
_CAPABILITIES = frozenset(
    {
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "IPC_LOCK", "KILL", "MKNOD", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    }
)
_RESTRICTED_CAPABILITIES = frozenset({"NET_BIND_SERVICE"})
_SIZES = {"cpu": "kubernetes.vcpus", "memory": "kubernetes.memory", "ephemeral-storage": "kubernetes.disk"}
_GPU = re.compile(r"(?:nvidia\.com/(?:gpu|mig-)|(?:aliyun|alibabacloud)\.com/gpu|amd\.com/gpu).*")
_OWN_KEYS = ack.OWN_LABELS | acs.OWN_LABELS | {acs.EXTRA_STORAGE}
_OWN_VARIABLES = ("RELAUNCH_", "ECS_")
_NAMES_OF_RANKS = {
    "hostname": "a cluster gives each pod its own, and the others look for that",
    "subdomain": "it is the Service of the job, which its pods meet at",
    "setHostnameAsFQDN": "the name with the Service would be longer than a host's may be",
}
_CLUSTER_DNS = frozenset({"ClusterFirst", "ClusterFirstWithHostNet"})


def find_fragment_problems(
    workload: KubernetesWorkload, container: str, environment: Mapping[str, str]
) -> tuple[Problem, ...]:
    """Return what the fragment of a definition may not say; `container` is the name of the main container."""
    unknown = tuple(_find_unknown(workload.pod, {"metadata": {"labels": dict, "annotations": dict}, "spec": _SPEC}, ()))
    if unknown:
        return unknown
    # What follows looks at values of the right shape alone.
    pod: Any = workload.pod
    granted = tuple(_find_annotations(workload.annotations, pod.get("metadata", {}).get("annotations", {})))
    taken = [
        ("metadata", kind, key)
        for kind, keys in pod.get("metadata", {}).items()
        for key in keys
        if key in _OWN_KEYS or key.startswith("relaunch/")
    ]
    problems = [_problem(place, "is taken: Relaunch sets it") for place in taken]
    return (*granted, *problems, *_find_contradictions(pod.get("spec", {}), workload, container, environment))


def find_gang_fragment_problems(workload: KubernetesWorkload) -> Iterator[Problem]:
    """Yield what the fragment of a job of several nodes may not say, if it is one that any job may have.

    Its pods find each other by names that the Job controller and DNS give them ("Job with Pod-to-Pod Communication",
    "DNS for Services and Pods", Kubernetes documentation).
    """
    pod: Any = workload.pod
    for key in sorted(pod.get("metadata", {}).get("labels", {}).keys() & ack.GROUP_LABELS):
        yield _problem(("metadata", "labels", key), "is taken: Relaunch sets it for a job with `nodes`")
    spec = pod.get("spec", {})
    for key, why in _NAMES_OF_RANKS.items():
        if key in spec:
            yield _problem(("spec", key), f"may not be set for a job with `nodes`: {why}")
    if spec.get("dnsPolicy", "ClusterFirst") not in _CLUSTER_DNS:
        text = "must be ClusterFirst for a job with `nodes`: its pods meet by name in the cluster"
        yield _problem(("spec", "dnsPolicy"), text)


def _find_unknown(value: Any, shape: Any, place: Place) -> Iterator[Problem]:
    if isinstance(shape, list):
        if not isinstance(value, list):
            yield _problem(place, "must be a list")
            return
        for number, each in enumerate(value):
            yield from _find_unknown(each, shape[0], (*place, number))
    elif shape is not None:
        if not isinstance(value, Mapping):
            yield _problem(place, "must be a mapping of keys to values")
            return
        for key, each in value.items() if shape is not dict else ():
            if key in shape:
                yield from _find_unknown(each, shape[key], (*place, key))
            else:
                known = f"those that may are {', '.join(sorted(shape))}"
                yield _problem((*place, key), f"may not be set: {_INSTEAD.get(key, known)}")


def _find_annotations(of_job: Mapping[str, str], of_pod: Mapping[str, str]) -> Iterator[Problem]:
    """Yield the annotations that give a pod more than its definition may: those of the Job are its pod's too."""
    for key in sorted(of_job):
        if why := _why_refused(key):
            yield of_workload("annotations", f"`{key}` {why}", key)
    for key in sorted(of_pod):
        if why := _why_refused(key):
            yield _problem(("metadata", "annotations", key), why)


def _why_refused(annotation: str) -> str:
    if annotation in IDENTITIES:
        return OF_IDENTITIES
    return "may not be set: a container has the AppArmor profile of its node" if annotation.startswith(APPARMOR) else ""


def _find_contradictions(
    spec: Mapping[str, Any], workload: KubernetesWorkload, container: str, environment: Mapping[str, str]
) -> Iterator[Problem]:
    has_token = bool(workload.service_account) and workload.service_account_token
    for number, volume in enumerate(spec.get("volumes", ())):
        place: Place = ("spec", "volumes", number)
        if str(volume.get("name", OWN_VOLUMES)).startswith(OWN_VOLUMES):
            yield _problem((*place, "name"), f"is missing, or starts with {OWN_VOLUMES}: give another")
        sources = volume.get("projected", {}).get("sources", ())
        if not has_token and any("serviceAccountToken" in each for each in sources):
            yield _problem((*place, "projected"), "has a token of a service account: say `service_account_token`")
    taken = environment.keys() | workload.secrets.keys()
    for number, each in enumerate(spec.get("containers", ())):
        yield from _find_main(each, ("spec", "containers", number), container, taken)
        yield from _find_grants(each, ("spec", "containers", number), workload, _SIZES)
    for number, each in enumerate(spec.get("initContainers", ())):
        place = ("spec", "initContainers", number)
        if each.get("name") in {None, container}:
            yield _problem((*place, "name"), f"is missing, or that of the main container, `{container}`: give another")
        if not isinstance(each.get("image"), str):
            yield _problem((*place, "image"), "is missing")
        yield from _find_grants(each, place, workload, {})


def _find_main(main: Mapping[str, Any], place: Place, name: str, taken: set[str]) -> Iterator[Problem]:
    if main.get("name") != name:
        text = (
            f"is not `{name}`, the container of the job: another one beside it would outlive it, so make that one of "
            "`initContainers` with `restartPolicy: Always`"
        )
        yield _problem((*place, "name"), text)
    for number, variable in enumerate(main.get("env", ())):
        key = str(variable.get("name", ""))
        if not key or key.startswith(_OWN_VARIABLES) or key in taken:
            text = "is missing, or set by Relaunch, `environment` or `kubernetes.secrets`: give another"
            yield _problem((*place, "env", number, "name"), text)


def _find_grants(
    container: Mapping[str, Any], place: Place, workload: KubernetesWorkload, sizes: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield the GPUs that a container asks for, what `sizes` say, and the capabilities that none may have."""
    for kind, quantities in container.get("resources", {}).items():
        for name in quantities:
            instead = "accelerator.gpu" if _GPU.fullmatch(name) else sizes.get(name)
            if instead:
                yield _problem((*place, "resources", kind, name), f"may not be set: say `{instead}`")
    is_restricted = workload.pod_security is PodSecurity.RESTRICTED
    allowed = _RESTRICTED_CAPABILITIES if is_restricted else _CAPABILITIES
    for each in container.get("securityContext", {}).get("capabilities", {}).get("add", ()):
        if each not in allowed:
            text = f"may not have `{each}`: the capabilities that a pod may have are {', '.join(sorted(allowed))}"
            yield _problem((*place, "securityContext", "capabilities", "add"), text)


def _problem(place: Place, text: str) -> Problem:
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return of_workload("pod", f"`pod{shown}` {text}", *place)
