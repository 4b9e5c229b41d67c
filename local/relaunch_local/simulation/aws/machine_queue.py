"""The queue of machines that functions are to look at, which notes what is sent to it."""

from dataclasses import dataclass

from relaunch.adapters.aws.sqs.machine_queue import SqsMachineQueue
from relaunch.core.jobs.effects import RequestMachine
from relaunch_local.simulation.aws.table import OnEffect


@dataclass(frozen=True, slots=True)
class NotedQueue:
    """Implements MachineQueue; `on_effect` is called with each machine that was sent."""

    _queue: SqsMachineQueue
    _on_effect: OnEffect

    def request_calls(self, machine_id: str, delay_seconds: int = 0) -> None:
        """Send a machine to the queue."""
        self._queue.request_calls(machine_id, delay_seconds)
        self._on_effect(RequestMachine, machine_id)
