"""Reads what has failed: dead-letter queues and alarms."""

import re
from collections.abc import Iterator, Mapping
from functools import partial

from relaunch.core.checks import Check
from relaunch_cli.account_checks.stack import check_alarms, check_dead_letters
from relaunch_cli.account_readers.calls import AccountCalls, known

_OUTPUT = "DeadLetterQueueUrl"


def check_queues(outputs: Mapping[str, str], calls: AccountCalls) -> Iterator[Check]:
    """Check the dead-letter queues that the stack's outputs name."""
    for output, url in sorted(outputs.items()):
        if output.endswith(_OUTPUT):
            name = output.removesuffix("Url")
            yield known(f"queue {name}", partial(_check_queue, name, url, calls))


def _check_queue(name: str, url: str, calls: AccountCalls) -> Check:
    wanted = ["ApproximateNumberOfMessages"]
    answer = calls.call("sqs", "get_queue_attributes", QueueUrl=url, AttributeNames=wanted)
    return check_dead_letters(name, int(answer["Attributes"][wanted[0]]))


def check_stack_alarms(stack: str, calls: AccountCalls) -> Iterator[Check]:
    """Check the stack's alarms; CloudFormation's names of them begin with the stack's, as do those of longer names.

    Raises:
        UnreadError: they cannot be read.
    """
    found = calls.list("cloudwatch", "describe_alarms", "MetricAlarms", StateValue="ALARM", AlarmNamePrefix=f"{stack}-")
    own = [each for each in found if re.fullmatch(rf"{re.escape(stack)}-\w+Alarm-\w+", each["AlarmName"])]
    yield from check_alarms(((each["AlarmName"], each.get("StateReason", "")) for each in own), stack)
