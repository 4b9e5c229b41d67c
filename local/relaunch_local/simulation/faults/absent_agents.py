"""Agents that stay away for good while their task runs, hosts that hang, outages of ECS: all agents away at once."""

from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount

# Few seeds have the faults, for they change everything that such a seed draws afterwards.
_EVERY = 24
_FIRST = 19
_SHARE = 0.6
_BETWEEN_SECONDS = (120.0, 900.0)
_OUTAGE_SECONDS = (2_400.0, 4_800.0)
# Of the faults: an agent goes away and its training goes on, the host hangs, or all agents are away for a while.
_ALONE = 0.35
_HUNG = 0.8
# Of the hosts that hang: EC2's status checks fail, after some minutes.
_IMPAIRED = 0.5
_CHECK_SECONDS = (60.0, 300.0)


class AbsentAgents:
    """Disconnects agents of machines of our own that run a task, in some seeds; those come back only from an outage."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Begin within minutes."""
        self._account = account
        self._lost: Instance | None = None
        self._had_outage = False
        # A stream of its own: no other fault is drawn otherwise for it.
        self._random = account.chance.stream("absent-agents")
        if account.chance.seed % _EVERY == _FIRST:
            self._next()

    def _next(self) -> None:
        self._account.clock.call_later(self._random.uniform(*_BETWEEN_SECONDS), self._happen)

    def _happen(self) -> None:
        if self._account.chance.is_calm:
            return
        self._next()
        kind = self._random.random()
        if kind >= _HUNG:
            if not self._had_outage and self._account.chance.strikes("agents-away", _SHARE):
                self._had_outage = True
                self._begin_outage()
            return
        # Two of two that hang look like an outage, and are paid for until the jobs' max_runtime.
        if self._lost is not None and self._lost.is_alive:
            return
        hosts = [each for each in self._account.machines.hosts.values() if each.tasks and self._is_connected(each)]
        if not hosts:
            return
        host = self._random.choice(hosts)
        name = "agent-lost" if kind < _ALONE else "host-hung"
        if self._account.chance.strikes(name, _SHARE, note=host.instance_id):
            # No other fault connects it again.
            self._lost = host
            host.is_cut_off = True
            self._account.simulator.instances.set_agent(host, connected=False)
            if name == "host-hung":
                self._hang(host)

    def _is_connected(self, host: Instance) -> bool:
        return host.is_alive and host.agent_connected

    def _hang(self, host: Instance) -> None:
        for task in host.tasks.values():
            self._account.trainings.freeze(task.arn)
        if self._random.random() < _IMPAIRED:
            after = self._random.uniform(*_CHECK_SECONDS)
            self._account.clock.call_later(after, lambda: setattr(host, "is_impaired", True))

    def _begin_outage(self) -> None:
        instances = self._account.simulator.instances
        away = [each for each in instances.by_id.values() if self._is_connected(each)]
        for host in away:
            instances.set_agent(host, connected=False)

        def end() -> None:
            for host in away:
                instances.set_agent(host, connected=True)

        self._account.clock.call_later(self._random.uniform(*_OUTAGE_SECONDS), end)
