"""A small scripted cluster: it answers RunTask as it is told, and tasks go on when the test says so."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from fakes.builders import NOW, make_container_instance, make_observation, task_arn
from relaunch.core.launches.launch import (
    ContainerInstance,
    ContainerInstanceObservation,
    LaunchConflict,
    LaunchOutcome,
    LaunchRequest,
    LaunchUncertain,
    TaskObservation,
    TaskPlaced,
    check_limits,
)
from relaunch.core.selection.gpu_devices import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources
from relaunch.ports import PermanentError

Item = TypeVar("Item")


class FakeTasks:
    """Implements TaskTarget.

    `launch` answers the next of `outcomes`, and places the task when there is none left. A token that was used before
    is answered with the same task, or with a conflict when the parameters differ, as ECS does. LaunchUncertain in
    `outcomes` means that the answer was lost: with `places_uncertain` the task is there all the same. Lists come in
    pages of `page_size`, counted by `page_count`; `machine_statuses` and `registered_at` say more of machines, by ARN.
    """

    def __init__(self) -> None:
        self.outcomes: deque[LaunchOutcome | Exception] = deque()
        self.places_uncertain = False
        self.requests: list[LaunchRequest] = []
        self.stops: list[tuple[str, str]] = []
        self.stop_failure: Exception | None = None
        self.drained: list[str] = []
        self.drain_failure: Exception | None = None
        self.tasks: dict[str, TaskObservation] = {}
        self.instances: dict[str, ContainerInstance] = {}
        self.gpus: list[GpuDevice] | Exception = []
        self.room: dict[tuple[str, str], list[RemainingResources]] = {}
        self.page_size = 100
        self.page_count = 0
        self.machine_statuses: dict[str, str] = {}
        self.registered_at: dict[str, datetime] = {}
        self._launched: dict[str, tuple[LaunchRequest, str]] = {}

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        violations = check_limits(request)
        if violations:
            raise PermanentError(f"launching {request.started_by}: {'; '.join(violations)}")
        self.requests.append(request)
        outcome = self.outcomes.popleft() if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, LaunchUncertain) and self.places_uncertain:
            self._place(request)
        return outcome if outcome is not None else self._place(request)

    def _place(self, request: LaunchRequest) -> LaunchOutcome:
        if request.client_token in self._launched:
            earlier, arn = self._launched[request.client_token]
            return TaskPlaced(arn) if earlier == request else LaunchConflict((arn,))
        arn = task_arn(len(self._launched) + 1)
        self._launched[request.client_token] = (request, arn)
        self.tasks[arn] = make_observation(task_arn=arn, started_by=request.started_by)
        return TaskPlaced(arn)

    def change(self, arn: str, **fields: Any) -> TaskObservation:
        """Change what ECS says of a task, with the next version; return it as an event would carry it."""
        task = self.tasks[arn]
        self.tasks[arn] = replace(task, **{"version": task.version + 1, **fields})
        return self.tasks[arn]

    def run(self, arn: str, instance: ContainerInstance | None = None, **fields: Any) -> TaskObservation:
        """Let a task run on a machine."""
        machine = instance or make_container_instance()
        self.instances[machine.arn] = machine
        running: dict[str, Any] = {
            "last_status": "RUNNING",
            "container_instance_arn": machine.arn,
            "zone": machine.zone,
            "started_at": NOW,
        }
        return self.change(arn, **{**running, **fields})

    def end(self, arn: str, exit_code: int | None = 0, container: str = "main", **fields: Any) -> TaskObservation:
        """Let a task be STOPPED; without more said, because its container exited."""
        stopped: dict[str, Any] = {
            "last_status": "STOPPED",
            "desired_status": "STOPPED",
            "stop_code": self.tasks[arn].stop_code or "EssentialContainerExited",
            "stopped_reason": self.tasks[arn].stopped_reason or "Essential container in task exited",
            "container_exit_codes": {container: exit_code},
            "stopped_at": NOW,
        }
        return self.change(arn, **{**stopped, **fields})

    def forget(self, arn: str) -> None:
        """Let ECS no longer know a task, as an hour after it stopped."""
        del self.tasks[arn]

    def stop(self, task_arn: str, reason: str) -> None:
        if self.stop_failure:
            failure, self.stop_failure = self.stop_failure, None
            raise failure
        self.stops.append((task_arn, reason))
        task = self.tasks.get(task_arn)
        if task and task.desired_status != "STOPPED":
            self.change(task_arn, desired_status="STOPPED", stop_code="UserInitiated", stopped_reason=reason)

    def describe(self, task_arns: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        return {arn: self.tasks.get(arn) for arn in task_arns}

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        yield from self._pages([task for task in self.tasks.values() if task.desired_status == "RUNNING"])

    def list_machines(self) -> Iterator[Sequence[ContainerInstanceObservation]]:
        yield from self._pages([self._observe(machine) for machine in self.instances.values()])

    def _observe(self, machine: ContainerInstance) -> ContainerInstanceObservation:
        on_it = [each for each in self.tasks.values() if each.container_instance_arn == machine.arn]
        task_count = sum(task.last_status in {"RUNNING", "PENDING"} for task in on_it)
        status = self.machine_statuses.get(machine.arn, "ACTIVE")
        registered_at = self.registered_at.get(machine.arn, NOW)
        return ContainerInstanceObservation(machine, status, task_count=task_count, registered_at=registered_at)

    def _pages(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        for start in range(0, len(items), self.page_size):
            self.page_count += 1
            yield items[start : start + self.page_size]

    def find_started_by(self, started_by: str) -> list[TaskObservation]:
        return [task for task in self.tasks.values() if task.started_by == started_by]

    def find_on_instance(self, instance_id: str) -> list[TaskObservation]:
        arns = {machine.arn for machine in self.instances.values() if machine.instance_id == instance_id}
        on_machine = [task for task in self.tasks.values() if task.container_instance_arn in arns]
        return [task for task in on_machine if task.last_status != "STOPPED"]

    def drain(self, instance_id: str) -> None:
        if self.drain_failure:
            failure, self.drain_failure = self.drain_failure, None
            raise failure
        self.drained.append(instance_id)

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        if isinstance(self.gpus, Exception):
            raise self.gpus
        return list(self.gpus)

    def find_remaining_resources(self, instance_type: str, capacity_provider: str) -> list[RemainingResources]:
        return list(self.room.get((instance_type, capacity_provider), ()))

    def find_container_instance(self, container_instance_arn: str) -> ContainerInstanceObservation | None:
        machine = self.instances.get(container_instance_arn)
        return None if machine is None else self._observe(machine)
