"""Checks of machines of our own whose agent is away, by what ECS published, EC2 ended and S3 has."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.machines.machine import Machine, MachineState
from relaunch_local.ecs import Clock, Event
from relaunch_local.ecs.engine.model import Instance, Task
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import AccountFacts

# What the design says, written down here once more.
_AWAY = timedelta(minutes=30)
_IMPAIRED = timedelta(minutes=5)
_MARGIN = timedelta(minutes=1)
_LIVES_ON = timedelta(hours=1)
_DOUBT = timedelta(hours=2)
_MOST_IN_DOUBT = 2
# An outage that lasts as long as a sweep and some looks cannot be overlooked.
_NOTICED_OUTAGE = timedelta(minutes=20)
# The clocks of functions differ from AWS's by up to three seconds, and a function runs for a minute at most.
_CLOCK_SKEW = timedelta(seconds=7)
_LONGEST_FUNCTION = timedelta(seconds=67)


@dataclass(slots=True)
class AbsentAgentChecks:
    """Checks that machines are ended for their agent in time, and neither earlier nor in an outage."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _facts: AccountFacts
    _own: Mapping[str, Instance]
    """By EC2 instance."""
    _objects: ObjectStore
    _every: Callable[[], Iterable[Instance]]
    _away_since: dict[str, datetime] = field(default_factory=dict)
    _outage_since: datetime | None = None
    _most_away: int = 0
    """How many agents were away in the last outage at most."""
    _outage_end: datetime | None = None
    """The end of the last outage."""
    _noticed_end: datetime | None = None
    """The end of the last outage that could not be overlooked."""

    def observe(self, event: Event) -> None:
        """Note an event of ECS or EC2, whether it is delivered or not."""
        now = self._clock.now()
        detail = event["detail"]
        if event["detail-type"] == "ECS Container Instance State Change":
            if detail["agentConnected"]:
                self._check_lived(detail["ec2InstanceId"])
                self._away_since.pop(detail["ec2InstanceId"], None)
            else:
                self._away_since.setdefault(detail["ec2InstanceId"], now)
        elif event["detail-type"] == "EC2 Instance State-change Notification" and detail["state"] == "shutting-down":
            self._check_lived(detail["instance-id"])
            self._away_since.pop(detail["instance-id"], None)
        self._note_outage(now)

    def _note_outage(self, now: datetime) -> None:
        living = [each for each in self._every() if each.is_alive and each.is_registered]
        away = sum(not each.agent_connected for each in living)
        if away >= 2 and 2 * away > len(living):
            self._most_away = max(away, self._most_away if self._outage_since is not None else 0)
            self._outage_since = self._outage_since or now
        elif self._outage_since is not None:
            if now - self._outage_since >= _NOTICED_OUTAGE:
                self._noticed_end = now
            self._outage_since = None
            self._outage_end = now

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Check a machine that ends although a training runs on it that nobody asked to stop."""
        if before is None or before.state is not MachineState.READY or machine.state is not MachineState.ENDING:
            return
        host = self._own.get(machine.instance_id or "")
        now = self._clock.now()
        if host is None or not host.is_alive or self._facts.was_threatened(host.instance_id):
            return
        since = self._away_since.get(host.instance_id)
        if since is None or not before.claims or not self._wanted_on(host):
            # What ends then is a matter of other checks.
            return
        saved_at = self._saved_at(host)
        started = max(each for each in (since, self._noticed_end) if each is not None)
        least = (_IMPAIRED if host.is_impaired else _AWAY) - _CLOCK_SKEW
        message = f"{host.instance_id}: away since {since}, saved at {saved_at}, last outage until {self._outage_end}"
        in_time = now - started >= least
        self._check("no machine is ended for its agent before its time", in_time, message)
        # What came while a function ran it may not have seen.
        if saved_at is not None and now - saved_at > _LONGEST_FUNCTION:
            is_lost = now - saved_at >= least - _MARGIN
            self._check("no machine is ended for its agent while its training saves", is_lost, message)
        lasts = now - self._outage_since if self._outage_since is not None else timedelta()
        # Of two agents nobody can tell whether ECS has an outage or their hosts hang.
        may_hang = (
            self._most_away <= _MOST_IN_DOUBT and now - since >= (_AWAY if host.is_impaired else _DOUBT) - _MARGIN
        )
        is_outage = lasts > _LONGEST_FUNCTION and not may_hang
        self._check("no machine is ended for its agent in an outage", not is_outage, message)

    def check_end(self) -> None:
        """Check the machines that live at the end."""
        for instance_id in list(self._away_since):
            self._check_lived(instance_id)

    def _check_lived(self, instance_id: str) -> None:
        host = self._own.get(instance_id)
        since = self._away_since.get(instance_id)
        if host is None or since is None or not self._tasks_on(host):
            return
        now = self._clock.now()
        heard = [since, self._saved_at(host), self._outage_end, now if self._outage_since is not None else None]
        heard_at = max(each for each in heard if each is not None)
        lived = now - heard_at - self._facts.outage_time(heard_at, now)
        message = f"{instance_id}: {lived}"
        self._check("no machine of ours lives on for an hour while its agent is away", lived <= _LIVES_ON, message)

    def _tasks_on(self, host: Instance) -> list[Task]:
        return [each for each in host.tasks.values() if each.last_status != "STOPPED"]

    def _wanted_on(self, host: Instance) -> list[Task]:
        """Return the tasks on the host that nobody asked to stop, and that ECS did not say it does not know.

        One that stops by itself, and whose stop is not confirmed for long, is as good as one that was asked to.
        """
        now = self._clock.now()
        return [
            each
            for each in self._tasks_on(host)
            if each.arn not in self._facts.stop_asked_at
            and not self._facts.stops_for_long(each.arn)
            and not self._facts.may_be_lost(each.arn, None, now)
        ]

    def _saved_at(self, host: Instance) -> datetime | None:
        """Return when a job whose task is on the host last completed a checkpoint; the task is its only one."""
        names = [(each.started_by or "").rpartition("/")[0] for each in self._tasks_on(host)]
        return max(
            (self._objects.completed_at[each] for each in names if each in self._objects.completed_at), default=None
        )
