"""Checks that a task trains on after a notice of EC2 where the stack wants it.

What Relaunch tells ECS as the reason of a stop says which notice it answers; when that was given, EC2 knows, and
whether another machine was there, ECS does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch_local.ecs import Clock, Event
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.checks.facts import TASK_STATE_CHANGE, AccountFacts
from relaunch_local.simulation.checks.members import placement_of

# Of the two minutes of a warning, SIGKILL comes 90 s after SIGTERM, and ten are for what happens on the way.
_LEAST = timedelta(seconds=15)
# What was there is what a function read a minute ago.
_LONGEST_FUNCTION = timedelta(seconds=67)
_WARNED = "spot interruption warning for i-"
_RECOMMENDED = "rebalance recommendation for i-"


@dataclass(slots=True)
class EarlyStops:
    """Watches the tasks that are asked to stop."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _facts: AccountFacts
    _hosts: Mapping[str, Instance]
    """The instances that EC2 Fleet launched."""
    _limits: MachineLimits
    """What says whether the stack lets tasks train on until the next machine is ready (MachineTaskStop)."""
    _asked: set[str] = field(default_factory=set)
    _running_told: dict[str, datetime] = field(default_factory=dict)
    """By task: when a function had handled the event that it runs."""
    _was_another_there: dict[str, bool] = field(default_factory=dict)
    """By task: whether another machine was there as StopTask was first sent, which may have had no effect."""

    def task_change_handled(self, detail: Mapping[str, Any]) -> None:
        """Note an event of a task that a function handled without an error."""
        if detail["lastStatus"] == "RUNNING":
            self._running_told.setdefault(detail["taskArn"], self._clock.now())

    def stop_asked(self, task_arn: str) -> None:
        """Note a StopTask of the application."""
        host = self._hosts.get(self._facts.host_of(task_arn))
        if host is not None and task_arn not in self._was_another_there:
            self._was_another_there[task_arn] = self._is_another_there(host)

    def observe(self, event: Event) -> None:
        """Check a task that begins to stop."""
        if event["detail-type"] != TASK_STATE_CHANGE or self._limits.task_stop is not TaskStop.WHEN_NEXT_READY:
            return
        detail = event["detail"]
        arn = detail["taskArn"]
        if detail["desiredStatus"] != "STOPPED" or arn in self._asked:
            return
        self._asked.add(arn)
        reason = str(detail.get("stoppedReason", ""))
        host = self._hosts.get(self._facts.host_of(arn))
        if host is None or detail["lastStatus"] != "RUNNING" or not (_WARNED in reason or _RECOMMENDED in reason):
            return
        if not reason.endswith(host.instance_id):
            return  # whoever cannot read its job does not know that it may train on
        noticed_at = self._facts.noticed_at(host.instance_id) or self._clock.now()
        is_early = self._running_told.get(arn, self._clock.now()) >= noticed_at
        # What is launched together stops together.
        is_one_of_several = placement_of(detail) != arn
        # What was asked to stop may save already: that the other machine is lost meanwhile takes nothing back.
        if is_early or is_one_of_several or self._was_another_there.get(arn, False):
            return
        warned_at = self._facts.warned_at(host.instance_id)
        is_last_moment = _WARNED in reason and warned_at is not None and self._clock.now() >= warned_at + _LEAST
        message = f"{arn[-6:]} is stopped at {self._clock.now():%H:%M:%S}: {reason}; EC2's notice is of {noticed_at}"
        self._check("a task trains on until its last moment where the stack wants it", is_last_moment, message)

    def _is_another_there(self, host: Instance) -> bool:
        """Return whether another machine of our own may be ready for the job of a task on this one."""
        since = self._clock.now() - _LONGEST_FUNCTION
        others = (each for each in self._hosts.values() if each.instance_id != host.instance_id)
        known = (each for each in others if each.registered_at is not None and (each.ended_at or since) >= since)
        return any(not each.tasks or _may_have_room(each) for each in known)


def _may_have_room(host: Instance) -> bool:
    """Return whether a GPU, a share of one or a Neuron device may be free."""
    neuron_devices = load_catalogue()[host.instance_type].neuron_devices
    return bool(host.free_gpu_ids or host.gpu_shares) or len(host.tasks) < neuron_devices
