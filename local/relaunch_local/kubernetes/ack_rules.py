"""ACK's rules of shared GPUs, which a plain API server does not know ("Use cGPU to allocate computing power", ACK).

The documentation says that such a Job "cannot be submitted", and not by what; here an admission policy refuses it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.quantities import parse_quantity

MEMORY = "aliyun.com/gpu-mem"
COMPUTE = "aliyun.com/gpu-core.percentage"
COUNT = "aliyun.com/gpu-count"


def admit_gpu_shares(job: Mapping[str, Any]) -> None:
    """Refuse a Job that asks for what no shared GPU gives.

    Raises:
        ApiError: 422, with the words of the admission policy.
    """
    violation = find_violation(job)
    if violation:
        policy = "ValidatingAdmissionPolicy 'ack-gpu-core' with binding 'ack-gpu-core' denied request"
        name = job["metadata"]["name"]
        raise ApiError(422, "Invalid", f'jobs.batch "{name}" is forbidden: {policy}: {violation}')


def find_violation(job: Mapping[str, Any]) -> str:
    """Return the first rule that a Job violates, empty if there is none."""
    template = job["spec"]["template"]
    is_split = COUNT in ((template.get("metadata") or {}).get("labels") or {})
    problems = [each for c in template["spec"]["containers"] for each in _problems(c, is_split=is_split)]
    return next(iter(problems), "")


def _problems(container: Mapping[str, Any], *, is_split: bool) -> Iterator[str]:
    limits = (container.get("resources") or {}).get("limits") or {}
    if COMPUTE not in limits:
        return
    percent = parse_quantity(limits[COMPUTE])
    if percent is None or not 5 <= percent <= 100 or percent % 5:
        yield f"{COMPUTE} must be a multiple of 5 from 5 to 100"
    if MEMORY not in limits:
        yield "gpu-core.percentage needs gpu-mem"
    if is_split:
        yield "multi-GPU sharing does not support compute allocation"
