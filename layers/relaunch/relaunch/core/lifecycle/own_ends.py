"""Tasks that had ended by themselves before Relaunch stopped them.

A target gives the reason of a stop that it is asked for until it hears of the end, which may have been before that: the
agent of the instance was away.
"""

from dataclasses import replace

from relaunch.core.jobs.attempt import StopIntent
from relaunch.core.launches.launch import ReportedCause, StopReport, TaskObservation
from relaunch.core.lifecycle.stop_reason import BY_RELAUNCH, CLOCK_SKEW


def is_stopped_by_relaunch(seen: TaskObservation) -> bool:
    """Return whether Relaunch called for the stop of a task, for another reason than a warning by EC2.

    For a warning it may do so before it can save an intent: nothing tells then which was first.
    """
    causes = seen.report.causes
    is_called = ReportedCause.STOP_CALLED in causes and ReportedCause.INTERRUPTED not in causes
    return is_called and BY_RELAUNCH in seen.report.text


def had_ended(seen: TaskObservation, intent: StopIntent | None) -> bool:
    """Return whether the containers of a task that Relaunch stopped had ended before it meant to."""
    at = seen.containers_ended_at or seen.stopped_at
    return is_stopped_by_relaunch(seen) and intent is not None and at is not None and at + CLOCK_SKEW < intent.at


def as_it_ended(seen: TaskObservation) -> TaskObservation:
    """Return a task that had ended before Relaunch stopped it, without the reason of that stop."""
    causes = seen.report.causes - {ReportedCause.STOP_CALLED} | {ReportedCause.ENDED}
    return replace(seen, report=StopReport("it had ended before it was stopped", causes))
