"""A small scripted cluster: it answers RunTask as it is told, and tasks go on when the test says so."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from fakes.builders import NOW, make_node, make_observation, task_id
from relaunch.adapters.aws.ecs.run_task import failed_placement
from relaunch.adapters.aws.ecs.run_task_limits import check_limits
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchOutcome,
    LaunchRequest,
    LaunchUncertain,
    Node,
    NodeObservation,
    TaskObservation,
    TaskPhase,
    TaskPlaced,
)
from relaunch.core.machines.machine import NOTHING, Resources
from relaunch.core.selection.gpu_share import GpuDevice
from relaunch.core.selection.neuron_devices import RemainingResources
from relaunch.ports import PermanentError

Item = TypeVar("Item")


class FakeTasks:
    """Implements TaskTarget.

    `launch` answers the next of `outcomes`, and places the task when there is none left. A placement that was launched
    before is answered with the same task, or with a conflict when the parameters differ, as ECS does; a machine of our
    own takes one task. LaunchUncertain in `outcomes` means that the answer was lost: with `places_uncertain` the task
    is there all the same. Lists come in pages of `page_size`, counted by `page_count`; `closed_machines` take no tasks,
    the agents of `disconnected` are away, and `registered_at` and `registered` (what they offer to tasks) are by name.
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
        self.instances: dict[str, Node] = {}
        self.gpus: list[GpuDevice] | Exception = []
        self.room: dict[tuple[str, str], dict[str, RemainingResources]] = {}
        self.page_size = 100
        self.page_count = 0
        self.closed_machines: set[str] = set()
        self.disconnected: set[str] = set()
        self.cluster = ""
        self.daemon_services: set[str] | Exception = set()
        self.registered_at: dict[str, datetime] = {}
        self.registered: dict[str, Resources] = {}
        self._launched: dict[tuple[AttemptKey, int, int], tuple[LaunchRequest, str]] = {}
        self._words: dict[str, dict[str, Any]] = {}

    def launch(self, request: LaunchRequest) -> LaunchOutcome:
        placed: list[str] = []
        for each in request.ranks:
            outcome = self._launch_one(each)
            if isinstance(outcome, LaunchConflict):
                if not request.followers:
                    return outcome
                outcome = TaskPlaced(outcome.task_ids[0])
            if not isinstance(outcome, TaskPlaced):
                return replace(outcome, placed=tuple(placed))
            placed.append(outcome.task_id)
        return TaskPlaced(placed[0], tuple(placed[1:]))

    def _launch_one(self, request: LaunchRequest) -> LaunchOutcome:
        # A workload is for Kubernetes, where other limits apply.
        violations = check_limits(request) if request.workload is None else ()
        if violations:
            raise PermanentError(f"launching {request.attempt}: {'; '.join(violations)}")
        self.requests.append(request)
        outcome = self.outcomes.popleft() if self.outcomes else None
        if isinstance(outcome, Exception):
            raise outcome
        if isinstance(outcome, LaunchUncertain) and self.places_uncertain:
            self._place(request)
        return outcome if outcome is not None else self._place(request)

    def _place(self, request: LaunchRequest) -> LaunchOutcome:
        placement = (request.attempt, request.placement_number, request.rank)
        if placement in self._launched:
            earlier, arn = self._launched[placement]
            return TaskPlaced(arn) if earlier == request else LaunchConflict((arn,))
        if request.instance_id and not self._has_room(request.instance_id):
            return failed_placement(["MemberOf placement constraint unsatisfied."])
        arn = task_id(len(self._launched) + 1)
        self._launched[placement] = (request, arn)
        self.say(arn, started_by=str(request.attempt))
        return TaskPlaced(arn)

    def _has_room(self, instance_id: str) -> bool:
        names = [each.name for each in self.instances.values() if each.instance_id == instance_id]
        live = [task for task in self.tasks.values() if task.phase is not TaskPhase.STOPPED]
        return any(all(task.node != name for task in live) for name in names)

    def say(self, arn: str, last_status: str = "PROVISIONING", **words: Any) -> TaskObservation:
        """Let ECS say this of a task that it did not know."""
        self._words[arn] = {"task_id": arn, "last_status": last_status, "version": 1, **words}
        self.tasks[arn] = make_observation(**self._words[arn])
        return self.tasks[arn]

    def change(self, arn: str, **words: Any) -> TaskObservation:
        """Change what ECS says of a task, with the next version; return it as an event would carry it."""
        self._words[arn] |= {"version": self.tasks[arn].version + 1, **words}
        self.tasks[arn] = make_observation(**self._words[arn])
        return self.tasks[arn]

    def run(self, arn: str, instance: Node | None = None, **fields: Any) -> TaskObservation:
        """Let a task run on a machine: that of our own if its launch named one."""
        named = next((request.instance_id for request, placed in self._launched.values() if placed == arn), "")
        own = next((each for each in self.instances.values() if each.instance_id == named), None)
        machine = own or instance or make_node()
        self.instances[machine.name] = machine
        running: dict[str, Any] = {
            "last_status": "RUNNING",
            "node": machine.name,
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
            "stopped_reason": self.tasks[arn].report.text or "Essential container in task exited",
            "container_exit_codes": {container: exit_code},
            "stopped_at": NOW,
        }
        return self.change(arn, **{**stopped, **fields})

    def forget(self, arn: str) -> None:
        """Let ECS no longer know a task, as an hour after it stopped."""
        del self.tasks[arn]

    def stop(self, task_id: str, reason: str) -> None:
        if self.stop_failure:
            failure, self.stop_failure = self.stop_failure, None
            raise failure
        self.stops.append((task_id, reason))
        task = self.tasks.get(task_id)
        if task and not task.phase.is_ending:
            self.change(task_id, desired_status="STOPPED", stop_code="UserInitiated", stopped_reason=reason)

    def describe(self, task_ids: Sequence[str]) -> Mapping[str, TaskObservation | None]:
        if not self.cluster:
            return {arn: self.tasks.get(arn) for arn in task_ids}
        return {arn: replace(self.tasks[arn], cluster=self.cluster) if arn in self.tasks else None for arn in task_ids}

    def list_tasks(self) -> Iterator[Sequence[TaskObservation]]:
        yield from self._pages([task for task in self.tasks.values() if not task.phase.is_ending])

    def list_nodes(self) -> Iterator[Sequence[NodeObservation]]:
        yield from self._pages([self._observe(machine) for machine in self.instances.values()])

    def _observe(self, machine: Node) -> NodeObservation:
        on_it = [each for each in self.tasks.values() if each.node == machine.name]
        task_count = sum(task.phase in {TaskPhase.RUNNING, TaskPhase.STARTING} for task in on_it)
        is_active = machine.name not in self.closed_machines
        registered_at = self.registered_at.get(machine.name, NOW)
        return NodeObservation(
            machine,
            is_active,
            task_count=task_count,
            registered_at=registered_at,
            registered=self.registered.get(machine.name, NOTHING),
            is_connected=machine.name not in self.disconnected,
        )

    def _pages(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        for start in range(0, len(items), self.page_size):
            self.page_count += 1
            yield items[start : start + self.page_size]

    def identify(self) -> str:
        return self.cluster

    def find_daemon_services(self) -> frozenset[str]:
        if isinstance(self.daemon_services, Exception):
            raise self.daemon_services
        return frozenset(self.daemon_services)

    def find_tasks_of(self, attempt: AttemptKey) -> list[TaskObservation]:
        return [task for task in self.tasks.values() if task.owner == attempt]

    def find_tasks_on(self, instance_id: str) -> list[TaskObservation]:
        arns = {machine.name for machine in self.instances.values() if machine.instance_id == instance_id}
        on_machine = [task for task in self.tasks.values() if task.node in arns]
        return [task for task in on_machine if task.phase is not TaskPhase.STOPPED]

    def drain(self, instance_id: str) -> None:
        if self.drain_failure:
            failure, self.drain_failure = self.drain_failure, None
            raise failure
        self.drained.append(instance_id)

    def find_gpus(self, instance_type: str, capacity_provider: str) -> list[GpuDevice]:
        if isinstance(self.gpus, Exception):
            raise self.gpus
        return list(self.gpus)

    def find_remaining_resources(
        self, instance_type: str, capacity_provider: str, instance_id: str = ""
    ) -> list[RemainingResources]:
        found = self.room.get((instance_type, capacity_provider), {})
        return [room for each, room in found.items() if instance_id in {"", each}]

    def find_node_of(self, instance_id: str) -> NodeObservation | None:
        on_it = [each for each in self.instances.values() if each.instance_id == instance_id]
        return max(map(self._observe, on_it), key=lambda seen: seen.is_active, default=None)

    def deregister(self, node: str) -> None:
        self.instances.pop(node, None)

    def find_node(self, node: str) -> NodeObservation | None:
        machine = self.instances.get(node)
        return None if machine is None else self._observe(machine)
