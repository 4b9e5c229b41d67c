"""Checks how many machines a job tries that do not start its task."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch_local.simulation.checks.record import Check

_FAILED_STARTS = frozenset(
    {StopKind.NOT_STARTED, StopKind.UNKNOWN_START, StopKind.START_REFUSED, StopKind.STARTS_NOWHERE}
)
# What the design says of starts that fail, written down here once more.
_MACHINES_IN_A_ROW = 3


@dataclass(slots=True)
class FailedStarts:
    """Counts the starts of each job that failed."""

    _check: Check
    machines: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By job: the machine and the error of each start that failed since it last ran or was said to start nowhere."""

    def note(self, job: Job) -> None:
        """Note whether the job runs, or ran; a rank whose peers did not start is no start of the job."""
        attempt = job.current_attempt
        has_run = attempt.started_at is not None
        is_over = attempt.stop is not None and attempt.stop.kind not in _FAILED_STARTS
        if job.state is JobState.RUNNING or (has_run and is_over):
            self.machines.pop(job.job_id, None)

    def check_stop(self, job: Job, task_arn: str, task: Mapping[str, object], stop: Stop) -> None:
        """Check how many machines a job tries that do not start it, by the words of ECS: one, two or three in a row.

        A cluster may put a pod on the same node each time, and has others for it: it is not known here.
        """
        if stop.kind not in _FAILED_STARTS:
            return
        starts = self.machines[job.job_id]
        if stop.kind is not StopKind.START_REFUSED:
            starts.append(str(task.get("containerInstanceArn", task_arn)))
        machines = len(set(starts))
        is_over = job.state.is_final
        message = f"{job.job_id}: {stop.kind} after {machines} machines, and it is {job.state}"
        waiting = job.waiting.reason if job.waiting is not None else None
        if stop.kind is StopKind.STARTS_NOWHERE:
            self._check("a task that starts nowhere ends its job", is_over, message)
        elif not is_over:
            is_held = waiting is WaitReason.REFUSED
            is_paused = waiting is WaitReason.BACKOFF
            is_to_be_held = stop.kind is StopKind.START_REFUSED or machines >= _MACHINES_IN_A_ROW
            self._check("after a start that failed there is a pause", is_held or is_paused, message)
            if not job.definition.target.capabilities.runs_pods:
                self._check("three machines that did not start a job are enough", is_held == is_to_be_held, message)
