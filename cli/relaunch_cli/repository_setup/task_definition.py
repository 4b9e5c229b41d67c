"""The task definition of a training, in the form of RegisterTaskDefinition (Amazon ECS API Reference)."""

from collections.abc import Mapping
from typing import Any

from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_cli.repository_setup.training_stack import TrainingStack

MAIN = "main"
DATA_FOLDER = "/data"
"""Where a training that mounts buckets finds the objects of the data bucket."""
_VCPU = 1024
_GIB = 1024
# Names of things in lists that ECS may return in another order.
_KEYS = ("name", "containerPath", "type")
# What DescribeTaskDefinition tells of a revision beside what was registered; tags it tells beside it.
_OF_THE_REVISION = frozenset(
    (
        *("compatibilities", "deregisteredAt", "registeredAt", "registeredBy", "requiresAttributes", "revision"),
        *("status", "tags", "taskDefinitionArn"),
    )
)
_DEFAULTS = {"essential": True, "networkMode": "bridge", "protocol": "tcp"}


def task_definition(training: Training, family: str, stack: TrainingStack) -> Mapping[str, Any]:
    """Return the task definition of a training.

    The launch adds what only it knows: GPUs or a share of one and what they need of the driver, Neuron devices, and the
    image by its digest (docs/derived-revisions.md).
    """
    container: dict[str, Any] = {
        "name": MAIN,
        # An image that starts a job takes its place; uploads, callers and people start jobs with the newest.
        "image": f"{stack.repository_uri}:{training.newest_tag}",
        "essential": True,
        "command": list(training.command),
        "cpu": training.vcpus * _VCPU,
        "memory": training.memory_gib * _GIB,
        "stopTimeout": training.stop_timeout_seconds,
        "environment": [{"name": "AWS_DEFAULT_REGION", "value": stack.region}, *_neuron_cache(training, stack)],
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": stack.log_group,
                "awslogs-region": stack.region,
                "awslogs-stream-prefix": training.name,
                # A training never waits for CloudWatch: lines beyond the buffer are lost. The mode is ECS's default
                # since June 2025 ("Default log driver mode", Amazon ECS Developer Guide).
                "mode": "non-blocking",
                "max-buffer-size": "25m",
            },
        },
    }
    if training.kind is AcceleratorKind.GPU:
        container["resourceRequirements"] = [{"type": "GPU", "value": str(training.count)}]
    # Docker's 64 MiB are too little for the worker processes of PyTorch's data loaders, which hand over tensors in it.
    container["linuxParameters"] = {"sharedMemorySize": training.memory_gib * _GIB // 2}
    if training.is_mounting:
        container["linuxParameters"] |= {
            "devices": [
                {
                    "hostPath": "/dev/fuse",
                    "containerPath": "/dev/fuse",
                    "permissions": ["read", "write", "mknod"],
                }
            ],
            "capabilities": {"add": ["SYS_ADMIN"]},
        }
        container["entryPoint"] = _mounting(stack)
    return {
        "family": family,
        "requiresCompatibilities": ["EC2"],
        "networkMode": "bridge",
        "taskRoleArn": stack.task_role_arn,
        "executionRoleArn": stack.execution_role_arn,
        "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
        "containerDefinitions": [container],
    }


def _neuron_cache(training: Training, stack: TrainingStack) -> list[dict[str, str]]:
    """Return variables that let attempts share what Neuron's compiler made ("Neuron Persistent Cache")."""
    if training.kind is not AcceleratorKind.NEURON:
        return []
    return [
        # Below the checkpoints, where the role of the training may write. No job's ID is neuron-cache.
        {
            "name": "NEURON_COMPILE_CACHE_URL",
            "value": f"s3://{stack.checkpoint_bucket}/{training.name}/neuron-cache/",
        },
        # A compilation that an interruption ends is remembered as failed, and skipped by the next attempt otherwise.
        # One that is killed leaves a lock, which no variable removes: examples/relaunch_neuron.py does.
        {"name": "NEURON_CC_FLAGS", "value": "--retry_failed_compilation"},
    ]


def _mounting(stack: TrainingStack) -> list[str]:
    """Return an entry point that mounts the data bucket and becomes the command, which gets SIGTERM then."""
    # Without --region Mountpoint looks for the bucket's in us-east-1, where a subnet without internet does not lead.
    mount = f"mount-s3 --read-only --region {stack.region} {stack.data_bucket} {DATA_FOLDER}"
    return ["sh", "-c", f'mkdir -p {DATA_FOLDER} && {mount} && exec "$@"', "sh"]


def is_registered(wanted: Any, found: Any) -> bool:
    """Return whether what is registered is what is wanted; ECS adds defaults, and may order lists otherwise."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return False
        more = {name for name in found if name not in wanted and not _is_default(name, found[name])}
        return not more - _OF_THE_REVISION and all(
            name in found and is_registered(value, found[name])
            for name, value in wanted.items()
            if name not in _OF_THE_REVISION
        )
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(wanted) != len(found):
            return False
        return all(is_registered(*pair) for pair in zip(_ordered(wanted), _ordered(found), strict=True))
    return bool(wanted == found)


def _is_default(name: str, value: Any) -> bool:
    return not value or _DEFAULTS.get(name) == value


def _ordered(items: list[Any]) -> list[Any]:
    key = next((key for key in _KEYS if all(isinstance(each, Mapping) and key in each for each in items)), None)
    return sorted(items, key=lambda each: str(each[key])) if key else items
