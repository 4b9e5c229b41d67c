"""Checks that no spot instance is billed because Relaunch ends it although EC2 is about to, for nothing.

EC2 does not bill a spot instance that it interrupts within its first hour ("Billing for interrupted Spot Instances",
EC2 User Guide).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.machines.machine import Machine
from relaunch_local.ecs import Clock, Purchase
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.checks.facts import AccountFacts

# The clocks of functions differ from EC2's by up to three seconds, and events have whole seconds.
_FREE = timedelta(hours=1) - timedelta(minutes=2) - timedelta(seconds=10)
"""How old an instance may be at its warning."""
_LEFT_FOR = timedelta(minutes=3) - timedelta(seconds=10)


@dataclass(slots=True)
class FreeHour:
    """Checks every TerminateInstances."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _facts: AccountFacts
    _hosts: Mapping[str, Instance]
    """By EC2 instance."""
    _began_at: Callable[[], datetime | None]
    """Returns when the running function began to handle its message: what was told later, it need not know."""
    _known_at: dict[str, datetime] = field(default_factory=dict)
    """By instance: when it was first saved with its machine."""

    def machine_saved(self, machine: Machine) -> None:
        """Note that the application knows the instance of a machine."""
        if machine.instance_id is not None:
            self._known_at.setdefault(machine.instance_id, self._clock.now())

    def termination_asked(self, instance_id: str) -> None:
        """Check that EC2 is left to interrupt the instance if the application was told that it will."""
        host = self._hosts.get(instance_id)
        told = self._facts.first_warning(instance_id)
        if host is None or not host.is_alive or host.purchase is not Purchase.SPOT or told is None:
            return
        warned_at, told_at = told
        known_at = self._known_at.get(instance_id)
        began_at = self._began_at()
        knows = known_at is not None and known_at < told_at and (began_at is None or began_at > told_at)
        is_free = warned_at - host.launched_at < _FREE and self._clock.now() - warned_at < _LEFT_FOR
        message = f"{instance_id}, warned at {warned_at:%H:%M:%S}"
        self._check("no machine warned in its first hour is billed because of us", not (knows and is_free), message)
