"""What started a job, and where it resumes from if it retries another one."""

from collections.abc import Mapping
from dataclasses import field

from relaunch.core.records import dataclass

CHAIN_DEPTH = "RELAUNCH_CHAIN_DEPTH"
"""The variable that says how many jobs came before this one, each started by an event of the one before it."""


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """What started the job, as a summary and as environment variables of the training.

    `caller` is who asked for it directly (core.jobs.job); empty if an event started it, or an earlier version.
    `short` is the summary in a few words, empty in jobs of an earlier version.
    """

    source: str
    identity: str
    summary: str
    environment: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    short: str = ""


@dataclass(frozen=True, slots=True)
class ResumePoint:
    """The checkpoints of another job, from which a job resumes while it has left none of its own.

    `checkpoint_uri` is where that job left them, as in its definition. `step` and `attempt` leave out all others, of
    other steps or written by other attempts.
    """

    job_id: str
    checkpoint_uri: str
    step: int | None = None
    attempt: int | None = None

    @property
    def is_chosen(self) -> bool:
        """Return whether certain checkpoints were asked for: a job does not start without one of them."""
        return self.step is not None or self.attempt is not None

    def __str__(self) -> str:
        """Return what is looked for: `checkpoint of step 300 of attempt 2 below s3://…`."""
        step = "" if self.step is None else f" of step {self.step}"
        attempt = "" if self.attempt is None else f" of attempt {self.attempt}"
        return f"checkpoint{step}{attempt} below {self.checkpoint_uri}{self.job_id}/"
