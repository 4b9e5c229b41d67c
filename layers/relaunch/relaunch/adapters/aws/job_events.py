"""Sends the events of jobs to EventBridge's default event bus (PutEvents).

PutEvents takes up to ten entries of at most 256 KB together, and answers 200 with FailedEntryCount when it took some of
them alone ("PutEvents", API reference; "Calculating PutEvents event entry size", user guide).
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import AwsError, error_code
from relaunch.adapters.messages.budget_report import BUDGET_DETAIL_TYPE, write_budget_detail
from relaunch.adapters.messages.job_change import write_detail
from relaunch.core.jobs.budgets import BudgetReport
from relaunch.core.lifecycle.change_events import DETAIL_TYPE, JobStateChange
from relaunch.ports import Clock, Sent

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

MAX_ENTRIES = 10
MAX_BYTES = 256 * 1024
# Without the fields of an entry besides its detail: they have a few hundred.
_MAX_DETAILS = MAX_BYTES - MAX_ENTRIES * 1024
# What is refused whenever it is sent: entries ("PutEventsResultEntry", API reference), and requests, also by botocore.
# Anything else may heal, a missing permission too.
_NEVER = frozenset({"InvalidArgument", "MalformedDetail", "ParamValidationError", "ValidationException"})
_PAUSE = timedelta(seconds=20)
_MAX_REASON = 200


class EventBridgeJobEvents:
    """Implements JobEvents. After a failure it sends nothing for a while: a function has other jobs to see to."""

    def __init__(self, client: "EventBridgeClient", source: str, clock: Clock) -> None:
        self._client = client
        self._source = source
        self._clock = clock
        self._paused: tuple[datetime, str] | None = None

    def send(self, events: Sequence[JobStateChange]) -> Sent:
        if self._paused is not None and self._clock.now() < self._paused[0]:
            return Sent(postponed=self._paused[1])
        taken: set[int] = set()
        refused: dict[int, str] = {}
        entries = [(event.sequence, self._entry(event)) for event in events]
        for request in _requests(entries):
            sent = self._put(request)
            taken |= sent.taken
            refused |= sent.refused
            if sent.postponed:
                self._paused = self._clock.now() + _PAUSE, sent.postponed
                return Sent(frozenset(taken), refused, sent.postponed)
        self._paused = None
        return Sent(frozenset(taken), refused)

    def send_budget(self, report: BudgetReport) -> str:
        entry = {
            "Time": report.at,
            "Source": self._source,
            "DetailType": BUDGET_DETAIL_TYPE,
            "Detail": write_budget_detail(report),
        }
        sent = self._put([(0, entry)])
        return sent.postponed or "; ".join(sent.refused.values())

    def _entry(self, event: JobStateChange) -> dict[str, Any]:
        return {"Time": event.time, "Source": self._source, "DetailType": DETAIL_TYPE, "Detail": write_detail(event)}

    def _put(self, request: Sequence[tuple[int, Mapping[str, Any]]]) -> Sent:
        try:
            answer: Any = self._client.put_events(Entries=[entry for _, entry in request])  # type: ignore[misc]
        except AwsError as error:
            reason = str(error)[:_MAX_REASON]
            if error_code(error) not in _NEVER:
                return Sent(postponed=reason)
            return self._put_singly(request) if len(request) > 1 else Sent(refused={request[0][0]: reason})
        results = answer.get("Entries", ()) if answer.get("FailedEntryCount") else [{}] * len(request)
        return _read_results([sequence for sequence, _ in request], results)

    def _put_singly(self, request: Sequence[tuple[int, Mapping[str, Any]]]) -> Sent:
        """Send entries that were refused together each by itself, as one of them may be the only one at fault."""
        taken: set[int] = set()
        refused: dict[int, str] = {}
        for each in request:
            sent = self._put([each])
            taken |= sent.taken
            refused |= sent.refused
            if sent.postponed:
                return Sent(frozenset(taken), refused, sent.postponed)
        return Sent(frozenset(taken), refused)


def _requests(entries: Sequence[tuple[int, dict[str, Any]]]) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """Return entries by request: as many as it takes, in their order."""
    request: list[tuple[int, dict[str, Any]]] = []
    size = 0
    for sequence, entry in entries:
        length = len(entry["Detail"].encode())
        if request and (len(request) == MAX_ENTRIES or size + length > _MAX_DETAILS):
            yield request
            request = []
            size = 0
        request.append((sequence, entry))
        size += length
    if request:
        yield request


def _read_results(sequences: Sequence[int], results: Sequence[Mapping[str, str]]) -> Sent:
    """Return what became of the entries of an answer; one that it does not name is sent again."""
    taken = set()
    refused = {}
    postponed = "" if len(results) == len(sequences) else "the answer does not name every entry"
    for sequence, result in zip(sequences, results, strict=False):
        code = result.get("ErrorCode", "")
        reason = f"{code}: {result.get('ErrorMessage', '')}"[:_MAX_REASON]
        if not code:
            taken.add(sequence)
        elif code in _NEVER:
            refused[sequence] = reason
        else:
            postponed = reason
    return Sent(frozenset(taken), refused, postponed)
