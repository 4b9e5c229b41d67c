"""reconcile at a minute in which it does not sweep the cluster: it does the same whenever it is measured."""

from datetime import datetime, timedelta

from reconcile.handler import handle
from relaunch.bootstrap import SystemClock
from relaunch.usecases.sweep_cluster import is_sweep_due

__all__ = ["handle"]

_now = SystemClock.now


def _between_sweeps(self: SystemClock) -> datetime:
    now = _now(self)
    return now + timedelta(minutes=1) if is_sweep_due(now) else now


SystemClock.now = _between_sweeps  # type: ignore[method-assign]
