"""The queue `intake`: GitHub deliveries, uploads, image pushes, and calls of job_api that failed for a while."""

from relaunch.adapters.messages.body import load_message
from relaunch.adapters.messages.failed_call import find_failed_call
from relaunch.adapters.messages.intake import parse_intake_message
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
    for event in parse_intake_message(message):
        if isinstance(event, IgnoredEvent):
            deps.log.decided("ignored", reason=event.reason)
            deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
        else:
            submit_event(event, deps)
