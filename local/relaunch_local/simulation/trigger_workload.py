"""People change triggers and apply that; others send events to the bus and publish on topics."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from relaunch.core.definitions.definition import JobDefinition, ScheduleTrigger
from relaunch.ports import PortError
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.applying import Applying
from relaunch_local.simulation.authorization import COMMAND
from relaunch_local.simulation.aws.runtime import Invocation, KilledError
from relaunch_local.simulation.aws.sns import Topics
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.checks.trigger_starts import TopicMessageSent
from relaunch_local.simulation.other_triggers import (
    EVENT_TYPE,
    OtherTriggers,
    PlannedBusEvent,
    PlannedChange,
    PlannedTopicMessage,
)

_AGAIN_SECONDS = (5.0, 600.0)
_FIRST_NUMBER = 10_000


class TriggerWorkload:
    """Does what a seed has planned with other triggers."""

    def __init__(self, account: SimulatedAccount, applying: Applying) -> None:
        """Schedule everything, if there is something."""
        self._account = account
        self._applying = applying
        self._dice = account.chance.stream("trigger-workload")
        self._numbers = itertools.count(_FIRST_NUMBER)
        self._to_apply = 0
        """How many changes were made to the file and are not applied yet."""
        planned = account.scenario.other_triggers
        self._topics = Topics(account.queues, account.clock, account.chance, account.outages)
        if planned is not None:
            self._plan(planned)

    def _plan(self, planned: OtherTriggers) -> None:
        later = self._account.clock.call_later
        for change in planned.changes:
            later(change.at_seconds, partial(self._change, change))
        for event in planned.events:
            later(event.at_seconds, partial(self._send, event))
        for message in planned.messages:
            later(message.at_seconds, partial(self._publish, message))

    def end(self) -> None:
        """Remove every schedule."""
        if self._account.scenario.other_triggers is None:
            return

        def without_schedules(definition: JobDefinition) -> JobDefinition:
            kept = tuple(each for each in definition.triggers if not isinstance(each, ScheduleTrigger))
            return replace(definition, triggers=kept)

        for each in self._account.scenario.definitions:
            self._applying.change(each.name, without_schedules)
        self._apply()

    @property
    def is_over(self) -> bool:
        """Whether nothing is to be applied any more, and everything that was sent has arrived."""
        arrivals = (self._account.starts.last_arrival, self._account.scheduler.last_arrival)
        now = self._account.clock.now()
        return not self._to_apply and all(each is None or each < now for each in arrivals)

    def _change(self, change: PlannedChange) -> None:
        def changed(definition: JobDefinition) -> JobDefinition:
            kept = tuple(each for each in definition.triggers if each not in change.removed)
            return replace(definition, triggers=(*kept, *change.added))

        self._applying.change(change.definition, changed)
        self._apply()

    def _apply(self) -> None:
        """Run `relaunch apply` until it succeeds."""
        self._to_apply += 1
        self._try()

    def _try(self) -> None:
        account = self._account

        def on_end(_answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._to_apply -= 1
                return
            if not isinstance(error, KilledError | PortError):
                account.invariants.unhandled("relaunch apply", error)
            account.clock.call_later(self._dice.uniform(*_AGAIN_SECONDS), self._try)

        register: Callable[[], None] = self._applying.register
        account.runtime.start(Invocation(-next(self._numbers), COMMAND), register, on_end)

    def _send(self, planned: PlannedBusEvent) -> None:
        account = self._account
        detail = {"rows": planned.rows, **({} if planned.size is None else {"size": planned.size})}
        event = {
            "version": "0",
            "id": account.simulator.region.ids.uuid(),
            "source": planned.source,
            "detail-type": EVENT_TYPE,
            "account": ACCOUNT,
            "region": REGION,
            "time": iso(account.clock.now(), timespec="seconds"),
            "resources": [],
            "detail": detail,
        }
        account.starts.publish(account.bus, event)

    def _publish(self, planned: PlannedTopicMessage) -> None:
        account = self._account
        message_id = account.simulator.region.ids.uuid()
        sent = TopicMessageSent(planned.topic, message_id, planned.attributes, account.clock.now())
        account.starts.messages.append(sent)
        text = json.dumps({"built": True})
        account.starts.arrives(self._topics.publish(planned.topic, message_id, text, planned.attributes))
