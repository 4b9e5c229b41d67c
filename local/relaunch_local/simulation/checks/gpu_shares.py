"""Checks that tasks get the shares of GPUs that their definitions require.

That no GPU has more shares than memory is ECS's own: the simulated one places no task where there is no room.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.delayed_ecs import TASK_STATE_CHANGE
from relaunch_local.simulation.checks.record import Check


@dataclass(frozen=True, slots=True)
class GpuShares:
    """Looks at each task that runs."""

    _check: Check
    _hosts: Callable[[], Iterable[Instance]]
    _jobs: Mapping[str, Job]

    def observe(self, event: Event) -> None:
        """Check a task that runs."""
        detail = event["detail"]
        if event["detail-type"] != TASK_STATE_CHANGE or detail.get("lastStatus") != "RUNNING":
            return
        job = self._jobs.get(str(detail.get("startedBy")).rpartition("/")[0])
        gpu = job.definition.accelerator.gpu if job is not None else None
        if job is None or gpu is None or not gpu.is_share:
            return
        task_id = str(detail["taskArn"]).rpartition("/")[2]
        host = next((each for each in self._hosts() if each.arn == detail["containerInstanceArn"]), None)
        if host is not None:
            self._check_share(job, host, task_id, gpu.memory_mib or 0)

    def _check_share(self, job: Job, host: Instance, task_id: str, memory_mib: int) -> None:
        found = [sum(tasks[name]) for tasks in host.gpu_shares.values() for name in tasks if task_id in name]
        message = f"{job.job_id}: {found} MiB, not {memory_mib}"
        self._check("a task gets the share of a GPU that it requires", found == [memory_mib], message)
