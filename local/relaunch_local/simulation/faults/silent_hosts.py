"""Hosts that go silent when a task is stopped: their agents stay disconnected, and nothing that they do is reported."""

from collections.abc import Callable

from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.account import SimulatedAccount

# Of the stops of a seed. Not all seeds have the fault, for it changes everything that such a seed draws afterwards.
_SILENT_SHARE = 0.7
_EVERY = 4
_FIRST = 3
# Without somebody who cancels, few tasks of a seed are stopped while there are faults.
_CANCEL_SHARE = 0.5
_CANCEL_SECONDS = 150.0


class SilentHosts:
    """Disconnects the agent of the host of a task that is to be stopped.

    A machine of our own stays silent for ever. One of a capacity provider is somebody else's to end: its agent connects
    again when the faults end.
    """

    def __init__(self, account: SimulatedAccount, cancel_running_job: Callable[[], None]) -> None:
        """Look at every StopTask of the application, and let people cancel jobs, in some seeds."""
        self._account = account
        self._silent: list[Instance] = []
        if account.chance.seed % _EVERY == _FIRST:
            account.on_stop_asked = self._stop_asked
            self._dice = account.chance.stream("silent-hosts")
            self._cancel_running_job = cancel_running_job
            account.clock.call_later(_CANCEL_SECONDS, self._tick)

    def _tick(self) -> None:
        if self._account.chance.is_calm:
            return
        self._account.clock.call_later(_CANCEL_SECONDS, self._tick)
        if self._dice.random() < _CANCEL_SHARE:
            self._cancel_running_job()

    def _stop_asked(self, task_arn: str) -> None:
        instances = self._account.simulator.instances
        host = instances.by_id.get(self._account.facts.host_of(task_arn))
        if host is None or not host.is_alive or not host.agent_connected:
            return
        if self._account.chance.strikes("host-silent", _SILENT_SHARE, note=host.instance_id):
            instances.set_agent(host, connected=False)
            self._silent.append(host)

    def end(self) -> None:
        """Let the agents connect again that are not on machines of our own."""
        for host in self._silent:
            if host.instance_id not in self._account.machines.hosts:
                self._account.simulator.instances.set_agent(host, connected=True)
