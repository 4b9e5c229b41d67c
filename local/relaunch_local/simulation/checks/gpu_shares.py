"""Checks that tasks get the shares of GPUs that their definitions require, and that no GPU has more than its memory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.aws.delayed_ecs import TASK_STATE_CHANGE
from relaunch_local.simulation.checks.record import Check


@dataclass(frozen=True, slots=True)
class GpuShares:
    """Looks at an instance whenever a task on it runs."""

    _check: Check
    _hosts: Callable[[], Iterable[Instance]]
    _jobs: Mapping[str, Job]

    def observe(self, event: Event) -> None:
        """Check the instance of a task that runs."""
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
            self._check_host(host)
            self._check_share(job, host, task_id, gpu.memory_mib or 0)

    def _check_host(self, host: Instance) -> None:
        for gpu_id, tasks in host.gpu_shares.items():
            taken = sum(sum(each) for each in tasks.values())
            message = f"{gpu_id} of {host.instance_id}: {taken} MiB of {len(tasks)} tasks"
            self._check("no GPU has more shares than memory", taken <= host.shape.registered_gpu_memory_mib, message)
            is_whole = gpu_id in host.free_gpu_ids
            self._check("a GPU with shares is no task's own", not is_whole, message)

    def _check_share(self, job: Job, host: Instance, task_id: str, memory_mib: int) -> None:
        found = [sum(tasks[name]) for tasks in host.gpu_shares.values() for name in tasks if task_id in name]
        message = f"{job.job_id}: {found} MiB, not {memory_mib}"
        self._check("a task gets the share of a GPU that it requires", found == [memory_mib], message)
