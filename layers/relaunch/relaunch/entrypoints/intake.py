"""The queue `intake`: GitHub deliveries, uploads and image pushes."""

from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.ports import SubmitDependencies
from relaunch.usecases.submit_job import submit_event


def handle_message(body: str, deps: SubmitDependencies) -> None:
    """Submit the jobs that the events of a message start.

    Raises:
        PermanentError: the message is invalid, or a job cannot be created.
    """
    for event in parse_intake_message(body):
        if isinstance(event, IgnoredEvent):
            deps.log.decided("ignored", reason=event.reason)
            deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
        else:
            submit_event(event, deps)
