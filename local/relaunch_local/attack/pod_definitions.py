"""Attacks by whoever may write a definition for a cluster: pods that the stack does not allow, or that have too much.

What a pod may have is written here once more: the manifest is held against this, not against the code that writes it.
"""

import json
import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from relaunch.adapters.definition_file.parser import DefinitionFileError, parse_definitions
from relaunch.adapters.kubernetes.launches import check_limits
from relaunch.adapters.kubernetes.manifest import preview_job
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.kubernetes import grant_problems
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.bodies import mutate
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.job_rules import admit_job
from relaunch_local.kubernetes.pod_security import find_violations

STACK = "relaunch"
TEAM = "registry.example.com/team/"
ACCOUNT = "trainer"
GRANTS = PodGrants(images=(f"{TEAM}*",), service_accounts=(ACCOUNT,))
_FOREIGN_IMAGES = (
    *("evil.example/x:1", "x", "team/trainer", "registry.example.com/teams/x", "registry.example.com/x"),
    *("registry.example.com.evil.example/team/x", "evil.example/registry.example.com/team/x", f"{TEAM}../other/x"),
    *("registry.example.com:80/team/x", "REGISTRY.example.com/Team/x", f"{TEAM}x@sha256:00", f"{TEAM}/x", f"{TEAM}x:"),
)
_FOREIGN_ACCOUNTS = ("default", "cluster-admin-sa", "trainer-2", "trainer.x", "kube-system.trainer")
# Keys of pods, containers and Jobs that a definition has none for.
_FOREIGN_KEYS = {
    "namespace": "kube-system",
    "hostNetwork": True,
    "hostPID": True,
    "privileged": True,
    "securityContext": {"privileged": True},
    "security_context": {"privileged": True},
    "volumes": [{"name": "root", "hostPath": {"path": "/"}}],
    "initContainers": [{"name": "x", "image": "evil.example/x"}],
    "nodeName": "node-0",
    "automountServiceAccountToken": True,
    "serviceAccountName": "cluster-admin-sa",
    "pod": {"hostNetwork": True},
    "annotations": {"k8s.aliyun.com/eci-ram-role-name": "admin"},
    "tolerations": [{}],
}
_HOST = {"name": "root", "hostPath": {"path": "/"}}
_TOKEN = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}
_SYNC = {"name": "sync", "image": f"{TEAM}sync:1"}
# Fragments that no definition may have, as specifications, and as fields of the main and of an init container.
_FOREIGN_SPECS: tuple[Mapping[str, Any], ...] = (
    *({"hostNetwork": True}, {"hostPID": True}, {"hostIPC": True}, {"nodeName": "node-0"}, {"volumes": [_HOST]}),
    *({"serviceAccountName": "admin"}, {"serviceAccount": "admin"}, {"automountServiceAccountToken": True}),
    *({"restartPolicy": "Always"}, {"activeDeadlineSeconds": 1}, {"terminationGracePeriodSeconds": 9_000}),
    *({"tolerations": [{"operator": "Exists"}]}, {"priority": 2_000_000_000}, {"volumes": [_TOKEN]}),
    *({"securityContext": {"runAsUser": 0}}, {"securityContext": {"sysctls": [{"name": "kernel.shm", "value": "1"}]}}),
    *({"containers": [{"name": "spy", "image": "evil.example/x"}]}, {"initContainers": [{"name": "x", "image": "x"}]}),
    *({"ephemeralContainers": [{}]}, {"nodeSelector": {"ack.node.gpu.schedule": "share"}}, {"resources": {}}),
)
_FOREIGN_FIELDS: tuple[Mapping[str, Any], ...] = (
    *({"securityContext": {"privileged": True}}, {"securityContext": {"allowPrivilegeEscalation": True}}),
    *({"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}, {"securityContext": {"procMount": "Unmasked"}}),
    *({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, {"ports": [{"hostPort": 22}]}),
    *({"resources": {"limits": {"nvidia.com/gpu": 64}}}, {"livenessProbe": {"httpGet": {"host": "10.0.0.1"}}}),
)
_FREE_SPECS: tuple[Mapping[str, Any], ...] = (
    *({}, {"initContainers": [_SYNC]}, {"runtimeClassName": "nvidia"}, {"securityContext": {"fsGroup": 7}}),
    *({"volumes": [{"name": "c", "configMap": {"name": "c"}}]}, {"containers": [{"name": "main", "envFrom": []}]}),
)
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "image": (f"{TEAM}x:1", f"{TEAM}a/b", f"{TEAM}x@sha256:{'0' * 64}", *_FOREIGN_IMAGES),
    "service_account": (ACCOUNT, ACCOUNT, *_FOREIGN_ACCOUNTS),
    "service_account_token": (True, False, "yes"),
    "pod_security": ("baseline", "restricted", "privileged"),
    "run_as_user": (1, 1000, 0, -1, 2**31 - 1, 2**31, "root"),
    "queue": ("gpus", "", "a b", "x" * 64, "../other"),
    "working_directory": ("/root", "/", "/" + "a" * 5_000, "..", "/\u2028", "/proc/1/root"),
    "vcpus": (1, 0.5, 1e9, 0.001, -1, "4"),
    "memory": ("1GiB", "1MiB", "9" * 30 + "GiB", "0GiB", "1Gi"),
    "labels": (
        *({"app": "x"}, {"relaunch/stack": "other"}, {"job-name": "x"}, {"aliyun.com/gpu-count": "8"}, {"a/b/c": "d"}),
        *({"pod-security.kubernetes.io/enforce": "privileged"}, {f"k{n}": "v" for n in range(500)}, {"x" * 64: "y"}),
    ),
    "region": ("cn-beijing", "us-east-1", "../x"),
    "gpu_model": ("T4", "P16EN", "a" * 64, "${x}"),
    "gpu_sharing": ("exclusive", "cgpu", "core_mem", "share", "mps", "none"),
    "gpu_placement": ("binpack", "spread"),
    "compute_class": ("gpu", "gpu-hpn", "performance"),
    "gpu_driver": ("535.161.08", "1.5.0", "newest"),
    "strict": (True, False),
    "card_memory": ("96GiB", "1MiB"),
    "shared_memory": ("8GiB", "1MiB", "-1GiB", "9" * 30 + "GiB"),
    "disk": ("100GiB", "30GiB", "0GiB"),
    "secrets": ({"HF_TOKEN": {"secret": "hf", "key": "token"}}, {"RELAUNCH_JOB_ID": {"secret": "a", "key": "b"}}),
    "volumes": ([{"claim": "data", "path": "/data"}], [{"claim": "../x", "path": "/"}], [_HOST]),
    "node_selector": ({"pool": "gpu"}, {"ack.node.gpu.schedule": "share"}, {"a b": "c"}),
    "tolerations": ([{"key": "gpu"}], [{"effect": "NoSchedule"}], [{}], [{"operator": "Exists"}]),
    "image_pull_secrets": (["registry"], ["../x"]),
    "priority_class": ("high", "system-node-critical", "High"),
    "annotations": ({"a": "b"}, {"relaunch/owner": "x/1"}, {"iam.amazonaws.com/role": "admin"}),
    "pod": tuple({"spec": each} for each in (*_FREE_SPECS, *_FREE_SPECS, *_FOREIGN_SPECS)),
}
_GPUS: tuple[Any, ...] = (
    *({}, {"count": 2}, {"count": 64}, {"memory": "2GiB"}, {"memory": "2GiB", "compute_percent": 30}, {"count": 0}),
    *({"memory": "1GiB", "compute_percent": 7}, {"count": 2, "memory": "1GiB"}),
)
_POD_KEYS = frozenset(
    {
        *("restartPolicy", "terminationGracePeriodSeconds", "automountServiceAccountToken", "securityContext"),
        *("containers", "serviceAccountName", "nodeSelector", "volumes", "tolerations", "imagePullSecrets"),
        *("priorityClassName", "initContainers", "runtimeClassName"),
    }
)
_CONTAINER_KEYS = frozenset(
    {
        *("name", "image", "command", "workingDir", "env", "envFrom", "securityContext", "resources", "volumeMounts"),
    }
)


def pod_definitions(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Read drawn definitions: each is refused with its problems, by the stack, or makes a pod that escapes nowhere."""
    for image in _FOREIGN_IMAGES:
        yield attempt(f"the image {image}", partial(_refuse, {"image": image}))
    for account in _FOREIGN_ACCOUNTS:
        yield attempt(f"the account {account}", partial(_refuse, {"image": f"{TEAM}x", "service_account": account}))
    for key, value in _FOREIGN_KEYS.items():
        yield attempt(f"the key {key}", partial(_refuse, {"image": f"{TEAM}x", key: value}))
    for spec in _foreign_specs():
        pod = {"image": f"{TEAM}x", "pod": {"spec": spec}}
        yield attempt(f"the fragment {json.dumps(spec)}", partial(_refuse, pod))
    for number in range(count):
        job = _draw(dice)
        yield attempt(f"{number}: {json.dumps(job)[:400]}", partial(read, json.dumps({"jobs": {"train": job}})))


def _foreign_specs() -> Iterator[Mapping[str, Any]]:
    yield from _FOREIGN_SPECS
    for fields in _FOREIGN_FIELDS:
        yield {"containers": [{"name": "main", **fields}]}
        yield {"initContainers": [{**_SYNC, **fields}]}


def read(text: str) -> str | None:
    """Read a definition file and write the manifests of its jobs; return what must not happen."""
    try:
        definitions = parse_definitions(text, "relaunch.yaml", load_catalogue())
    except DefinitionFileError as error:
        return None if error.problems else "was refused without a reason"
    return next(filter(None, map(_launch, definitions)), None)


def _refuse(workload: Mapping[str, Any]) -> str | None:
    job = {"target": "ack", "kubernetes": workload, "accelerator": {"gpu": {}}}
    try:
        (definition,) = parse_definitions(json.dumps({"jobs": {"train": job}}), "relaunch.yaml", load_catalogue())
    except DefinitionFileError:
        return None
    return None if grant_problems.find_grant_problems(definition, GRANTS) else "is allowed"


def _draw(dice: random.Random) -> Any:
    keys = dice.sample(sorted(_VALUES), dice.randint(0, 6))
    workload = {"image": f"{TEAM}x:1", **{key: dice.choice(_VALUES[key]) for key in keys}}
    if dice.random() < 0.1:
        workload |= dict([dice.choice(sorted(_FOREIGN_KEYS.items(), key=str))])
    job = {
        "target": dice.choice(("ack", "acs")),
        "kubernetes": workload,
        "command": ["train"],
        "environment": {"A": "b"},
        "accelerator": {"gpu": dice.choice(_GPUS)},
        "purchase": dice.choice(("on-demand", "spot", "spot-then-on-demand")),
    }
    return mutate(job, dice) if dice.random() < 0.3 else job


def _launch(definition: JobDefinition) -> str | None:
    """Write the manifest of a definition that the stack allows; return what is wrong with it."""
    if definition.kubernetes is None or not definition.target.capabilities.runs_pods:
        return None
    if grant_problems.find_grant_problems(definition, GRANTS):
        return None
    manifest = preview_job(definition, STACK)
    if check_limits(manifest):
        return None
    template = manifest["spec"]["template"]
    return _find_escape(definition, template["spec"]) or _find_refusal(definition, manifest)


def _find_escape(definition: JobDefinition, pod: Mapping[str, Any]) -> str | None:
    """Return what a pod has that it must not have."""
    (container,) = pod["containers"]
    workload = definition.kubernetes
    asks_for_token = workload is not None and bool(workload.service_account) and workload.service_account_token
    if unknown := (pod.keys() - _POD_KEYS) | (container.keys() - _CONTAINER_KEYS):
        return f"the pod has {sorted(unknown)}"
    for image in (each["image"] for each in (container, *pod.get("initContainers", ()))):
        if not str(image).lower().startswith(TEAM) or ".." in image:
            return f"runs the image {image}"
    if pod.get("serviceAccountName", ACCOUNT) != ACCOUNT:
        return f"has the account {pod['serviceAccountName']}"
    if pod["automountServiceAccountToken"] and not asks_for_token:
        return "has a token that nobody asked for"
    level = workload.pod_security.value if workload is not None else ""
    violations = [*find_violations(pod, "baseline"), *find_violations(pod, level)]
    gains = container["securityContext"]["allowPrivilegeEscalation"] is not False
    return "; ".join(violations) or ("may gain privileges" if gains else None)


def _find_refusal(definition: JobDefinition, manifest: Mapping[str, Any]) -> str | None:
    """Return why an API server refuses a Job, or whose it would be taken for."""
    labels = manifest["spec"]["template"]["metadata"]["labels"]
    if (labels["relaunch/stack"], labels["relaunch/job"]) != (STACK, definition.name):
        return f"has the labels {labels}"
    try:
        _, warnings = admit_job(manifest, 36, is_strict=True)
    except ApiError as error:
        return f"is refused by the server: {error.message}"
    return f"is not understood: {warnings}" if warnings else None
