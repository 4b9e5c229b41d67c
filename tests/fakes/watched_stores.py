"""The real stores, each of whose methods may make only the calls that the simulation authorizes it by."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch_local.simulation.aws.store_calls import STORE_CALLS, StoreCall

_PARTS = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}


@dataclass
class _Recorder:
    made: set[StoreCall] = field(default_factory=set)

    def note(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        if model.name == "TransactWriteItems":
            self.made |= {(_PARTS[next(iter(each))], "") for each in params["TransactItems"]}
        else:
            self.made.add((model.name, params.get("IndexName", "")))

    @contextmanager
    def watch(self, port: str, method: str) -> Iterator[None]:
        self.made.clear()
        yield
        unlisted = self.made - STORE_CALLS[port, method]
        assert not unlisted, f"STORE_CALLS does not say that {port}.{method} calls {sorted(unlisted)}"


class _Watched:
    def __init__(self, port: str, store: Any, recorder: _Recorder) -> None:
        self._port = port
        self._store = store
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            with self._recorder.watch(self._port, name):
                return method(*arguments, **named)

        return call


def watched_stores(client: Any, table_name: str) -> DynamoDbStores:
    """Return the stores of a table, over a client whose calls are recorded."""
    recorder = _Recorder()
    client.meta.events.register("provide-client-params.dynamodb", recorder.note)
    stores = DynamoDbStores(client, table_name)
    for port, store in stores.by_port().items():
        setattr(stores, port, _Watched(port, store, recorder))
    return stores
