"""Decides whether a dispatch may start jobs: the same body does so a few times per hour only.

A dispatch may be repeated on purpose, and its body has neither an ID nor a time. Its delivery ID is not signed, so
that whoever has seen one signed body could send it again and again under invented delivery IDs.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.records import dataclass

MAX_STARTS_PER_HOUR = 4
"""How many dispatches with the same body start jobs within PERIOD: enough for one every quarter of an hour."""
PERIOD = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DispatchStarts:
    """The dispatches with one body that started jobs: when, by the identity of the event.

    `version` is that of the stored item, 0 if there is none.
    """

    body_sha256: str
    started_at: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class TooManyStarts:
    """The dispatch starts nothing; `reason` says why, and what to do."""

    reason: str


def admit_dispatch(starts: DispatchStarts, identity: str, now: datetime) -> DispatchStarts | TooManyStarts:
    """Return the starts with this dispatch among them, unchanged if it is there already."""
    recent = {each: at for each, at in starts.started_at.items() if at > now - PERIOD}
    if identity in recent:
        return starts
    if len(recent) >= MAX_STARTS_PER_HOUR:
        again_at = min(recent.values()) + PERIOD
        return TooManyStarts(
            f"{MAX_STARTS_PER_HOUR} dispatches with exactly this content started jobs in the last hour, which is the "
            f"most: send it again after {again_at:%H:%M:%S} UTC, or with another input; if nobody sent it, somebody "
            "knows the webhook's secret or a signed delivery: docs/webhook-secrets.md"
        )
    return replace(starts, started_at={**recent, identity: now})
