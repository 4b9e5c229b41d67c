"""Bugs in what becomes of an instance whose agent is away, which confirms no stop, or which AWS retires."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import timedelta

from relaunch.core.lifecycle import unconfirmed_stops
from relaunch.core.machines import absent_agents
from relaunch.core.machines.events import NodeSeen
from relaunch.entrypoints import warnings
from relaunch.usecases import look_at_agents
from relaunch.usecases import observe_machine as observing
from relaunch.usecases import reconcile_machines as reconciling
from relaunch_local.simulation.faults import absent_agents as absent_hosts
from relaunch_local.simulation.faults import retirements, silent_hosts
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, patched_in

_DAY = timedelta(days=1)
_TEN_MINUTES = timedelta(minutes=10)
_AWAY = (absent_agents, look_at_agents)


@contextmanager
def _unconfirmed(**limits: timedelta) -> Iterator[None]:
    # A machine of our own ends for its agent otherwise.
    with patched(unconfirmed_stops, **limits), patched_in(_AWAY, AWAY_LIMIT=_DAY, DOUBT_LIMIT=_DAY):
        yield


def _absent_agents() -> AbstractContextManager[object]:
    return patched(absent_hosts, _SHARE=1.0, _EVERY=1, _FIRST=0)


def _silent_hosts() -> AbstractContextManager[object]:
    return patched(silent_hosts, _SILENT_SHARE=1.0, _EVERY=1, _FIRST=0)


def _with_its_agent(original: Callable[..., NodeSeen]) -> Callable[..., NodeSeen]:
    return lambda seen, deps: replace(original(seen, deps), is_connected=True)


AGENT_BUGS = (
    PlantedBug(
        "ready-without-its-agent",
        "a machine is ready before its agent is connected",
        lambda: patched_in((observing, reconciling), node_seen=_with_its_agent(observing.node_seen)),
        "the agent of a machine that is ready was connected",
        60,
    ),
    PlantedBug(
        "silent-machine-kept",
        "a machine of our own that does not confirm a stop is kept until its job ends",
        lambda: _unconfirmed(CONFIRMED_WITHIN=_DAY),
        "no machine of ours lives on with an unwanted task",
        60,
        world=_silent_hosts,
    ),
    PlantedBug(
        "stop-waited-for-for-ever",
        "a stop that no host confirms is waited for without an end",
        lambda: _unconfirmed(CONFIRMED_WITHIN=_DAY, STOP_LIMIT=9 * _DAY),
        "a stop ends within its bound",
        90,
        world=_silent_hosts,
    ),
    PlantedBug(
        "ended-while-its-host-is-silent",
        "a job ends minutes after a stop that its host does not confirm, although its task lives on",
        lambda: patched(unconfirmed_stops, STOP_LIMIT=timedelta(minutes=15)),
        "no job ends before its task",
        60,
        world=_silent_hosts,
    ),
    PlantedBug(
        "absent-agent-kept",
        "a machine whose agent stays away is kept until its job ends",
        lambda: patched_in(_AWAY, AWAY_LIMIT=_DAY, IMPAIRED_LIMIT=_DAY),
        "no machine of ours lives on for an hour while its agent is away",
        60,
        world=_absent_agents,
    ),
    PlantedBug(
        "absent-agent-given-up-early",
        "a machine whose agent is away for ten minutes is ended",
        lambda: patched_in(_AWAY, AWAY_LIMIT=_TEN_MINUTES),
        "no machine is ended for its agent before its time",
        60,
        world=_absent_agents,
    ),
    PlantedBug(
        "outage-ends-machines",
        "machines are ended although most agents are away at once",
        lambda: patched_in(_AWAY, is_outage=lambda _agents, _away: False),
        "no machine is ended for its agent in an outage",
        90,
        world=_absent_agents,
    ),
    PlantedBug(
        "training-that-saves-is-lost",
        "a machine whose agent is away is ended although checkpoints arrive",
        changed(absent_agents, _CLOCK_MARGIN=_DAY),
        "no machine is ended for its agent while its training saves",
        60,
        world=_absent_agents,
    ),
    PlantedBug(
        "retirement-ignored",
        "an instance that AWS Health says will be retired keeps its tasks",
        lambda: patched(warnings, observe_retirement=lambda _event, _deps: None),
        "no task runs on an instance when AWS retires it",
        60,
        world=lambda: patched(retirements, _SHARE=1.0, _MOST=20),
    ),
)
