"""Jobs whose pods have what a definition may give them, volumes, secrets and tolerations among it, right and wrong."""

from collections.abc import Callable
from typing import Any

from control_plane.jobs import Document, make_job, with_container

SHM: Document = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}
SECRET: Document = {"secretKeyRef": {"name": "wandb", "key": "token"}}


def pod(**fields: Any) -> Callable[[], Document]:
    """Return what makes a Job whose pod has these fields, and whose container those of `main`."""
    main = fields.pop("main", {})
    return lambda: with_container(make_job(pod=fields), **main)


def variable(**fields: Any) -> Document:
    return {"env": [{"name": "A", **fields}]}


def mounts(*paths: str, **fields: Any) -> Document:
    return {"volumeMounts": [{"name": "shm", "mountPath": path, **fields} for path in paths]}


def claim(**fields: Any) -> list[Document]:
    return [{"name": "data", "persistentVolumeClaim": fields}]


PODS: dict[str, Callable[[], Document]] = {
    "shared memory": pod(volumes=[SHM], main=mounts("/dev/shm")),  # noqa: S108
    "claim": pod(volumes=claim(claimName="imagenet")),
    "claim without a name": pod(volumes=claim()),
    "volume without a name": pod(volumes=[{"emptyDir": {}}]),
    "volume with a bad name": pod(volumes=[{"name": "A_b", "emptyDir": {}}]),
    "volume twice": pod(volumes=[SHM, SHM]),
    "volume of no type": pod(volumes=[{"name": "x"}]),
    "volume of two types": pod(volumes=[{**SHM, "secret": {"secretName": "a"}}]),
    "negative size": pod(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "-1"}}]),
    "size that is none": pod(volumes=[{"name": "s", "emptyDir": {"sizeLimit": "8 GiB"}}]),
    "mount of no volume": pod(main=mounts("/a")),
    "mount twice": pod(volumes=[SHM], main=mounts("/a", "/a")),
    "mount without a path": pod(volumes=[SHM], main=mounts("")),
    "mount of a folder above": pod(volumes=[SHM], main=mounts("/a", subPath="../b")),
    "read-only folder": pod(volumes=[SHM], main=mounts("/a", subPath="b", readOnly=True)),
    "secret": pod(main=variable(valueFrom=SECRET)),
    "secret and value": pod(main=variable(value="x", valueFrom=SECRET)),
    "reference to nothing": pod(main=variable(valueFrom={})),
    "secret without a key": pod(main=variable(valueFrom={"secretKeyRef": {"name": "x"}})),
    "variable without a name": pod(main={"env": [{"value": "x"}]}),
    "variable with a bad name": pod(main={"env": [{"name": "A=B"}]}),
    "toleration": pod(tolerations=[{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]),
    "toleration of all": pod(tolerations=[{"operator": "Exists"}]),
    "toleration without a key": pod(tolerations=[{"effect": "NoSchedule"}]),
    "toleration with a bad operator": pod(tolerations=[{"key": "a", "operator": "In"}]),
    "toleration of any value and one": pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    "toleration of a bad effect": pod(tolerations=[{"key": "a", "effect": "Never"}]),
    "toleration for a time of what is not ended": pod(tolerations=[{"key": "a", "tolerationSeconds": 5}]),
    "tolerations that are no list": pod(tolerations={}),
    "key that is a number": pod(tolerations=[{"key": 1}]),
    "selector that is no text": pod(nodeSelector={"gpu": True}),
    "selector with a space": pod(nodeSelector={"gpu": "Tesla T4"}),
    "class with a bad name": pod(priorityClassName="High"),
    "class and scheduler": pod(priorityClassName="high", schedulerName="volcano"),
    "pull secrets": pod(imagePullSecrets=[{"name": "registry"}]),
    "init container": pod(initContainers=[{"name": "code", "image": "sync:1"}]),
    "init container without an image": pod(initContainers=[{"name": "code"}]),
    "host network that is text": pod(hostNetwork="yes"),
    "arguments that are text": pod(main={"args": "x"}),
    "disk": pod(main={"resources": {"limits": {"ephemeral-storage": "10Gi"}}}),
    "capability": pod(main={"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}),
    "group": pod(securityContext={"fsGroup": 1000, "supplementalGroups": [1]}),
    "field that is unknown": pod(toleration=[]),
    "field of a container that is unknown": pod(main={"volumeMount": []}),
}
