"""Checks of the ECS agents of machines of our own, by what ECS published and answered to RunTask."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.gangs import is_gang
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.settings import MACHINE_TAG
from relaunch_local.ecs import Clock, Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.checks.facts import AccountFacts

_LEAST_PATIENCE = timedelta(seconds=150)
"""How long an agent may be away at least before its machine is given up."""
_MOST_PATIENCE = timedelta(minutes=20)
"""How long RunTask is tried on one machine at most: three minutes, and with many faults messages come late."""
# The clocks of functions differ from AWS's by up to three seconds, and a function runs for a minute at most.
_CLOCK_SKEW = timedelta(seconds=7)
_LONGEST_FUNCTION = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class _Away:
    """What RunTask answered of the agent that a job waits for."""

    first: datetime
    """When it first said AGENT."""
    last: datetime
    unanswered: timedelta
    """How long the job had no answer in between, from the first to the last call of each time without one."""


@dataclass(slots=True)
class AgentChecks:
    """Checks that a machine is used once its agent is connected, and kept while that is away for a moment."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _facts: AccountFacts
    _hosts: Mapping[str, Instance]
    """By EC2 instance."""
    _connected: set[str] = field(default_factory=set)
    """Container instances whose agent was connected once."""
    _away: dict[tuple[str, str], _Away] = field(default_factory=dict)
    """By job and container instance."""

    def observe(self, event: Event) -> None:
        """Note that an agent is connected, whether the event is delivered or not."""
        if event["detail-type"] == "ECS Container Instance State Change" and event["detail"]["agentConnected"]:
            self._connected.add(event["detail"]["containerInstanceArn"])

    def run_task_answered(self, started_by: str, away: str | None) -> None:
        """Note an answer to RunTask; `away` is the container instance of which it says AGENT."""
        job_id = started_by.rpartition("/")[0]
        now = self._clock.now()
        if away is None:
            for key in [key for key in self._away if key[0] == job_id]:
                del self._away[key]
            return
        before = self._away.get((job_id, away), _Away(now, now, timedelta(0)))
        # A call without an answer may have placed a task: it is sent again, however long the agent has been away.
        lost = [at for at in self._facts.unanswered_jobs.get(job_id, ()) if before.last < at <= now]
        unanswered = before.unanswered + (lost[-1] - lost[0] if lost else timedelta(0))
        self._away[job_id, away] = _Away(before.first, now, unanswered)
        waited = now - before.first - unanswered - self._facts.outage_time(before.first, now)
        self._check("a job waits for an agent for minutes", waited <= _MOST_PATIENCE, f"{job_id}: {waited}")

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Check that an agent was connected before its machine is READY."""
        if machine.state is MachineState.READY and before is not None and before.state is not MachineState.READY:
            host = self._hosts.get(machine.instance_id or "")
            was_connected = host is not None and host.arn in self._connected
            self._check("the agent of a machine that is ready was connected", was_connected, machine.machine_id)

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check that a job does not give up a machine whose agent is away for a moment."""
        if before is None or before.state is not JobState.LAUNCHING or job.state.is_final or job.cancel_requested:
            return
        if is_gang(job) and job.state is JobState.STOPPING:
            return  # the ranks that were placed are not left alone for minutes
        given_up = claimed_machines(before) - claimed_machines(job)
        now = self._clock.now()
        for host in self._hosts.values():
            away = self._away.get((job.job_id, host.arn))
            if away is None or now - away.last > _LONGEST_FUNCTION or host.tags.get(MACHINE_TAG) not in given_up:
                continue
            was_patient = now - away.first >= _LEAST_PATIENCE - _CLOCK_SKEW
            is_lost = not host.is_alive or self._facts.was_threatened(host.instance_id)
            message = f"{job.job_id}: {host.instance_id} after {now - away.first}"
            self._check("a machine is kept while its agent may come back", was_patient or is_lost, message)
