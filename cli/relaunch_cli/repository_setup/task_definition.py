"""The task definition of a training, in the form of RegisterTaskDefinition (Amazon ECS API Reference)."""

from collections.abc import Mapping, Sequence
from typing import Any

from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from relaunch_cli.repository_setup.training_stack import TrainingStack

MAIN = "main"
_VCPU = 1024
_GIB = 1024
# Jobs run the image that started them: the tag only has to be one. No image has it, so that nothing runs by mistake.
_TAG = "of-the-commit"
# Names of things in lists that ECS may return in another order.
_KEYS = ("name", "containerPath", "type")


def task_definition(training: Training, family: str, stack: TrainingStack) -> Mapping[str, Any]:
    """Return the task definition of a training.

    The launch adds what only it knows: GPUs or a share of one, Neuron devices, and the image by its digest
    (docs/derived-revisions.md).
    """
    container: dict[str, Any] = {
        "name": MAIN,
        "image": f"{stack.repository_uri}:{_TAG}",
        "essential": True,
        "command": list(training.command),
        "cpu": training.vcpus * _VCPU,
        "memory": training.memory_gib * _GIB,
        "stopTimeout": training.stop_timeout_seconds,
        "environment": [{"name": "AWS_DEFAULT_REGION", "value": stack.region}, *_environment(training)],
        "logConfiguration": {
            "logDriver": "awslogs",
            "options": {
                "awslogs-group": stack.log_group,
                "awslogs-region": stack.region,
                "awslogs-stream-prefix": training.name,
            },
        },
    }
    if training.kind is AcceleratorKind.GPU:
        container["resourceRequirements"] = [{"type": "GPU", "value": str(training.count)}]
    if training.is_mounting:
        container["linuxParameters"] = {
            "devices": [
                {
                    "hostPath": "/dev/fuse",
                    "containerPath": "/dev/fuse",
                    "permissions": ["read", "write", "mknod"],
                }
            ],
            "capabilities": {"add": ["SYS_ADMIN"]},
        }
    return {
        "family": family,
        "requiresCompatibilities": ["EC2"],
        "networkMode": "bridge",
        "taskRoleArn": stack.task_role_arn,
        "executionRoleArn": stack.execution_role_arn,
        "runtimePlatform": {"cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX"},
        "containerDefinitions": [container],
    }


def _environment(training: Training) -> Sequence[Mapping[str, str]]:
    if training.kind is AcceleratorKind.NEURON:
        return ()
    # Without it the container gets CUDA's libraries only if its image asks for them.
    return ({"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},)


def is_registered(wanted: Any, found: Any) -> bool:
    """Return whether what is registered has all that is wanted; ECS adds defaults, and may order lists otherwise."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and is_registered(value, found[name]) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(wanted) != len(found):
            return False
        return all(is_registered(*pair) for pair in zip(_ordered(wanted), _ordered(found), strict=True))
    return bool(wanted == found)


def _ordered(items: list[Any]) -> list[Any]:
    key = next((key for key in _KEYS if all(isinstance(each, Mapping) and key in each for each in items)), None)
    return sorted(items, key=lambda each: str(each[key])) if key else items
