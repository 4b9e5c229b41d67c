"""Since when an instance of our own is ready, and whether its agent is connected, as ECS shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.offerings.offering import CapacityFailure
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.model import Instance

# The clocks of functions differ from EC2's by up to three seconds; events have whole seconds.
CLOCK_SKEW = timedelta(seconds=7)
# What an agent has, beyond the deadline too: three minutes, by a clock that is a little fast.
_LONGEST_AWAY = timedelta(minutes=3) - CLOCK_SKEW

# Machines that start are looked at each minute: of three looks one is made and saved, whatever fails.
_SEEN_WITHIN = timedelta(minutes=3)


@dataclass(slots=True)
class Readiness:
    """When each instance was ready and each agent was away."""

    _clock: Clock
    _failed_at: Mapping[str, Sequence[datetime]]
    """When the calls of each action failed for good."""
    _ready_at: dict[str, datetime] = field(default_factory=dict)
    """By instance: when it was first seen with all its accelerators, its agent connected, to the minute."""
    _disconnected_at: dict[str, datetime] = field(default_factory=dict)
    """By container instance: when its agent disconnected last."""
    _connected_at: dict[str, datetime] = field(default_factory=dict)
    """By container instance: when its agent came back last."""
    _away: set[str] = field(default_factory=set)
    """The container instances whose agent is disconnected."""

    def agent_changed(self, arn: str, *, is_connected: bool) -> None:
        """Note a change of a container instance."""
        if not is_connected:
            if arn not in self._away and not self._was_missed(arn):
                self._disconnected_at[arn] = self._clock.now()
            self._away.add(arn)
        elif arn in self._away:
            self._away.remove(arn)
            self._connected_at[arn] = self._clock.now()

    def _was_missed(self, arn: str) -> bool:
        """Return whether calls failed while an agent was back for a few looks: who saw it away may know no more."""
        since = self._connected_at.get(arn)
        if since is None or arn not in self._disconnected_at or self._clock.now() - since >= _SEEN_WITHIN:
            return False
        return any(at >= since for times in self._failed_at.values() for at in times[-1:])

    def look_at(self, host: Instance) -> None:
        """Note whether an instance is ready now."""
        if is_ready(host) and host.agent_connected:
            self._ready_at.setdefault(host.instance_id, self._clock.now())

    def ready_at(self, host: Instance) -> datetime:
        """Return when an instance was first seen ready, to the minute; now if it is not."""
        now = self._clock.now()
        return self._ready_at.get(host.instance_id, now) if is_ready(host) else now

    def connected_at(self, host: Instance) -> datetime | None:
        """Return when the agent of an instance came back last, None if it was never away; now while it is."""
        return self._connected_at.get(host.arn) if host.agent_connected else self._clock.now()

    def is_long_away(self, host: Instance) -> bool:
        """Return whether the agent of an instance has been away for as long as it may."""
        now = self._clock.now()
        away_since = now if host.agent_connected else self._disconnected_at.get(host.arn, now)
        return now - away_since >= _LONGEST_AWAY


def is_ready(host: Instance) -> bool:
    """Return whether an instance has registered, with all its GPUs."""
    return len(host.gpu_ids) == host.shape.gpus and bool(host.arn)


def is_late(machine: Instance, failure: CapacityFailure) -> bool:
    """Return whether a machine registered after a launch by its capacity provider had failed."""
    is_its = machine.provider is not None and machine.provider.name == failure.capacity_provider
    return is_its and machine.registered_at is not None and machine.registered_at > failure.at
