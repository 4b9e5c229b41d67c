"""What a Lambda function is made of besides its code."""

from dataclasses import dataclass

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.ports import Dependencies


@dataclass(frozen=True)
class FunctionDependencies:
    """The ports, and the function's own dead-letter queue."""

    deps: Dependencies
    dead_letters: DeadLetterSender
