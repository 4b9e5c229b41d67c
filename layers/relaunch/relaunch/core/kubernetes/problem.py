"""What is wrong with a job definition for Kubernetes."""

from relaunch.core.records import dataclass

Key = tuple[str | int, ...]

GPU: Key = ("accelerator", "gpu")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a job can never run on its target, and what to change; `key` is the key of the definition concerned."""

    key: Key
    text: str

    def __str__(self) -> str:
        """Return the text alone."""
        return self.text


def of_gpu(key: str, text: str) -> Problem:
    """Return a problem with a key of `accelerator.gpu`."""
    return Problem((*GPU, key), text)


def of_workload(key: str, text: str, *within: str | int) -> Problem:
    """Return a problem with a key of `kubernetes`, or with what is within its value."""
    return Problem(("kubernetes", key, *within), text)
