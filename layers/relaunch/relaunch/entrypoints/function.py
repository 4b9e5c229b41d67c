"""Dependencies of a Lambda function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
    from relaunch.adapters.aws.sqs.source_queue import SourceQueue
    from relaunch.adapters.messages.topic_messages import WatchedTopics
    from relaunch.ports import DeadLetters, Dependencies


@dataclass(frozen=True)
class TopicQueue:
    """The queue to which SNS topics deliver, its own dead-letter queue, and the topics."""

    queue_arn: str
    dead_letters: DeadLetterSender
    watched: WatchedTopics


@dataclass(frozen=True)
class FunctionDependencies:
    """The ports, the queues of the function, and the dead-letter queues whose messages it counts.

    `topics` is None in a function, or of a stack, to which no topics deliver. `uploads_queue_arn` is the queue to which
    the rules and schedules of triggers send, empty if there is none.
    """

    deps: Dependencies
    source: SourceQueue
    dead_letters: DeadLetterSender
    counted: DeadLetters
    topics: TopicQueue | None = None
    uploads_queue_arn: str = ""
