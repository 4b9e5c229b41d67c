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
    _outage_time: Callable[[datetime, datetime], timedelta]
    """Returns how much longer something may take: services were away, and a machine could not be read or looked at."""
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
        self._check_later(host, asked_at, told_by, "somebody is told of a machine that does not end", self._is_told)
        counted_by = told_by + _TOLD_EVERY
        self._check_later(host, asked_at, counted_by, "a machine that does not end is counted", self._is_counted)

    def _check_later(
        self,
        host: Instance,
        asked_at: datetime,
        within: timedelta,
        invariant: str,
        holds: Callable[[Instance, datetime], bool],
    ) -> None:
        """Check an invariant once the time and the outages in it are over, unless the machine has ended."""

        def check() -> None:
            now = self._clock.now()
            left = asked_at + within + self._outage_time(asked_at, now) - now
            if left > timedelta(0):
                self._clock.call_later(left.total_seconds(), check)
            elif host.state is not InstanceState.TERMINATED:
                self._check(invariant, holds(host, asked_at), _describe(host, asked_at))

        check()

    def _is_told(self, host: Instance, _asked_at: datetime) -> bool:
        return host.instance_id in self._told

    def _is_counted(self, _host: Instance, asked_at: datetime) -> bool:
        return any(at >= asked_at for at in self._counted_at)


def _describe(host: Instance, asked_at: datetime) -> str:
    return f"{host.instance_id} is {host.state.value}, and was to end at {asked_at:%H:%M:%S}"
