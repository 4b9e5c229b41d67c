"""What started a job."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """What started the job, as a summary and as environment variables of the training.

    `caller` is who asked for it directly (core.jobs.callers); empty if an event started it, or an earlier version.
    `short` is the summary in a few words, empty in jobs of an earlier version.
    """

    source: str
    identity: str
    summary: str
    environment: Mapping[str, str] = field(default_factory=dict)
    caller: str = ""
    short: str = ""
