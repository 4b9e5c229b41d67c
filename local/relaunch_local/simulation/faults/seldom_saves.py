"""Trainings that save every hour or two, and whose machines are taken away with a warning: they save on SIGTERM.

Of such a job two checkpoints are often minutes apart, and the next one hours away.
"""

from collections import Counter

from relaunch_local.ecs import ProcessSpec
from relaunch_local.simulation.account import SimulatedAccount

_MOST = 3
"""How often the machines of one job are taken away."""
_SHORTLY_AFTER = 0.5
"""The share of those that are taken away shortly after a save."""


class SeldomSaves:
    """Takes the machines of the first attempts of each job that saves seldom."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Watch the trainings that start."""
        self._account = account
        self._taken: Counter[str] = Counter()
        if account.scenario.seldom:
            self._then = account.trainings.on_start
            account.trainings.on_start = self._started

    def _started(self, spec: ProcessSpec) -> None:
        self._then(spec)
        account = self._account
        if spec.environment["RECIPE"] != account.scenario.seldom:
            return
        dice = account.chance.stream(f"seldom/{spec.task_arn}")
        between = account.scenario.recipes[account.scenario.seldom].checkpoint_seconds or 0.0
        saves = dice.randint(1, 2)
        share = dice.uniform(0.02, 0.1) if dice.random() < _SHORTLY_AFTER else dice.uniform(0.1, 0.9)
        account.clock.call_later((saves + share) * between, lambda: self._take(spec))

    def _take(self, spec: ProcessSpec) -> None:
        account = self._account
        job_id = spec.started_by.rpartition("/")[0]
        host = account.simulator.instances.by_id.get(spec.instance_id)
        if spec.task_arn not in account.trainings.running or host is None or not host.is_alive:
            return
        if self._taken[job_id] < _MOST:
            self._taken[job_id] += 1
            account.trace.line(f"FAULT seldom-saves: {host.instance_id} is taken away")
            account.simulator.instances.interrupt(host)
