"""How far a training is, for `show` and `explain`: by its newest checkpoint and the newest lines of its log."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from relaunch.core.jobs.reported_lines import read_lines
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.training import note_progress
from relaunch_cli.errors import explain_error
from relaunch_cli.job_logs import JobLogs
from relaunch_cli.lookup import find_container

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.jobs.reported_lines import ReportedStep
    from relaunch.ports import JobHistory
    from relaunch_cli.aws.connected import Connection
    from relaunch_cli.job_checkpoints import JobCheckpoints

_LINES = 100
# Longer than a step of most trainings takes; of a pod the whole log since then is read.
_SINCE = timedelta(minutes=15)


def load_lines(history: "JobHistory", connection: "Connection") -> "Sequence[ReportedStep]":
    """Return what the newest lines of a running task say; nothing where its log is not there, or cannot be read."""
    job = history.job
    if job.state is not JobState.RUNNING or job.attempt is None or job.attempt.task_id is None:
        return ()
    try:
        source = connection.pod_logs if job.definition.target.capabilities.runs_pods else connection.logs
        now = connection.now()
        reader = JobLogs(source, find_container(None, history), job.attempt.number, now - _SINCE)
        lines = reader.tail(history, _LINES, now)
    except Exception as error:
        if explain_error(error) is None:
            raise
        # `relaunch logs` says why.
        return ()
    return read_lines((each.at, each.message) for each in lines if each.attempt_number == job.attempt.number)


def with_noted(history: "JobHistory", saved: "JobCheckpoints", now: datetime) -> "JobHistory":
    """Return the history, whose job knows its newest checkpoint as if reconcile had looked now."""
    job = history.job
    if saved.newest is None or job.state is not JobState.RUNNING:
        return history
    return replace(history, job=replace(job, noted=note_progress(job, saved.newest, now)))
