"""Machines whose ECS agent stays away: the host hangs or lost its network, while EC2 may call it running.

Nothing reaches such a host, and nothing that happens there is reported (aws/containers-roadmap#2040): its tasks are
RUNNING until somebody ends it.

away at every look
  ├─ with most agents of the cluster
  │    ├─ three or more ──▶ an outage of ECS: the clock starts anew after it
  │    └─ two ──▶ an outage of ECS, or both hosts: as below, with AWAY_LIMIT if the checks fail, else with DOUBT_LIMIT;
  │         once one of them is back the other has its time again: after an outage they come back one by one
  ├─ and a checkpoint came since ──▶ AWAY_LIMIT after the newest one
  ├─ with impaired status checks, for IMPAIRED_LIMIT ──▶ terminated
  └─ for AWAY_LIMIT ──▶ terminated
"""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.machines.decision import MachineDecision, ignore, set_next_check
from relaunch.core.machines.ending import terminate
from relaunch.core.machines.events import AgentSeen, AgentState, NodeSeen
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.living import ABANDONED
from relaunch.core.machines.machine import Machine
from relaunch.core.machines.requesting import NEXT_LOOK

AWAY_LIMIT = timedelta(minutes=30)
"""How long an agent may be away: those that work reconnect within seconds ("Amazon ECS container instance state change
events", ECS Developer Guide), and operators end instances whose agent is away for minutes
(aws/amazon-ecs-agent#618)."""
IMPAIRED_LIMIT = timedelta(minutes=5)
"""How long an agent may be away while EC2's status checks of its instance fail."""
DOUBT_LIMIT = timedelta(hours=2)
"""How long the two agents may be away that are most of a cluster: an outage of ECS mostly ends within hours, and a
training that saves meanwhile shows that its host lives; two hosts that hang would be paid for until `max_runtime`."""
_NOT_AWAY = (AgentState.CONNECTED, AgentState.OUTAGE)
# The clocks of S3, ECS and a function differ by seconds, and an upload that began before is finished after.
_CLOCK_MARGIN = timedelta(minutes=1)
_FEWEST_OF_AN_OUTAGE = 2
_MOST_IN_DOUBT = 2


def is_outage(agents: int, away: Collection[str]) -> bool:
    """Return whether so many of the agents of a cluster are away at once that ECS has an outage, not their hosts."""
    return len(away) >= _FEWEST_OF_AN_OUTAGE and 2 * len(away) > agents


def is_doubtful(away: Collection[str]) -> bool:
    """Return whether so few agents are away that an outage of ECS may be hosts that hang."""
    return len(away) <= _MOST_IN_DOUBT


def is_away(machine: Machine, for_at_least: timedelta, now: datetime) -> bool:
    """Return whether the agent of a machine has been away for so long."""
    return machine.away_since is not None and now - machine.away_since >= for_at_least


def is_agent_news(machine: Machine, event: AgentSeen) -> bool:
    """Return whether the agent was not known to be away, or is."""
    return machine.away_since is not None or event.agent not in _NOT_AWAY


def is_agent_back(machine: Machine, event: NodeSeen) -> bool:
    """Return whether an agent that was away is connected."""
    return machine.away_since is not None and event.is_connected


def agent_back(machine: Machine, _event: NodeSeen, _now: datetime, _limits: MachineLimits) -> MachineDecision:
    """Forget that the agent was away."""
    return set_next_check(_back(machine), machine.wake_at)


def _back(machine: Machine) -> Machine:
    return replace(machine, away_since=None, is_away_with_most=False, with_most_until=None)


def _waits_since(machine: Machine, heard_at: datetime) -> datetime:
    """Return since when an agent is waited for: since most others came back, for it may be the next one.

    Not again and again, as a cluster that grows and shrinks would have it.
    """
    if machine.away_since is None or machine.with_most_until is None:
        return heard_at
    return max(heard_at, min(machine.with_most_until, machine.away_since + DOUBT_LIMIT))


def agent_seen(machine: Machine, event: AgentSeen, now: datetime, _limits: MachineLimits) -> MachineDecision:
    """End a machine of which nothing has been heard for too long; its tasks are lost once EC2 has ended it."""
    if event.agent in _NOT_AWAY:
        return set_next_check(_back(machine), machine.wake_at)
    is_with_most = event.agent is AgentState.AWAY_WITH_MOST
    since = machine.away_since
    if since is None:
        first = replace(machine, away_since=now, is_away_with_most=is_with_most)
        return set_next_check(first, min(machine.wake_at or now, now + NEXT_LOOK))
    if is_with_most != machine.is_away_with_most:
        # It has not been looked at closely: the next look decides.
        until = machine.with_most_until if is_with_most else now
        known = replace(machine, is_away_with_most=is_with_most, with_most_until=until)
        return set_next_check(known, machine.wake_at)
    has_saved = event.saved_at is not None and event.saved_at - since > _CLOCK_MARGIN
    heard_at = event.saved_at if has_saved and event.saved_at is not None else since
    limit, short = (DOUBT_LIMIT, AWAY_LIMIT) if is_with_most else (AWAY_LIMIT, IMPAIRED_LIMIT)
    if event.is_impaired and not has_saved:
        limit = short
    if now - _waits_since(machine, heard_at) < limit:
        return ignore(machine, f"its agent is away since {since:%H:%M:%S} UTC")
    saved = f"the newest checkpoint is of {heard_at:%H:%M:%S} UTC" if has_saved else "no checkpoint came since"
    checks = ", and EC2's status checks of it fail" if event.is_impaired else ""
    others = ", and so are most agents of the cluster" if event.agent is AgentState.AWAY_WITH_MOST else ""
    detail = f"its agent is away since {since:%H:%M:%S} UTC, {saved}{checks}{others}"
    # No task can be asked to save: a stop does not reach the host.
    left = replace(machine, is_unusable=True, leave_by=machine.leave_by or now)
    return terminate(left, now, event=ABANDONED, detail=detail)
