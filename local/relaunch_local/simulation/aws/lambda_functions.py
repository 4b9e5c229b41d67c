"""Lambda: time-outs, batches from queues, asynchronous invocations and their retries, and the schedule."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.entrypoints.batches import handle_batch
from relaunch.entrypoints.consumers import CONSUMERS, handler_of
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.entrypoints.reconcile import reconcile
from relaunch.entrypoints.sns import handle_message as handle_topic_message
from relaunch.ports import Dependencies, PermanentError, PortError, TransientError
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.message_times import MessageTimes
from relaunch_local.simulation.aws.outages import LAMBDA, SQS, Outages
from relaunch_local.simulation.aws.runtime import Invocation, KilledError, Runtime
from relaunch_local.simulation.aws.sns import TOPICS_QUEUE
from relaunch_local.simulation.aws.sqs import Message, Queues
from relaunch_local.simulation.aws.template import ACCOUNT, NOTICES_QUEUES, REGION, FunctionSettings, Stack

OnEnd = Callable[[Any, BaseException | None], None]
_CLOCK_SKEW_SECONDS = 3.0
_ASYNCHRONOUS_RETRY_SECONDS = (60.0, 120.0)


class ThrottledError(Exception):
    """Lambda has no concurrency left for an invocation: TooManyRequestsException, or 429 from a function URL."""


@dataclass(frozen=True, slots=True)
class Context:
    """What Lambda tells a function of its invocation."""

    _clock: Clock
    _ends_at: datetime

    def get_remaining_time_in_millis(self) -> int:
        """Return what is left of the time-out."""
        return int((self._ends_at - self._clock.now()).total_seconds() * 1000)


@dataclass
class Lambdas:
    """The functions of the stack, each with its dependencies."""

    _stack: Stack
    _dependencies_of: Callable[[str], FunctionDependencies]
    _queues: Queues
    _runtime: Runtime
    _unhandled: Callable[[str, BaseException], None]
    """Called with each unexpected exception, and the function that raised it."""
    _on_handled: Callable[[str, str, datetime], None]
    """Called with each message that was handled without an error, and when handling began."""
    _outages: Outages
    _check: Callable[[str, bool, str], None]
    passes: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=lambda: defaultdict(list))
    """By function: when those of its passes for a schedule began and ended of which no call failed for good."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _times: MessageTimes = field(init=False)

    def __post_init__(self) -> None:
        """Watch how long it takes until what functions are asked for is done."""
        self._times = MessageTimes(self._runtime.clock, self._check, partial(self._outages.time_within, only=LAMBDA))

    def call(self, name: str, body: Callable[[], Any], on_end: OnEnd, asked: str = "") -> None:
        """Invoke a function once; `asked` names what for, the same each time that somebody tries again."""
        if self._outages.is_away(LAMBDA):
            on_end(None, ThrottledError(name))
            return
        invocation = Invocation(next(self._numbers), name)
        began_at = self._runtime.clock.now()

        def note(answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._times.ended(name, asked)
            else:
                self._times.broke_off(name, None if invocation.failed_calls else began_at, error, asked)
            on_end(answer, error)

        self._invoke(self._stack.functions[name], body, note, invocation)

    def call_asynchronously(self, name: str, body: Callable[[], Any], request: Mapping[str, Any] | None = None) -> None:
        """Invoke a function as `InvocationType=Event` does: Lambda retries, then gives up."""
        settings = self._stack.functions[name]
        if (seconds := self._outages.seconds_left(LAMBDA)) > settings.asynchronous_seconds:
            self._give_up(settings, request, "EventAgeExceeded")
        else:
            self._runtime.clock.call_later(seconds, lambda: self._try(settings, body, request, 1))

    def _try(
        self, settings: FunctionSettings, body: Callable[[], Any], request: Mapping[str, Any] | None, number: int
    ) -> None:
        invocation = Invocation(next(self._numbers), settings.name)
        began_at = self._runtime.clock.now()

        def on_end(_answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._times.ended(settings.name)
                if not invocation.failed_calls:
                    self.passes[settings.name].append((began_at, self._runtime.clock.now()))
                return
            if not isinstance(error, (KilledError, TransientError, PermanentError)):
                self._unhandled(settings.name, error)
            self._times.broke_off(settings.name, None if invocation.failed_calls else began_at, error)
            if number >= settings.asynchronous_tries:
                self._give_up(settings, request, "RetriesExhausted")
                return
            self._runtime.chance.note_organic("asynchronous-retry")
            delay = _ASYNCHRONOUS_RETRY_SECONDS[number - 1]
            self._runtime.clock.call_later(delay, lambda: self._try(settings, body, request, number + 1))

        self._invoke(settings, body, on_end, invocation)

    def _give_up(self, settings: FunctionSettings, request: Mapping[str, Any] | None, condition: str) -> None:
        """Send a call to the function's on-failure destination, if it has one ("Capturing records", Lambda)."""
        if settings.on_failure:
            context = {"requestId": f"request-{next(self._numbers)}", "condition": condition}
            record = {"version": "1.0", "requestContext": context, "requestPayload": request}
            seconds = self._outages.seconds_left(SQS)
            self._queues.send(settings.on_failure, json.dumps(record), delay_seconds=seconds)

    def reconcile(self) -> None:
        """Invoke reconcile once by the schedule; the next invocation is its retry."""
        event = {"source": "aws.events", "time": f"{self._runtime.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
        settings = self._stack.functions["reconcile"]
        context = Context(self._runtime.clock, self._runtime.clock.now() + timedelta(seconds=settings.timeout_seconds))

        self.call_asynchronously(
            "reconcile",
            lambda: reconcile(event, self._dependencies_of("reconcile"), context.get_remaining_time_in_millis),
        )

    def handle(self, name: str, batch: list[Message], on_handled: Callable[[set[int] | None], None]) -> None:
        """Handle a batch from a queue; `on_handled` gets the numbers of the failed messages, None for all."""
        settings = self._stack.functions[name]
        lineage: dict[str, int] = {}
        for message in batch:
            for passed, count in message.lineage.items():
                lineage[passed] = max(lineage.get(passed, 0), count)
        lineage[name] = lineage.get(name, 0) + 1

        def on_end(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                if not isinstance(error, KilledError):
                    self._unhandled(name, error)
                self._queues.deaths.update(message.origin for message in batch if not message.is_deleted)
                self._times.died(batch)
                on_handled(None)
                return
            failed = {int(each["itemIdentifier"]) for each in answer["batchItemFailures"]}
            self._times.came_back(message for message in batch if message.number in failed)
            on_handled(failed)

        invocation = Invocation(next(self._numbers), name, batch, lineage=lineage)
        self._invoke(settings, lambda: self._handle(name, invocation), on_end, invocation)

    def _handle(self, name: str, invocation: Invocation) -> Any:
        queue = CONSUMERS[name]
        function = self._dependencies_of(name)
        handler = handler_of(queue)
        topics = function.topics
        if topics is not None and invocation.messages[0].queue == TOPICS_QUEUE:
            # As sns.consume_batch does, around what is noted of each message.
            handler = partial(handle_topic_message, topics.watched)
            function = replace(function, dead_letters=topics.dead_letters)
        ends_at = self._runtime.clock.now() + timedelta(seconds=self._stack.functions[name].timeout_seconds)
        context = cast("LambdaContext", Context(self._runtime.clock, ends_at))

        def handle_message(body: str, deps: Dependencies) -> Any:
            invocation.begin(cast("_Body", body).number)
            began_at = invocation.began_at = self._runtime.clock.now()
            message = invocation.messages[invocation.current]
            try:
                answer = handler(body, deps)
            except Exception as error:
                if not isinstance(error, PortError):
                    self._unhandled(name, error)
                is_excused = invocation.failed_calls > 0 and isinstance(error, PortError)
                self._times.failed(name, message, None if is_excused else began_at, error)
                raise
            self._times.handled(name, message)
            self._on_handled(name, body, began_at)
            return answer

        event = {"Records": [_record(message) for message in invocation.messages]}
        return handle_batch(queue, handle_message, event, context, function)

    def _invoke(
        self,
        settings: FunctionSettings,
        body: Callable[[], Any],
        on_end: OnEnd,
        invocation: Invocation | None = None,
    ) -> None:
        invocation = invocation or Invocation(next(self._numbers), settings.name)
        own = f"/{settings.name}" if settings.sources and settings.sources[0].queue in NOTICES_QUEUES else ""
        skew = self._runtime.chance.stream(f"clock-skew{own}").uniform(-_CLOCK_SKEW_SECONDS, _CLOCK_SKEW_SECONDS)
        invocation.clock_offset = timedelta(0) if self._runtime.chance.is_calm else timedelta(seconds=skew)

        def time_out() -> None:
            if not invocation.is_over:
                self._runtime.chance.note_organic("function-timed-out")
                self._runtime.kill(invocation, "time-out")

        invocation.deadline_timer = self._runtime.clock.call_later(settings.timeout_seconds, time_out)
        self._runtime.start(invocation, body, on_end)


class _Body(str):
    """The body of a message, which knows its number: two in a batch may have the same text."""

    number: int


def _record(message: Message) -> dict[str, Any]:
    first = message.first_received_at or message.sent_at
    body = _Body(message.body)
    body.number = message.number
    return {
        "messageId": str(message.number),
        "receiptHandle": f"{message.number}/{message.receives}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(int(message.sent_at.timestamp() * 1000)),
            "ApproximateFirstReceiveTimestamp": str(int(first.timestamp() * 1000)),
        },
        "messageAttributes": {
            name: {"stringValue": value, "dataType": "String"} for name, value in message.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{message.queue}",
    }
