"""Jobs for the tests of a real control plane."""

from typing import Any

Document = dict[str, Any]


def make_job(name: str = "cuda-sample", *, limits: Document | None = None, **spec: Any) -> Document:
    """Build the Job of ACK's document on shared GPUs, with other limits or members of its spec; `pod` is of its pod."""
    asked = {"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30} if limits is None else limits
    container = {"name": "main", "image": "registry.example/train:1", "command": ["bash", "run.sh"]}
    pod = {"containers": [container | {"resources": {"limits": asked}}], "restartPolicy": "Never"} | spec.pop("pod", {})
    template = {"metadata": {"labels": {"app": "cuda-sample"}}, "spec": pod}
    metadata = {"name": name, "labels": {"app": "cuda-sample"}} | spec.pop("metadata", {})
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template} | spec}


def with_container(job: Document, **members: Any) -> Document:
    """Return a Job whose container has other members."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container |= members
    return job
