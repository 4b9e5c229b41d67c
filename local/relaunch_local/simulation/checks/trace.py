"""The trace of a run, line by line, for reading and for comparing two runs."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.machines.machine import Machine
from relaunch_local.ecs import Clock, Event
from relaunch_local.simulation.checks.coverage import Transition


@dataclass(slots=True)
class Trace:
    """Implements DecisionLog; keeps lines only if it is on."""

    _clock: Clock
    _is_on: bool
    lines: list[str] = field(default_factory=list)
    decided_by: Counter[Transition] = field(default_factory=Counter)
    on_swept: Callable[[int], None] = lambda _tasks: None
    """Called with the number of tasks when the whole cluster was swept."""

    on_alert: Callable[[str], None] = lambda _instance_id: None
    """Called with the instance of which somebody is told."""

    on_held: Callable[[str], None] = lambda _job_id: None
    """Called with the job of which a notice is held until somebody sets something right, and of an alert of it."""

    def line(self, text: str) -> None:
        """Write a line with the time."""
        if self._is_on:
            self.lines.append(f"{self._clock.now():%d %H:%M:%S.%f}"[:-3] + f"  {text}")

    def decided(self, decision: str, **facts: object) -> None:
        """Record a decision of the application."""
        action = facts.get("action")
        if action:
            self.decided_by[Transition(str(facts["state"]), str(action), str(facts["next_state"]))] += 1
        if decision == "swept" and facts.get("reason") is None:
            self.on_swept(int(str(facts["tasks"])))
        if facts.get("is_alert") and facts.get("instance_id"):
            self.on_alert(str(facts["instance_id"]))
        if decision == "notice held":
            self.on_held(str(facts["job_id"]))
        if self._is_on and decision in {"ignored", "postponed", "dead-lettered", "spot-prices-unknown"}:
            self.line(f"{decision} {facts.get('job_id') or facts.get('machine_id', '')}: {facts.get('reason', '')}")

    def saved(self, job: Job, timeline: Sequence[TimelineEntry]) -> None:
        """Record a write of a job."""
        if self._is_on:
            entries = "; ".join(f"{entry.event} ({entry.detail})" for entry in timeline) or "quietly"
            pending = " ".join(str(effect.kind) for effect in job.pending)
            self.line(f"{job.job_id} v{job.version} {job.state}: {entries}{' | to do: ' + pending if pending else ''}")

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Record a write of a machine of our own."""
        if before is not None and {each.job_id for each in machine.claims} - {each.job_id for each in before.claims}:
            # Decided with its job, and told as the job's decision.
            self.decided_by[Transition(str(before.state), "add_claim", str(machine.state))] += 1
        if self._is_on:
            entry = machine.timeline[-1] if machine.timeline else None
            told = f"{entry.event} ({entry.detail})" if entry else "quietly"
            claims = " ".join(each.job_id for each in machine.claims)
            pending = " ".join(str(effect.kind) for effect in machine.pending)
            where = f"{machine.machine_id} v{machine.version} {machine.state} {machine.instance_id or ''}"
            self.line(f"{where}: {told} | for {claims or 'nobody'}{' | to do: ' + pending if pending else ''}")

    def event(self, event: Event) -> None:
        """Record an event of ECS or EC2."""
        if not self._is_on:
            return
        detail = event["detail"]
        if "taskArn" in detail:
            exits = [each.get("exitCode") for each in detail["containers"]]
            words = f"{detail['taskArn'][-6:]} {detail['lastStatus']} v{detail['version']} {exits}"
            self.line(f"ECS {detail.get('startedBy')}: {words} {detail.get('stoppedReason', '')}")
        elif "instance-id" in detail:
            self.line(f"EC2 {detail['instance-id']}: {event['detail-type']} {detail.get('state', '')}")
