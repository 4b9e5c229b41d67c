"""AWS Health announces that instances will be retired, weeks or minutes ahead, again, and that it is over."""

from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from relaunch_local.ecs.engine.model import Instance, LastStatus, StateReason, Task
from relaunch_local.simulation.account import SimulatedAccount

_CODES = (
    "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
    "AWS_EC2_INSTANCE_STOP_SCHEDULED",
    "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED",
)
_SHARE = 0.15
# The sweep of stops, a save of the training, and functions that fail meanwhile.
_TIME_TO_LEAVE = timedelta(minutes=15)
_MOST = 4
_EVERY_SECONDS = 120.0
_BUSY = 1_500.0
_SOON_MINUTES = (17.0, 40.0)
_WEEKS_MINUTES = (4_320.0, 20_160.0)


class Retirements:
    """Retires a registered instance now and then, in a share of the seeds.

    EC2 stops it at the date ("Server.ScheduledStop", StateReason, Amazon EC2 API Reference). Health sends an event at
    least once, and again when something about it changes ("AWS Health event Amazon EventBridge schema").
    """

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule the first look, except where times are promised to the minute."""
        self._account = account
        self._dice = account.chance.stream("retirements")
        self._left = _MOST
        scenario = account.scenario
        if not (scenario.has_close_deadlines or scenario.returning) and self._dice.random() < _SHARE:
            account.clock.call_later(_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        if self._account.chance.is_calm or not self._left:
            return
        self._account.clock.call_later(_EVERY_SECONDS, self._look)
        hosts = [
            each for each in self._account.simulator.instances.by_id.values() if each.is_alive and each.is_registered
        ]
        # A training that ends before the date says nothing; one host in ten has none.
        busy = [each for each in hosts if any(self._seconds_left(task) > _BUSY for task in each.tasks.values())]
        chosen = hosts if self._dice.random() < 0.1 else busy
        if chosen and self._dice.random() < 0.3:
            self._left -= 1
            self._announce(self._dice.choice(chosen))

    def _seconds_left(self, task: Task) -> float:
        return self._account.trainings.seconds_left(task.arn)

    def _announce(self, host: Instance) -> None:
        minutes = self._dice.uniform(*(_SOON_MINUTES if self._dice.random() < 0.7 else _WEEKS_MINUTES))
        starts_at = self._account.clock.now() + timedelta(minutes=minutes)
        note = f"{host.instance_id}, on {starts_at:%m-%d %H:%M}"
        if not self._account.chance.strikes("instance-retired", 1e9, note=note):
            return
        code = self._dice.choice(_CODES)
        self._publish(host, code, starts_at, "upcoming")
        later = self._account.clock.call_later
        if self._dice.random() < 0.3:
            later(self._dice.uniform(1.0, 3_600.0), lambda: self._publish(host, code, starts_at, "upcoming"))
        later(minutes * 60.0, lambda: self._retire(host))
        later(minutes * 60.0 + 60.0, lambda: self._publish(host, code, starts_at, "closed"))

    def _retire(self, host: Instance) -> None:
        """Stop the instance, which nothing runs on any more if somebody knew in time."""
        if not host.is_alive:
            return
        account = self._account
        now = account.clock.now()
        known_at = account.facts.retirement_known_at.get(host.instance_id, now)
        is_known = now - known_at > _TIME_TO_LEAVE + account.facts.outage_time(known_at, now)
        # How long a stop may take that ECS has lost, time and again, is the matter of other checks.
        tasks = ", ".join(
            each.arn[-6:]
            for each in host.tasks.values()
            if each.last_status is LastStatus.RUNNING and each.arn not in account.facts.stop_asked_at
        )
        message = f"{host.instance_id}, known at {known_at:%H:%M:%S}: {tasks}"
        account.invariants.check("no task runs on an instance when AWS retires it", not (is_known and tasks), message)
        account.simulator.instances.terminate(host, StateReason.SCHEDULED_STOP)

    def _publish(self, host: Instance, code: str, starts_at: datetime, status: str) -> None:
        def detail() -> dict[str, Any]:
            return {
                "eventArn": f"arn:aws:health:us-east-1::event/EC2/{code}/{code}_{host.instance_id}",
                "service": "EC2",
                "eventTypeCode": code,
                "eventTypeCategory": "scheduledChange",
                "startTime": format_datetime(starts_at, usegmt=True),
                "statusCode": status,
                "affectedEntities": [{"entityValue": host.instance_id, "status": "PENDING"}],
            }

        self._account.simulator.region.events.publish("aws.health", "AWS Health Event", host.instance_id, detail)
