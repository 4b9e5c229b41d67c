"""The item of the jobs table that has the offerings of the region."""

from collections.abc import Callable
from typing import Any

from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.core.offerings.snapshot import OfferingsSnapshot
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.clients import CallingClient

_TABLE = "jobs"


class Snapshots:
    """The snapshot of one run: `store` reads and writes it as functions do, `stored` is what the table has."""

    def __init__(self, calls: Calls, authorized: Callable[[str, Any], Any]) -> None:
        """Create it without a snapshot; `authorized` lets functions make only the calls that they may make."""
        self.on_saved: Callable[[OfferingsSnapshot | None, OfferingsSnapshot], None] = lambda _before, _after: None
        """Called with each snapshot that was saved, and the one before it."""
        self._item: Any = None
        self._own = DynamoDbSnapshots(self._as_client(), _TABLE)
        client: Any = CallingClient("dynamodb", authorized("dynamodb", self), calls)
        self.store = DynamoDbSnapshots(client, _TABLE)

    @property
    def stored(self) -> OfferingsSnapshot | None:
        """Return what the table has."""
        return self._own.load_snapshot()

    def begin_with(self, snapshot: OfferingsSnapshot) -> None:
        """Store the snapshot of the time before the run."""
        self._own.save_snapshot(snapshot)

    def get_item(self, **_parameters: Any) -> Any:
        """GetItem."""
        return {} if self._item is None else {"Item": self._item}

    def put_item(self, **parameters: Any) -> Any:
        """PutItem."""
        before = self.stored
        self._item = parameters["Item"]
        self.on_saved(before, self._own.load_snapshot() or OfferingsSnapshot(""))
        return {}

    def _as_client(self) -> Any:
        return self
