"""Reads all that the page of one job shows, and what has changed since the last look."""

import os
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.training import TrainingProgress, measure_training
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.start_stages import Start
from relaunch.core.lifecycle.wait_explanation import Explanation
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import JobHistory
from relaunch_cli import exit_codes
from relaunch_cli.aws.connected import Connection
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.errors import CommandError, explain_error
from relaunch_cli.job_checkpoints import JobCheckpoints, load_checkpoints
from relaunch_cli.job_links import find_links
from relaunch_cli.job_logs import JobLogs, LogLine
from relaunch_cli.job_machines import MachineReader, load_job_machines
from relaunch_cli.job_starts import load_starts
from relaunch_cli.job_training import load_lines, with_noted
from relaunch_cli.lookup import find_container, load_job
from relaunch_cli.save_advice import advise_job
from relaunch_cli.views.machine_progress import with_progress

LOG_LINES = 1_000
"""How many of the newest lines of a log are kept."""
_FIRST_LINES = 200
_MACHINE_SECONDS = 5.0
# Each machine that a job asked for costs a read or more, once.
_MOST_STARTS = 100
_LONG = 3_600.0
_CHECKPOINT_SECONDS = 20.0
_LINE_SECONDS = 5.0
_LOG_SECONDS = 2.0
_MOST_LOGS = 20


@dataclass(frozen=True)
class JobView:
    """What the page of a job shows."""

    history: JobHistory
    explanation: Explanation
    training: TrainingProgress
    saved: JobCheckpoints
    starts: Sequence[Start]
    machines: Sequence[Machine]
    console_links: Mapping[str, str]
    now: datetime

    @property
    def job(self) -> Job:
        """Return the job."""
        return self.history.job


class JobReader:
    """Reads jobs: the record at each look, the rest only if that has changed, or after seconds where it may have."""

    def __init__(self, connection: Connection, kept: Kept) -> None:
        self._connection = connection
        self._kept = kept
        self._machines = _KeptMachines(connection.deps.machines, kept)
        self._logs: dict[str, _Log] = {}
        self._lock = threading.Lock()

    def load(self, given: str) -> JobView:
        """Return what is to be shown of a job, given its ID or the beginning of it.

        Raises:
            CommandError: there is no such job, or there are several.
        """
        deps = self._connection.deps
        job = load_job(deps, given)
        # A running job has a new version every few minutes: of each only the newest is kept.
        kept = partial(self._kept.get, version=job.version)
        history = kept(("history", job.job_id), _LONG, lambda: deps.jobs.load_history(job.job_id))
        if history is None:
            raise CommandError(f"{job.job_id} is kept no longer", exit_code=exit_codes.NOT_FOUND)
        seconds = _LONG if job.state.is_final else _CHECKPOINT_SECONDS
        saved = kept(("saved", job.job_id), seconds, lambda: load_checkpoints(job, deps.checkpoints))
        lines = kept(("lines", job.job_id), _LINE_SECONDS, partial(load_lines, history, self._connection))
        now = deps.clock.now()
        history = with_noted(history, saved, now)
        machines = load_job_machines(history.job, self._machines)
        explanation = explain(history.job, now)
        explanation = replace(explanation, advice=(*explanation.advice, *advise_job(history)))
        return JobView(
            history,
            with_progress(explanation, history.job, machines, now, deps.limits.machines),
            measure_training(history.job, saved.newest, lines, now),
            saved,
            load_starts(history, self._machines, now, is_full=history.job.machines.requested <= _MOST_STARTS),
            self._machines_of(history),
            kept(("links", job.job_id), _LONG, partial(_console_links, history, self._connection)),
            now,
        )

    def _machines_of(self, history: JobHistory) -> Sequence[Machine]:
        """Return the machines of our own that its attempts were placed on."""
        names = dict.fromkeys(rank.machine_id for each in history.attempts for rank in each.placement.ranks)
        loaded = (self._machines.load_machine(name) for name in names if name)
        return [machine for machine in loaded if machine is not None]

    def log_since(self, given: str, number: int) -> tuple[Sequence[tuple[int, LogLine]], str]:
        """Return the lines of a job's log after the line of this number, each with its number, and why there are none.

        Raises:
            CommandError: there is no such job.
        """
        # The reader of a log loads the tasks of the job each time, and needs no more of it.
        job_id = given if given in self._logs else load_job(self._connection.deps, given).job_id
        with self._lock:
            log = self._logs.pop(job_id, None) or _Log(self._connection, job_id)
            self._logs[job_id] = log
            while len(self._logs) > _MOST_LOGS:
                self._logs.pop(next(iter(self._logs)))
        problem = self._kept.get(("log", job_id), _LOG_SECONDS, log.read)
        return log.since(number), problem


def _console_links(history: JobHistory, connection: Connection) -> Mapping[str, str]:
    """Return the links of the newest attempt in the AWS console, which knows nothing of a local world."""
    if any(name.startswith("AWS_ENDPOINT_URL") for name in os.environ):
        return {}
    try:
        return find_links(history, history.attempts[-1] if history.attempts else None, connection)[0]
    except Exception as error:
        if explain_error(error) is None:
            raise
        # There is no task, it is on a cluster, or the caller may not read where it logs.
        return {}


class _Log:
    """The newest lines of the log of a job, read on from where it was read last."""

    def __init__(self, connection: Connection, job_id: str) -> None:
        self._connection = connection
        self._job_id = job_id
        self._reader: JobLogs | None = None
        self._lines: deque[tuple[int, LogLine]] = deque(maxlen=LOG_LINES)
        self._count = 0

    def read(self) -> str:
        """Read what is new; return why that is not possible, or not all is there; empty if it is."""
        try:
            now = self._connection.now()
            runs = self._connection.jobs.load_runs(self._job_id)
            if runs is None:
                return ""
            if self._reader is None:
                runs_pods = runs.job.definition.target.capabilities.runs_pods
                source = self._connection.pod_logs if runs_pods else self._connection.logs
                reader = JobLogs(source, find_container(None, runs))
                self._add(reader.tail(runs, _FIRST_LINES, now))
                # Not before: `read` of one that has no tail begins with the first line of the log.
                self._reader = reader
            else:
                self._add(self._reader.read(runs, now))
            return "; ".join(self._reader.notes(now, is_followed=True))
        except Exception as error:
            explained = explain_error(error)
            if explained is None:
                raise
            return f"{explained.message}{': ' if explained.hint else ''}{explained.hint}"

    def _add(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self._count += 1
            self._lines.append((self._count, line))

    def since(self, number: int) -> Sequence[tuple[int, LogLine]]:
        """Return the lines after the line of this number; all of them after one that another log has given out."""
        after = number if number <= self._count else 0
        return [each for each in list(self._lines) if each[0] > after]


class _KeptMachines:
    """Machines that are read again after seconds, and not at all once they are gone."""

    def __init__(self, store: MachineReader, kept: Kept) -> None:
        self._store = store
        self._kept = kept
        self._gone: dict[str, Machine] = {}

    def load_machine(self, machine_id: str) -> Machine | None:
        """Load a machine."""
        if machine_id in self._gone:
            return self._gone[machine_id]
        load = self._store.load_machine
        machine = self._kept.get(("machine", machine_id), _MACHINE_SECONDS, lambda: load(machine_id))
        if machine is not None and machine.state is MachineState.GONE:
            self._gone[machine_id] = machine
        return machine
