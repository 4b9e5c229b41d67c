"""PutEvents of EventBridge's default event bus, which takes the changes of jobs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from relaunch.adapters.aws.client_config import EVENTS_CONFIG
from relaunch.adapters.aws.job_events import EventBridgeJobEvents
from relaunch.ports import Clock, JobEvents
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.aws.calls import CallErrors, Calls
from relaunch_local.simulation.aws.clients import CallingClient, client_error, disconnected, timed_out
from relaunch_local.simulation.aws.outages import EVENTS
from relaunch_local.simulation.aws.template import ACCOUNT, REGION, STACK
from relaunch_local.simulation.chance import Chance

SOURCE = f"relaunch.{STACK}"
# "PutEvents", API reference.
_MAX_ENTRIES = 10
_MAX_BYTES = 256 * 1024
# Of requests that EventBridge takes, some entries alone fail.
_FAILED_SHARE = 0.02
_ERRORS = CallErrors(
    refused=partial(client_error, "InternalException"),
    throttled=partial(client_error, "ThrottlingException"),
    unanswered=timed_out,
    disconnected=disconnected,
    denied=partial(client_error, "AccessDeniedException"),
)


@dataclass(frozen=True, slots=True)
class ModelEvents:
    """PutEvents: takes entries, or some of them; `on_taken` gets each that it takes."""

    _chance: Chance | None
    """None: whatever is right is taken."""
    _on_taken: Callable[[Mapping[str, Any]], None]

    def put_events(self, **parameters: Any) -> Any:
        """PutEvents."""
        entries = parameters["Entries"]
        if not 1 <= len(entries) <= _MAX_ENTRIES or sum(map(_size, entries)) > _MAX_BYTES:
            raise client_error("ValidationException", "put_events")
        results = [self._put(entry) for entry in entries]
        return {"FailedEntryCount": sum("ErrorCode" in each for each in results), "Entries": results}

    def _put(self, entry: Mapping[str, Any]) -> dict[str, str]:
        try:
            is_object = isinstance(json.loads(entry["Detail"]), dict)
        except ValueError:
            is_object = False
        if not is_object:
            return {"ErrorCode": "MalformedDetail", "ErrorMessage": "Detail is malformed."}
        if self._chance is not None and self._chance.strikes("event-not-taken", _FAILED_SHARE):
            return {"ErrorCode": "InternalFailure", "ErrorMessage": "injected"}
        self._on_taken(entry)
        return {"EventId": "taken"}


def _size(entry: Mapping[str, Any]) -> int:
    """Return the size of an entry ("Calculating PutEvents event entry size", EventBridge User Guide)."""
    return 14 * ("Time" in entry) + sum(len(entry[name].encode()) for name in ("Source", "DetailType", "Detail"))


def event_of_entry(entry: Mapping[str, Any], event_id: str, at: datetime) -> dict[str, Any]:
    """Return the event that EventBridge makes of an entry of PutEvents that it takes."""
    return {
        "version": "0",
        "id": event_id,
        "source": entry["Source"],
        "detail-type": entry["DetailType"],
        "account": ACCOUNT,
        "region": REGION,
        "time": iso(at, timespec="seconds"),
        "resources": [],
        "detail": json.loads(entry["Detail"]),
    }


def make_job_events(
    calls: Calls,
    chance: Chance,
    clock: Clock,
    authorize: Callable[[str, Any], Any],
    on_taken: Callable[[Mapping[str, Any]], None],
    *,
    may_fail: bool,
) -> JobEvents:
    """Return the adapter of EventBridge over calls that a role may not allow, and that may fail.

    In runs where they cannot they take no time either, so that seeds keep what they draw for other calls.
    """
    model = authorize(EVENTS, ModelEvents(chance if may_fail else None, on_taken))
    client: Any = CallingClient(EVENTS, model, calls, _ERRORS, EVENTS_CONFIG) if may_fail else model
    return EventBridgeJobEvents(client, SOURCE, clock)
