"""Dependencies of a Lambda function."""

from dataclasses import dataclass

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.ports import DeadLetters, Dependencies


@dataclass(frozen=True)
class FunctionDependencies:
    """The ports, the dead-letter queue of the function, and the dead-letter queues whose messages it counts."""

    deps: Dependencies
    dead_letters: DeadLetterSender
    counted: DeadLetters
