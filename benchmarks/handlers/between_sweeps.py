"""reconcile at a minute in which it sweeps neither the cluster nor instances: the same whenever it is measured."""

from datetime import datetime, timedelta

from reconcile.handler import handle
from relaunch.bootstrap import SystemClock
from relaunch.usecases.reconcile_machines import is_instance_sweep_due
from relaunch.usecases.sweep_cluster import is_sweep_due

__all__ = ["handle"]

_now = SystemClock.now


def _between_sweeps(self: SystemClock) -> datetime:
    now = _now(self)
    is_due = is_sweep_due(now) or is_instance_sweep_due(now)
    return now + timedelta(minutes=1) if is_due else now


SystemClock.now = _between_sweeps  # type: ignore[method-assign]
