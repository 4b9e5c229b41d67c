"""What functions are told, and what they must have done: with a message that they handled, and by a sweep."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.ecs.events import MACHINE_STATE_CHANGE, TASK_STATE_CHANGE
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.machines.groups import first_id_of
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.triggers.events import ObjectCreated
from relaunch.core.triggers.matching import is_watched
from relaunch.ports import CapacityStore
from relaunch_local.ecs import EcsSimulator, Event
from relaunch_local.ecs.engine.model import ContainerInstanceStatus, Instance
from relaunch_local.iam.permission import Permission
from relaunch_local.simulation.aws.delayed_ecs import DelayedEcs
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.early_stops import EarlyStops
from relaunch_local.simulation.checks.facts import AccountFacts, tasks_in
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.metrics import MetricChecks
from relaunch_local.simulation.checks.readiness import is_late

_LONGEST_SWEEP = timedelta(minutes=3)
# What one answer of ListTasks has at most.
_PAGE = 100


@dataclass(frozen=True, slots=True)
class FunctionChecks:
    """Notes the answers that functions get, and checks what they did once they have handled a message or swept."""

    _runtime: Runtime
    _simulator: EcsSimulator
    _ecs: DelayedEcs
    _objects: ObjectStore
    _capacity: CapacityStore
    _definitions: Sequence[JobDefinition]
    _facts: AccountFacts
    _invariants: Invariants
    _metrics: MetricChecks
    _early_stops: EarlyStops

    def ecs_answered(self, action: str, answer: Any) -> None:
        """Note an answer of ECS."""
        if action == "run_task" and self._runtime.current is not None:
            self._runtime.current.told.update(tasks_in(answer))
        elif action == "describe_tasks":
            self._facts.described(answer, self._runtime.current)
            if self._runtime.current is not None:
                self._runtime.current.shown.update(task["taskArn"] for task in answer["tasks"])
        elif action == "describe_container_instances" and self._runtime.current is not None:
            self._runtime.current.shown.update(each["ec2InstanceId"] for each in answer["containerInstances"])

    def ec2_answered(self, action: str, answer: Any) -> None:
        """Note an answer of EC2 on Spot requests."""
        if action == "describe_spot_instance_requests":
            self._facts.requests_described(answer, self._runtime.current)

    def fleet_answered(self, action: str, answer: Any) -> None:
        """Note an answer of EC2 on instances."""
        if action in ("create_fleet", "run_instances") and self._runtime.current is not None:
            launched = list(_launched_in(answer))
            self._runtime.current.told.update(launched)
            self._runtime.current.launched_nothing = not launched
        elif action == "describe_instances":
            found = (each for reservation in answer["Reservations"] for each in reservation["Instances"])
            self._facts.instances_told(each["InstanceId"] for each in found)

    def s3_answered(self, action: str, answer: Any) -> None:
        """Note an answer of S3."""
        if action == "list_objects_v2":
            self._objects.told_at[answer["Prefix"]].append(self._runtime.clock.now())

    def call_denied(self, permission: Permission) -> None:
        """Record a call of a function that a role does not allow.

        EC2 knows no tags of an instance in its first moments, nor an hour after its end, and so may not let anybody end
        it who may end those with a tag.
        """
        name = permission.resource.rpartition("/")[2]
        is_unknown = permission.action == "ec2:TerminateInstances" and self._simulator.instances.known(name) is None
        what = f"{permission.access_key}: {permission.action} on {permission.resource}"
        self._invariants.check("a function's role allows its calls", is_unknown, what)

    def message_handled(self, function: str, body: str, began_at: datetime) -> None:
        """Check that a handled warning stopped every visible task on the instance, and that an upload is watched."""
        self._metrics.message_handled()
        invocation = self._runtime.current
        if invocation is not None:
            self._facts.shown(invocation.shown)
            self._facts.instances_told(invocation.told)
            self._facts.message_handled(function, body, invocation.told, has_failed=invocation.failed_calls > 0)
        if function == "request_machine" and invocation is not None and invocation.launched_nothing:
            self._facts.refusals_told.add(first_id_of(json.loads(body)["machine_id"]))
        if function == "submit_job" and '"Object Created"' in body:
            (upload,) = parse_intake_message(body)
            is_needed = isinstance(upload, ObjectCreated) and is_watched(upload, self._definitions)
            self._invariants.check("only watched uploads become messages", is_needed, body)
        if function == "observe_task" and MACHINE_STATE_CHANGE in body:
            detail = json.loads(body)["detail"]
            machines = [host for host in self._machines() if host.arn == detail["containerInstanceArn"]]
            self._invariants.late_machines_known(machines, self._failures(), began_at)
        if function == "observe_task" and TASK_STATE_CHANGE in body:
            detail = json.loads(body)["detail"]
            self._invariants.task_events.handled(detail, began_at)
            self._early_stops.task_change_handled(detail)
        if function != "observe_capacity" or "Interruption Warning" not in body:
            return
        instance_id = json.loads(body)["detail"]["instance-id"]
        host = self._simulator.instances.by_id.get(instance_id)
        tasks = host.tasks.values() if host is not None and host.is_alive else ()
        seen = [
            task.arn
            for task in tasks
            if not task.is_stopping
            and task.connectivity_at is not None
            and task.connectivity_at < began_at
            and not self._ecs.was_hidden(task.arn, began_at)
        ]
        is_closed = host is None or host.status is not ContainerInstanceStatus.ACTIVE or not host.is_alive
        # One that registers meanwhile need not be found. A task that lands on it is warned when it is known.
        is_new = host is not None and host.registered_at is not None and host.registered_at > began_at
        self._invariants.warning_handled(instance_id, seen, is_closed=is_closed or is_new)

    def swept(self, count: int) -> None:
        """Check that a sweep looked at every task, and found those that were given up and are listed again."""
        since = self._runtime.clock.now() - _LONGEST_SWEEP
        invocation = self._runtime.current
        has_failed = invocation is not None and invocation.failed_calls > 0
        listed = [arn for arn in self._invariants.listed_since(since) if not self._ecs.was_hidden(arn, since)]
        # ECS does not say what a token of ListTasks stands for: where it is a number, each task that leaves the list
        # between two pages takes one from the second, which the next sweep looks at.
        ended = unlisted_since(self._invariants.tasks, since)
        passed_over = ended if len(listed) + ended > _PAGE else 0
        is_every = count >= len(listed) - passed_over
        self._invariants.check("a sweep looks at every task", is_every, f"{count} of {len(listed)}")
        for arn, (job_id, lost_at) in self._invariants.lost.items():
            known_at = self._ecs.known_again_at(arn)
            was_there = known_at is not None and known_at <= since and not self._ecs.was_hidden(arn, since)
            was_skipped = has_failed or self._invariants.saved_since(job_id, since)
            if was_there and lost_at <= since and not was_skipped and self._invariants.is_listed(job_id, arn):
                is_found = arn in self._invariants.orphans
                self._invariants.check("a sweep finds what was given up", is_found, f"{job_id}: {arn[-6:]}")

        if invocation is not None and not has_failed:
            self._facts.shown(invocation.shown)
            machines = [host for host in self._machines() if host.registered_at and host.registered_at < since]
            self._invariants.late_machines_known(machines, self._failures(), since)

    def observe(self, event: Event) -> None:
        """Note a machine that arrives after its offering was given up."""
        if event["detail-type"] == MACHINE_STATE_CHANGE and event["detail"]["version"] == 1:
            machines = [host for host in self._machines() if host.arn == event["detail"]["containerInstanceArn"]]
            if any(is_late(host, failure) for host in machines for failure in self._failures()):
                self._runtime.chance.note_organic("machine-arrived-late")

    def _machines(self) -> list[Instance]:
        """Return the machines that ECS can place tasks on."""
        hosts = self._simulator.instances.by_id.values()
        return [host for host in hosts if host.is_alive and host.status is ContainerInstanceStatus.ACTIVE]

    def _failures(self) -> list[CapacityFailure]:
        return list(self._capacity.load_capacity_memory(self._runtime.clock.now()).values())


def unlisted_since(tasks_by_job: Mapping[str, Mapping[str, Mapping[str, object]]], since: datetime) -> int:
    """Return how many tasks ECS has ceased to list with desired status RUNNING since then."""
    ended = (
        next((task[name] for name in ("stoppingAt", "executionStoppedAt", "stoppedAt") if name in task), None)
        for tasks in tasks_by_job.values()
        for task in tasks.values()
        if task.get("desiredStatus") == "STOPPED"
    )
    return sum(at is None or datetime.fromisoformat(str(at)) >= since for at in ended)


def _launched_in(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the instances of an answer to a launch: CreateFleet has several in one entry, RunInstances one."""
    for entry in answer["Instances"]:
        yield from entry.get("InstanceIds") or [entry["InstanceId"]]
