"""What became of events, as it is stored for whoever looks for one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from relaunch_local.simulation.aws.table import CalledStore


@dataclass
class CalledEvents(CalledStore):
    """What became of events; `on_recorded` is called with the identity of each event, and its outcome."""

    _on_recorded: Callable[[str, str], None]

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        """Record what became of an event."""
        self._call("record_event", lambda: self._store.record_event(identity, source, outcome, job_ids, at))
        self._on_recorded(identity, outcome)
