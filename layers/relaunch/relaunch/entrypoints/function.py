"""Dependencies of a Lambda function."""

from dataclasses import dataclass

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.ports import DeadLetters, Dependencies


@dataclass(frozen=True)
class FunctionDependencies:
    """The ports, the queues of the function, and the dead-letter queues whose messages it counts."""

    deps: Dependencies
    source: SourceQueue
    dead_letters: DeadLetterSender
    counted: DeadLetters
