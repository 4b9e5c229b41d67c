"""A training as `relaunch init` asks for it: its name, its accelerator, and how its image is made and started."""

import re
import shlex
from dataclasses import dataclass
from enum import StrEnum

from relaunch_cli.errors import CommandError

# A spot machine is gone two minutes after its warning; what is left of them is for saving.
DEFAULT_STOP_TIMEOUT_SECONDS = 90
# "Stop timeout" of a container: at most 120 seconds on EC2 without a change of the agent.
_LONGEST_STOP_TIMEOUT_SECONDS = 120
# Of a job definition; a bucket's prefix, a family and a log stream have it too.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,47}")
_UPLOADS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>.*))?")
_DURATION = re.compile(r"(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?")
_MOST_DEVICES = 16


class AcceleratorKind(StrEnum):
    """What a training runs on."""

    GPU = "gpu"
    SHARE = "share"
    NEURON = "neuron"


class BaseImage(StrEnum):
    """What the Dockerfile that is written begins with."""

    DEEP_LEARNING_CONTAINER = "deep-learning-container"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Uploads:
    """The uploads that start jobs too."""

    bucket: str
    prefix: str


@dataclass(frozen=True, slots=True)
class Training:
    """A training.

    `count` is that of its GPUs or Neuron devices, 1 of a share. `gpu_memory_gib` is the least memory of each GPU, or
    that of the share, and `compute_percent` the share's part of a GPU's compute. `vcpus` and `memory_gib` are what its
    container reserves of the machine. `is_mounting`: buckets are mounted by Mountpoint for Amazon S3. `has_webhook`:
    GitHub's webhook tells of pushes, and jobs wait for the image; else the image itself starts them.
    """

    name: str
    kind: AcceleratorKind = AcceleratorKind.GPU
    count: int = 1
    gpu_memory_gib: int = 16
    compute_percent: int = 25
    vcpus: int = 2
    memory_gib: int = 8
    command: tuple[str, ...] = ("python", "train.py")
    stop_timeout_seconds: int = DEFAULT_STOP_TIMEOUT_SECONDS
    is_mounting: bool = False
    base_image: BaseImage = BaseImage.DEEP_LEARNING_CONTAINER
    uploads: Uploads | None = None
    has_webhook: bool = False
    duration: str = "2h"

    @property
    def newest_tag(self) -> str:
        """The tag of its newest image, which moves."""
        return f"{self.name}-latest"

    @property
    def tag_pattern(self) -> str:
        """The tag of the image of a commit; trainings that share a repository have tags of their own."""
        return f"{self.name}-{{sha}}"

    def __post_init__(self) -> None:
        """Check it.

        Raises:
            CommandError: something in it could never be registered.
        """
        problem = self._problem()
        if problem:
            raise CommandError(problem)

    def _problem(self) -> str:
        checks = (
            (
                _NAME.fullmatch(self.name),
                f"{self.name!r} is no name of a job definition: a to z, 0 to 9, -, at most 48",
            ),
            (
                1 <= self.count <= _MOST_DEVICES,
                f"a machine has 1 to {_MOST_DEVICES} GPUs or Neuron devices, not {self.count}",
            ),
            (self.kind is not AcceleratorKind.SHARE or self.count == 1, "a share is of one GPU"),
            (self.gpu_memory_gib >= 1, "the memory of a GPU is at least 1 GiB"),
            (1 <= self.compute_percent <= 100, f"{self.compute_percent} is no share of a GPU: 1 to 100 percent"),
            (self.vcpus >= 1 and self.memory_gib >= 1, "the container needs at least 1 vCPU and 1 GiB"),
            (self.command, "the command is empty: for example `python train.py`"),
            (
                1 <= self.stop_timeout_seconds <= _LONGEST_STOP_TIMEOUT_SECONDS,
                f"ECS takes a stop timeout of 1 to {_LONGEST_STOP_TIMEOUT_SECONDS} seconds",
            ),
            (_DURATION.fullmatch(self.duration), f"{self.duration!r} is no duration: for example 2h or 1d12h"),
        )
        return next((problem for is_right, problem in checks if not is_right), "")


def read_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell does; no shell runs it, which would keep SIGTERM to itself.

    Raises:
        CommandError: a quotation mark is missing.
    """
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise CommandError(f"{text!r} is no command: {error}") from error


def read_uploads(uri: str) -> Uploads:
    """Read `s3://bucket/prefix`.

    Raises:
        CommandError: it is none.
    """
    match = _UPLOADS.fullmatch(uri)
    if match is None:
        raise CommandError(f"{uri!r} names no uploads: for example s3://acme-datasets/images/")
    return Uploads(match["bucket"], match["prefix"] or "")


def name_of(repository: str) -> str:
    """Return the name of a training that is in a repository or folder of this name."""
    name = re.sub(r"[^a-z0-9]+", "-", repository.rpartition("/")[2].lower()).strip("-")
    return (name if name[:1].isalpha() else f"training-{name}".strip("-"))[:48].strip("-")
