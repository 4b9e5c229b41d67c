"""Which receivers a definition names for the notices of its jobs, and what notices there are."""

from enum import StrEnum

from relaunch.core.records import dataclass

RECEIVER_NAME_PATTERN = r"[a-z][a-z0-9-]{0,39}"
"""The name of a receiver: it is the end of the name of a parameter, and is typed by people."""
MAX_RECEIVERS = 10
"""How many receivers a stack has at most: one call of GetParametersByPath answers as many."""


class NoticeKind(StrEnum):
    """What a notice is about."""

    STARTED = "started"
    """The training runs, for the first time or again."""
    INTERRUPTED = "interrupted"
    """It ran, and does no longer; it will be launched again."""
    FINISHED = "finished"
    """It succeeded, or somebody cancelled it."""
    FAILED = "failed"
    """It failed, or ran out of time."""
    WAITS_TOO_LONG = "waits-too-long"
    """It has not run for as long as its receiver allows."""
    BUDGET = "budget"
    """It has cost, or will cost, more than its budget. Nothing sends it yet."""
    STALE_CHECKPOINT = "stale-checkpoint"
    """It runs and has saved nothing newer for longer than that should take."""


DEFAULT_KINDS = (NoticeKind.FINISHED, NoticeKind.FAILED, NoticeKind.WAITS_TOO_LONG, NoticeKind.INTERRUPTED)
"""What a receiver gets that does not say what it wants."""


@dataclass(frozen=True, slots=True)
class NoticeRoute:
    """A receiver that a definition names, and the kinds that it gets of its jobs: its own if there are none."""

    receiver: str
    kinds: tuple[NoticeKind, ...] = ()
