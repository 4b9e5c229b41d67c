"""Topics of SNS: their messages in the JSON of SNS, and the queue of the stack to which they are delivered.

A message is delivered at least once, in no order, and tried again while the queue is away ("Message delivery retries",
Amazon SNS Developer Guide).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.messages.topic_messages import WatchedTopics
from relaunch.entrypoints.function import TopicQueue
from relaunch.ports import DecisionLog
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.region import iso
from relaunch_local.simulation.aws.outages import SQS, Outages
from relaunch_local.simulation.aws.sqs import Queues
from relaunch_local.simulation.aws.template import ACCOUNT, REGION
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.other_triggers import TOPICS

TOPICS_QUEUE = "SnsQueue"
_DEAD_LETTERS = "SnsDeadLetterQueue"


def topic_queue(function: str, sqs: Any, log: DecisionLog) -> TopicQueue | None:
    """Return the queue of topics of the function that has it."""
    if function != "submit_job":
        return None
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:{TOPICS_QUEUE}"
    return TopicQueue(arn, DeadLetterSender(sqs, _DEAD_LETTERS, log), WatchedTopics(frozenset(TOPICS)))


@dataclass(slots=True)
class Topics:
    """Delivers what is published on topics to the queue of the stack, which is subscribed to each."""

    _queues: Queues
    _clock: Clock
    _chance: Chance
    _outages: Outages

    def publish(self, topic: str, message_id: str, text: str, attributes: Mapping[str, str]) -> datetime:
        """Publish a message; return when the queue has the last copy."""
        named = {name: {"Type": "String", "Value": value} for name, value in attributes.items()}
        body = json.dumps(
            {
                "Type": "Notification",
                "MessageId": message_id,
                "TopicArn": topic,
                "Message": text,
                "Timestamp": iso(self._clock.now(), timespec="milliseconds"),
                "SignatureVersion": "1",
                "MessageAttributes": named,
            }
        )
        stream = self._chance.stream("sns")
        delay = stream.uniform(0.02, 0.5) + self._outages.seconds_left(SQS)
        note = message_id[-6:]
        if self._chance.strikes("topic-message-late", 0.1, note=note):
            delay += stream.uniform(5.0, 1_800.0)
        delays = [delay]
        if self._chance.strikes("topic-message-twice", 0.2, note=note):
            delays.append(delay + stream.choice((0.0, 20.0, 600.0)) * stream.random())
        for each in delays:
            self._clock.call_later(each, lambda: self._queues.send(TOPICS_QUEUE, body))
        return self._clock.now() + timedelta(seconds=max(delays))
