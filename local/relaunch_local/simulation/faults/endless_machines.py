"""Machines that do not end when they are told to: EC2 answers success, and they run on, or shut down for long.

TerminateInstances answers before the instance ends, and documents no bound for that; EC2's documentation has instances
that stay in `shutting-down` for hours ("Troubleshoot Amazon EC2 instance termination issues"). An instance that runs on
is billed, one that shuts down is not.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount

# In some seeds, for it changes everything that such a seed draws afterwards.
_EVERY = 16
_FIRST = 8
_SHARE = 0.4
_LONGEST_SECONDS = 4 * 3_600.0
_RUNS_ON = "termination-without-effect"
_SHUTS_DOWN = "machine-shuts-down-for-long"


class EndlessMachines:
    """Lets some machines of a seed outlive the first TerminateInstances, in seeds without close deadlines."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Look at every TerminateInstances of the application, in some seeds."""
        self._account = account
        self._dice = account.chance.stream("endless-machines")
        self._asked: set[str] = set()
        self._lives_until: dict[str, datetime] = {}
        self.over_at = account.clock.now()
        """When the last of them ends if it is told to: later than the other faults."""
        has_limits = any(each.estimated_duration is not None for each in account.scenario.definitions)
        if account.chance.seed % _EVERY == _FIRST and not has_limits:
            account.faulty_ec2.obeys = self._obeys

    def _obeys(self, host: Instance) -> bool:
        """Return whether EC2 does what it says that it does."""
        now = self._account.clock.now()
        name = host.instance_id
        if name not in self._asked:
            self._asked.add(name)
            seconds = self._dice.uniform(600.0, _LONGEST_SECONDS)
            kind = self._dice.choice((_RUNS_ON, _RUNS_ON, _SHUTS_DOWN))
            if not self._account.chance.strikes(kind, _SHARE, note=name):
                return True
            self._account.endings.disobeys(host)
            lives_until = now + timedelta(seconds=seconds)
            self.over_at = max(self.over_at, lives_until)
            if kind == _SHUTS_DOWN:
                host.host = replace(host.host, shutdown=seconds)
                return True
            self._lives_until[name] = lives_until
        return now >= self._lives_until.get(name, now)
