"""Which of the containers of a task is the job's."""

from collections.abc import Sequence


def main_of(named: str | None, containers: Sequence[str]) -> str | None:
    """Return the container that is named, or the only one; None if it is ambiguous."""
    if named is not None:
        return named
    return containers[0] if len(containers) == 1 else None
