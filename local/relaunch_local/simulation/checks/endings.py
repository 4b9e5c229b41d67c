"""Checks that somebody is told of a machine that EC2 does not end although it was asked to.

That it is asked again, ends once EC2 does what it says, is not forgotten before, and counts as long as it lives, are
checks of checks/machines.py, which hold for it as for any other.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.model import Instance, InstanceState

# What the design says, written down here once more: the checks believe no constant of the application.
_TOLD_AFTER = timedelta(minutes=30)
# A metric is counted once the decision is saved: where the answer to that is lost, it is not until the next time.
_TOLD_EVERY = timedelta(hours=1)
# A run of the schedule that fails, as most do with many faults, is made up for by the next ones.
_LATE = timedelta(minutes=30)


@dataclass(slots=True)
class Endings:
    """Watches the machines that EC2 does not end, and implements Metrics."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _told: set[str] = field(default_factory=set)
    """The instances that alerts in the log name."""
    _counted_at: list[datetime] = field(default_factory=list)
    """When TerminationsRefused was counted."""

    def alert(self, instance_id: str) -> None:
        """Note that an alert in the log names an instance."""
        self._told.add(instance_id)

    def record(self, *metrics: MetricDatum) -> None:
        """Note when the metric was counted."""
        self._counted_at += [self._clock.now() for each in metrics if each.metric is Metric.TERMINATIONS_REFUSED]

    def disobeys(self, host: Instance) -> None:
        """Note that EC2 is asked to end a machine for the first time, and does not."""
        asked_at = self._clock.now()
        told_by = _TOLD_AFTER + _LATE
        self._clock.call_later(told_by.total_seconds(), lambda: self._check_told(host, asked_at))
        counted_by = told_by + _TOLD_EVERY
        self._clock.call_later(counted_by.total_seconds(), lambda: self._check_counted(host, asked_at))

    def _check_told(self, host: Instance, asked_at: datetime) -> None:
        if host.state is not InstanceState.TERMINATED:
            is_told = host.instance_id in self._told
            self._check("somebody is told of a machine that does not end", is_told, _describe(host, asked_at))

    def _check_counted(self, host: Instance, asked_at: datetime) -> None:
        if host.state is not InstanceState.TERMINATED:
            is_counted = any(at >= asked_at for at in self._counted_at)
            self._check("a machine that does not end is counted", is_counted, _describe(host, asked_at))


def _describe(host: Instance, asked_at: datetime) -> str:
    return f"{host.instance_id} is {host.state.value}, and was to end at {asked_at:%H:%M:%S}"
