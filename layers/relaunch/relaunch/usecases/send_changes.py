"""Send the changes of a job to EventBridge. It holds up nothing: what it does not take now is sent later."""

from collections.abc import Mapping

from relaunch.core.jobs.changes import KEPT_UNSENT, MAX_UNSENT, Outbox
from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.change_events import event_of
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.ports import JobDependencies


class ChangeSender:
    """Sends what changed of jobs, and says what is given up."""

    def __init__(self, deps: JobDependencies) -> None:
        """Create it with what it calls."""
        self._deps = deps

    def send(self, job: Job) -> Outbox:
        """Send the changes of a job that EventBridge does not have, oldest first; return the outbox to save then."""
        deps = self._deps
        now = deps.clock.now()
        sent = deps.job_events.send([event_of(job, change) for change in job.outbox.unsent])
        outbox = job.outbox.without(sent.taken)
        late = dict.fromkeys(outbox.too_old(now), f"not taken for {KEPT_UNSENT.days} day: {sent.postponed}")
        given_up = {**late, **sent.refused}
        self._give_up(job, given_up)
        outbox = outbox.without(frozenset(given_up))
        if not outbox.unsent:
            return outbox
        count = len(outbox.unsent)
        deps.log.decided("events postponed", job_id=job.job_id, unsent=count, reason=sent.postponed)
        deps.metrics.record(MetricDatum(Metric.EVENTS_POSTPONED, count))
        return outbox.postponed(now)

    def note_dropped(self, before: Job, after: Job) -> None:
        """Say which changes a job gives up because it keeps too many."""
        kept = {each.sequence for each in after.outbox.unsent}
        dropped = [each.sequence for each in before.outbox.unsent if each.sequence not in kept]
        self._give_up(before, dict.fromkeys(dropped, f"{MAX_UNSENT} later ones wait to be sent"))

    def _give_up(self, job: Job, reasons: Mapping[int, str]) -> None:
        for sequence, reason in sorted(reasons.items()):
            self._deps.log.decided("event given up", job_id=job.job_id, sequence=sequence, is_alert=True, reason=reason)
        if reasons:
            self._deps.metrics.record(MetricDatum(Metric.EVENTS_GIVEN_UP, len(reasons)))
