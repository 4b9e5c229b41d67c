"""The events of each job that EventBridge took, as somebody reads them who was sent all of them, in their order."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

Detail = Mapping[str, Any]
"""The `detail` of an event."""

_RAN = ("RUNNING", "STOPPING")
_FINISHED = ("SUCCEEDED", "CANCELLED")
_FAILED = ("FAILED", "TIMED_OUT")


def kind_of(detail: Detail) -> str:
    """Return which notice an event is worth (docs/notices.md, "What is sent"), empty if none."""
    state = detail["state"]
    if "state" not in detail["changed"]:
        return ""
    if state in _FINISHED:
        return "finished"
    if state in _FAILED:
        return "failed"
    if state == "RUNNING":
        return "started"
    return "interrupted" if _has_ceased(detail) else ""


def begins_wait(detail: Detail) -> bool:
    """Return whether the job does not run from this event on."""
    is_new = "state_before" not in detail and detail["state"] not in (*_FINISHED, *_FAILED)
    return "state" in detail["changed"] and (is_new or _has_ceased(detail))


def ends_wait(detail: Detail) -> bool:
    """Return whether the job runs, or is over."""
    return detail["state"] in (*_RAN, *_FINISHED, *_FAILED)


def is_end(detail: Detail) -> bool:
    """Return whether the job is over."""
    return detail["state"] in (*_FINISHED, *_FAILED)


def time_of(detail: Detail) -> datetime:
    """Return when the job changed."""
    return datetime.fromisoformat(detail["time"])


def minute_of(detail: Detail) -> str:
    """Return the same as people read it."""
    return f"{time_of(detail):%Y-%m-%d %H:%M}"


def attempt_of(detail: Detail) -> int:
    """Return the number of the attempt that the job is at, 0 before the first."""
    return int(detail.get("attempt", 0))


def _has_ceased(detail: Detail) -> bool:
    return detail.get("state_before") in _RAN and detail["state"] in ("WAITING", "LAUNCHING")
