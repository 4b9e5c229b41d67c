"""EventBridge: rules and their queues; delivery is at least once, unordered, late, and sometimes lost."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.triggers.upload_rules import event_template, wanted_rules
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.outages import EVENTBRIDGE, SQS, Outages
from relaunch_local.simulation.aws.sqs import Queues
from relaunch_local.simulation.aws.template import CLUSTER, Rule
from relaunch_local.simulation.chance import Chance

# Warnings are best effort, and an event that cannot be delivered is dropped in the end. An upload without an event was
# never accepted, so S3's events are not lost here.
_MAY_BE_LOST = frozenset({"aws.ec2", "aws.ecs", "aws.ecr"})
_EVENT = "<aws.events.event.json>"

UPLOAD_RULES = f"relaunch-{CLUSTER}-"
"""What the names of the rules begin with that `apply` makes."""


def upload_rules(definitions: Iterable[JobDefinition]) -> tuple[Rule, ...]:
    """Return the rules that `apply` makes for definitions."""
    wanted = wanted_rules(definitions, UPLOAD_RULES)
    return tuple(
        Rule(each.name, json.loads(each.pattern), "UploadsQueue", 86_400.0, event_template(each.name, each.pattern))
        for each in wanted
    )


@dataclass(slots=True)
class EventBus:
    """Delivers events to the queues of the rules that match them."""

    _rules: tuple[Rule, ...]
    _queues: Queues
    _clock: Clock
    _chance: Chance
    _outages: Outages
    held_until: datetime | None = None
    """Until when ECS's events are held back."""
    _candidates: dict[tuple[str, str], list[Rule]] = field(default_factory=dict)

    def upload_rules(self) -> tuple[Rule, ...]:
        """Return the rules that `apply` made."""
        return tuple(each for each in self._rules if each.name.startswith(UPLOAD_RULES))

    def replace_upload_rules(self, rules: Iterable[Rule]) -> None:
        """Let these be the rules that `apply` made."""
        others = (each for each in self._rules if not each.name.startswith(UPLOAD_RULES))
        self._rules = (*others, *rules)
        self._candidates.clear()

    def publish(self, event: Mapping[str, Any]) -> float | None:
        """Deliver an event to every target of the rules that match it; return when the last has it, in seconds.

        None: one of them never gets it.
        """
        kind = (event["source"], event["detail-type"])
        if kind not in self._candidates:
            known = {"source": event["source"], "detail-type": event["detail-type"]}
            self._candidates[kind] = [
                rule
                for rule in self._rules
                if all(known[key] in rule.pattern[key] for key in known if key in rule.pattern)
            ]
        delays = [self._deliver(rule, event) for rule in self._candidates[kind] if rule.matches(event)]
        arriving = [delay for delay in delays if delay is not None]
        return max(arriving, default=0.0) if len(arriving) == len(delays) else None

    def _deliver(self, rule: Rule, event: Mapping[str, Any]) -> float | None:
        source = event["source"]
        note = f"{event['detail-type']} {_summarize(event)}"
        if source in _MAY_BE_LOST and self._chance.strikes("event-lost", 0.012, site=source, note=note):
            return None
        body = json.dumps(event)
        body = rule.template.replace(_EVENT, body) if rule.template else body
        delay = self._delay(source, note)
        if delay > rule.max_age_seconds:
            self._queues.dead_letter(f"{rule.queue}:given-up", body, "EventBridge dropped it")
            return None
        self._later(rule, body, delay)
        if self._chance.strikes("event-duplicated", 0.03, site=source, note=note):
            self._later(rule, body, delay + self._chance.stream("event-copies").uniform(0.0, 60.0))
        return delay

    def _delay(self, source: str, note: str) -> float:
        delay = self._chance.stream(f"event-latency/{source}").uniform(0.1, 1.0)
        if self._chance.strikes("event-reordered", 0.03, site=source, note=note):
            delay += self._chance.stream("event-order").uniform(1.0, 45.0)
        if self._chance.strikes("event-delayed", 0.006, site=source, note=note):
            delay += self._chance.stream("event-delay").uniform(60.0, 900.0)
        if self._chance.strikes("event-retried-for-hours", 0.001, site=source, note=note):
            longest = 86_400.0 * 1.1 if source in _MAY_BE_LOST else 3_600.0
            delay += self._chance.stream("event-retries").uniform(900.0, longest)
        # What EventBridge cannot deliver, to a queue that is away too, it delivers later.
        delay += max(self._outages.seconds_left(EVENTBRIDGE), self._outages.seconds_left(SQS))
        if source == "aws.ecs" and self.held_until is not None:
            delay += max((self.held_until - self._clock.now()).total_seconds(), 0.0)
        return delay

    def _later(self, rule: Rule, body: str, delay: float) -> None:
        self._clock.call_later(delay, lambda: self._queues.send(rule.queue, body))


def _summarize(event: Mapping[str, Any]) -> str:
    detail = event["detail"]
    task = str(detail.get("taskArn", ""))[-6:]
    parts = (task, detail.get("lastStatus"), detail.get("instance-id"), detail.get("state"))
    return " ".join(str(part) for part in parts if part)
