"""Add to an event what only the table or the clock knows: how many jobs came before it, and how late it is."""

from dataclasses import replace

from relaunch.core.triggers.chains import next_depth, sent_environment
from relaunch.core.triggers.events import BusEvent, ScheduledTime
from relaunch.ports import SubmitDependencies


def complete_event(event: BusEvent | ScheduledTime, deps: SubmitDependencies) -> BusEvent | ScheduledTime:
    """Return the event with the place of its job in a chain, or with when it is handled.

    Of a job of another stack, which is not known here, the event says it.

    Raises:
        TransientError: the job cannot be read now.
    """
    if isinstance(event, ScheduledTime):
        return replace(event, handled_at=deps.clock.now())
    if not event.job_id:
        return event
    job = deps.jobs.load_job(event.job_id)
    environment = job.trigger.environment if job is not None else sent_environment(event.content)
    return replace(event, depth=next_depth(environment))
