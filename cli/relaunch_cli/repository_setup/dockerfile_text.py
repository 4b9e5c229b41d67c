"""The Dockerfile of a training that has none, on a Deep Learning Container of AWS or on Python alone."""

import json
import re

from relaunch_cli.repository_setup.training import AcceleratorKind, BaseImage, Training

# Of ECR's public gallery, which needs no account: github.com/aws/deep-learning-containers and
# github.com/aws-neuron/deep-learning-containers list them.
GPU_CONTAINER = "public.ecr.aws/deep-learning-containers/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
# Newer SDKs do not train by PyTorch/XLA, which torch-neuronx is: support ends with 2.30, pytorch-training-neuronx with
# 2.31 (July 2026). The containers after it have TorchNeuron, for which a training is written in another way ("Neuron
# no longer supports PyTorch/XLA for training starting with Neuron 2.30", AWS Neuron documentation).
NEURON_CONTAINER = "public.ecr.aws/neuron/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.27.1-ubuntu24.04"
PYTHON = "public.ecr.aws/docker/library/python:3.12-slim"

# "Installing Mountpoint for Amazon S3", awslabs/mountpoint-s3; the list of packages is read first, for libfuse2.
MOUNTPOINT_LINES = (
    "# Mountpoint for Amazon S3: the entry point in task-definition.json mounts the data bucket by it.",
    "ADD https://s3.amazonaws.com/mountpoint-s3-release/latest/x86_64/mount-s3.deb /tmp/",
    "RUN apt-get update && apt-get install --yes /tmp/mount-s3.deb && rm -rf /tmp/mount-s3.deb /var/lib/apt/lists/*",
)

# What git keeps to itself may have credentials.
IGNORED = ".git\n"


def dockerfile_text(training: Training) -> str:
    """Return the Dockerfile of a training."""
    lines = [
        f"FROM {_base(training)}",
        *(MOUNTPOINT_LINES if training.is_mounting else ()),
        "WORKDIR /opt/trainer",
        "COPY . .",
        "RUN if [ -f requirements.txt ]; then pip install --no-cache-dir --requirement requirements.txt; fi",
        "# No shell between ECS and the training: it would keep SIGTERM, which says save now, to itself.",
        "ENTRYPOINT []",
        f"CMD {json.dumps(list(training.command))}",
    ]
    return "\n".join(lines) + "\n"


def is_large(dockerfile: str) -> bool:
    """Return whether an image begins with a Deep Learning Container."""
    return any(name in dockerfile for name in ("/pytorch-training:", "/pytorch-training-neuronx:"))


def missing_lines(dockerfile: str | None, task_definition: str) -> tuple[str, ...]:
    """Return what a Dockerfile lacks to mount the buckets of a container; without one it is taken to lack that."""
    is_missing = "mount-s3 " in task_definition and "mount-s3" not in (dockerfile or "")
    return MOUNTPOINT_LINES if is_missing else ()


def _base(training: Training) -> str:
    if training.base_image is BaseImage.PYTHON:
        return PYTHON
    return NEURON_CONTAINER if training.kind is AcceleratorKind.NEURON else GPU_CONTAINER


def read_program(dockerfile: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ENTRYPOINT and CMD of a Dockerfile's last stage; one that is written as text is run by a shell.

    Of all its lines these alone are read ("Shell and exec form", Dockerfile reference).
    """
    found: dict[str, tuple[str, ...]] = {}
    kept = (line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(kept)).splitlines():
        instruction, _, rest = line.strip().partition(" ")
        if instruction.upper() == "FROM":
            found = {}
        elif instruction.upper() in {"ENTRYPOINT", "CMD"}:
            found[instruction.upper()] = _program(rest.strip())
    return found.get("ENTRYPOINT", ()), found.get("CMD", ())


def _program(text: str) -> tuple[str, ...]:
    try:
        parts = json.loads(text)
    except ValueError:
        parts = None
    is_exec_form = isinstance(parts, list) and all(isinstance(each, str) for each in parts)
    return tuple(parts) if is_exec_form else ("/bin/sh", "-c", text)
