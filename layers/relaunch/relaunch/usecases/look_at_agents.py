"""Look whether the ECS agents of machines are away, and what else tells whether their hosts live."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import NodeObservation
from relaunch.core.machines.absent_agents import (
    AWAY_LIMIT,
    DOUBT_LIMIT,
    IMPAIRED_LIMIT,
    is_away,
    is_doubtful,
    is_outage,
)
from relaunch.core.machines.events import AgentSeen, AgentState
from relaunch.core.machines.machine import Machine
from relaunch.ports import JobDependencies, PortError, ReconcileDependencies
from relaunch.usecases.advance_machine import advance_machine

_TRAINING = (JobState.RUNNING, JobState.STOPPING)


def note_absent_agents(nodes: Iterable[NodeObservation], deps: JobDependencies) -> set[str]:
    """Let the machines of our own among these nodes know whose agent is not connected; they are looked at from then on.

    Returns the names of the others whose agent is not: Relaunch may not end those. An error of one does not affect the
    others: the next sweep sees it again.
    """
    others = set[str]()
    for seen in nodes:
        if seen.is_connected:
            continue
        instance_id = seen.node.instance_id
        try:
            machine_id = deps.machines.find_by_instance(instance_id) if instance_id else None
            if machine_id is None:
                others.add(seen.node.name)
            else:
                advance_machine(machine_id, _newly_away, deps)
        except PortError as error:
            deps.log.decided("postponed", instance_id=instance_id, reason=f"its agent is away: {error}")
    return others


def _newly_away(machine: Machine) -> AgentSeen | None:
    # Whether its time is up is decided where everything is looked up.
    return AgentSeen(AgentState.AWAY) if machine.away_since is None else None


class Agents:
    """The agents of the cluster, which is listed once, when the first one is looked at."""

    def __init__(self, deps: ReconcileDependencies) -> None:
        self._deps = deps
        self._nodes: Mapping[str, NodeObservation] | None = None
        self._absent = AgentState.AWAY
        """What an agent is that is not connected."""

    def look(self, machine: Machine) -> AgentSeen | None:
        """Return what is to be known of a machine whose agent was away; None if there is nothing new, or an error.

        An error says nothing of the agent: the next look is a minute later.
        """
        try:
            return self._look(machine)
        except PortError as error:
            self._deps.log.decided("postponed", machine_id=machine.machine_id, reason=f"looking at its agent: {error}")
            return None

    def _look(self, machine: Machine) -> AgentSeen | None:
        seen = self._listed().get(machine.node or "")
        if seen is None:
            return None
        agent = AgentState.CONNECTED if seen.is_connected else self._absent
        is_with_most = agent is AgentState.AWAY_WITH_MOST
        if agent in (AgentState.CONNECTED, AgentState.OUTAGE) or is_with_most != machine.is_away_with_most:
            return AgentSeen(agent)
        limit, short = (DOUBT_LIMIT, AWAY_LIMIT) if is_with_most else (AWAY_LIMIT, IMPAIRED_LIMIT)
        now = self._deps.clock.now()
        instance_id = machine.instance_id or ""
        is_impaired = False
        if not is_away(machine, limit, now):
            if not is_away(machine, short, now):
                return None
            is_impaired = instance_id in self._deps.fleet.find_impaired([instance_id])
            if not is_impaired:
                return None
        saved_at = self._saved_at(machine)
        return AgentSeen(agent, is_impaired=is_impaired, saved_at=saved_at)

    def _listed(self) -> Mapping[str, NodeObservation]:
        if self._nodes is None:
            nodes = {seen.node.name: seen for page in self._deps.targets.ecs.list_nodes() for seen in page}
            away = self._away_at_once(nodes)
            if away:
                self._absent = AgentState.AWAY_WITH_MOST if is_doubtful(away) else AgentState.OUTAGE
            self._nodes = nodes
        return self._nodes

    def _away_at_once(self, nodes: Mapping[str, NodeObservation]) -> list[str]:
        """Return the nodes whose agents are away, if they are so many that it looks like an outage; else none."""
        away = [name for name, seen in nodes.items() if not seen.is_connected]
        if not is_outage(len(nodes), away):
            return []
        # ECS keeps the registrations of instances that were stopped or disconnected before their end.
        ids = [seen.node.instance_id for name in away if (seen := nodes[name]).node.instance_id]
        described = self._deps.fleet.describe([each for each in ids if each])
        dead = {each for each, found in described.items() if found is None or not found.state.is_alive}
        living = {name: seen for name, seen in nodes.items() if seen.node.instance_id not in dead}
        living_away = [name for name in away if name in living]
        return living_away if is_outage(len(living), living_away) else []

    def _saved_at(self, machine: Machine) -> datetime | None:
        """Return when a task on the machine last finished a checkpoint.

        Raises:
            TransientError, PermanentError: checkpoints cannot be read. The job could not go on elsewhere either.
        """
        loaded = (self._deps.jobs.load_job(claim.job_id) for claim in machine.claims)
        newest = [
            self._deps.checkpoints.newest_saved(job.definition.checkpoint_uri, job.job_id)
            for job in loaded
            if job is not None and job.definition.checkpoint_uri is not None and _trains_on(job, machine)
        ]
        return max((each.saved_at for each in newest if each is not None), default=None)


def _trains_on(job: Job, machine: Machine) -> bool:
    # A job that waits for the machine may train on another one meanwhile.
    attempt = job.attempt
    if job.state not in _TRAINING or attempt is None:
        return False
    return machine.machine_id in {each.machine_id for each in attempt.placement.ranks}
