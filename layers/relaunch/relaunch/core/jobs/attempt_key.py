"""The key of an attempt, from which a target knows whose task it has."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class AttemptKey:
    """A job and the number of one of its attempts; an attempt may have several tasks, one per placement."""

    job_id: str
    attempt_number: int

    def __str__(self) -> str:
        """Return `<job>/<attempt>`."""
        return f"{self.job_id}/{self.attempt_number}"
