"""Creates what submit_job needs for messages of SNS topics."""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch import late_parts as parts
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.entrypoints.function import TopicQueue
from relaunch.ports import DecisionLog
from relaunch.setting_values import required, split

_QUEUE = "RELAUNCH_SNS_QUEUE_ARN"


def topic_queue(
    environment: Mapping[str, str], client: Callable[[str], Any], log: DecisionLog, last_try: int
) -> TopicQueue | None:
    """Return the queue of topics, None in a function to which none deliver.

    Raises:
        InvalidSettingsError: the queue is set, and its dead-letter queue or the topics are not.
    """
    queue_arn = environment.get(_QUEUE, "")
    if not queue_arn:
        return None
    url = required(environment, "RELAUNCH_SNS_DEAD_LETTER_QUEUE_URL")
    topics = frozenset(split(required(environment, "RELAUNCH_SNS_TOPIC_ARNS")))
    of_notices = frozenset(split(environment.get("RELAUNCH_NOTICE_TOPIC_ARNS", "")))
    return TopicQueue(
        queue_arn, DeadLetterSender(client("sqs"), url, log, last_try), parts.WatchedTopics(topics, of_notices)
    )
