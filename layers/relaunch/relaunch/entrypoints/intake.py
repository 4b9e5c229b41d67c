"""The queue `intake`: GitHub deliveries, image pushes, and calls of job_api that failed for a while.

And the queue of uploads: what the rules and schedules of triggers send. Whoever applies definitions writes what these
send, and may be let do nothing else: what comes from there is never read as a delivery or a call.
"""

from collections.abc import Mapping

from relaunch.adapters.messages.body import load_message
from relaunch.adapters.messages.failed_call import find_failed_call
from relaunch.adapters.messages.intake import is_of_triggers, parse_intake_message
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import RequestDependencies
from relaunch.usecases.submit_job import submit_event


def handle_message(body: str, deps: RequestDependencies) -> None:
    """Submit the jobs that the events of a message start, or answer a request that its caller does not wait for.

    Raises:
        PermanentError: the message is invalid, or a job cannot be created.
    """
    message = load_message(body)
    if (call := find_failed_call(message)) is not None:
        # Imported here because other messages, which are most, start without it.
        from relaunch.entrypoints.job_api import answer_request  # noqa: PLC0415

        answer = answer_request(call.request, call.request_id, deps)
        deps.log.decided("answered", request_id=call.request_id, error=answer.get("error"))
        return
    _submit(message, deps)


def handle_upload(body: str, deps: RequestDependencies) -> None:
    """Submit the jobs that an upload, an event or a time starts.

    Anything else is no dead letter, as whoever redrives would send it to the queue `intake`.

    Raises:
        PermanentError: the message is invalid, or a job cannot be created.
    """
    message = load_message(body)
    if is_of_triggers(message):
        _submit(message, deps)
    else:
        _ignore("only rules and schedules of triggers send to the queue of uploads, and this is none of theirs", deps)


def _submit(message: Mapping[str, object], deps: RequestDependencies) -> None:
    for event in parse_intake_message(message):
        if isinstance(event, IgnoredEvent):
            _ignore(event.reason, deps)
        else:
            submit_event(event, deps)


def _ignore(reason: str, deps: RequestDependencies) -> None:
    deps.log.decided("ignored", reason=reason)
    deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
