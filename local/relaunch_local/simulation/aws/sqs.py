"""SQS: delays, visibility, redelivery, duplicates and dead-letter queues; and event source mappings."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.outages import LAMBDA, SQS, Outages
from relaunch_local.simulation.aws.template import NOTICES_QUEUES, QueueSettings, SourceSettings
from relaunch_local.simulation.chance import Chance, ChanceApart

# Lambda stops a chain function → queue → function after this many passes ("recursive loop detection").
LONGEST_LOOP = 16
_FIRST_APART = 1_000_000


@dataclass(eq=False)
class Message:
    """A message; `lineage` counts the functions it passed through."""

    queue: str
    number: int
    body: str
    sent_at: datetime
    lineage: Mapping[str, int] = field(default_factory=dict)
    receives: int = 0
    first_received_at: datetime | None = None
    visible_after: int = 0
    """The receive after which it became visible again."""
    invisible_until: datetime | None = None
    is_deleted: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict)
    origin: int = 0
    """The number of the first message that this one was sent again for."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message in a dead-letter queue, why it is there, and how often functions died of it (of any of its copies)."""

    queue: str
    body: str
    cause: str
    deaths: int = 0


class Queues:
    """All queues of the stack, by their logical names in the template."""

    def __init__(
        self,
        settings: Mapping[str, QueueSettings],
        clock: Clock,
        chance: Chance,
        trace: Callable[[str], None],
        outages: Outages,
    ) -> None:
        """Create every queue, empty."""
        outages.on_end.append(lambda _service: self._wake())
        self.dead_letters: list[DeadLetter] = []
        apart = ChanceApart(chance, "notices")
        self.queues = {
            name: Queue(each, self, clock, apart if name in NOTICES_QUEUES else chance, trace)
            for name, each in settings.items()
        }
        self.numbers = Counter[bool]()
        """How many messages were sent: by their numbers functions spread what they try again."""
        self.deaths = Counter[int]()
        """How often functions ended without an answer while they had a message, by its origin."""

    def _wake(self) -> None:
        for queue in self.queues.values():
            queue.on_visible()

    def send(
        self,
        name: str,
        body: str,
        *,
        delay_seconds: float = 0.0,
        lineage: Mapping[str, int] | None = None,
        attributes: Mapping[str, str] | None = None,
        origin: int = 0,
    ) -> None:
        """Send a message to a queue; a dead-letter queue keeps its messages forever.

        `origin` is that of the message that a function sends again or gives up, 0 for a new one.
        """
        if name in self.queues and not self.queues[name].settings.is_dead_letter_queue:
            self.queues[name].send(body, delay_seconds, lineage or {}, attributes or {}, origin)
        else:
            self.dead_letter(name, body, f"sent there: {(attributes or {}).get('reason', '')}", origin)

    def dead_letter(self, queue: str, body: str, cause: str, origin: int = 0) -> None:
        """Move a message to a dead-letter queue."""
        self.dead_letters.append(DeadLetter(queue, body, cause, self.deaths[origin]))


@dataclass(slots=True)
class Queue:
    """One standard queue."""

    settings: QueueSettings
    queues: Queues
    _clock: Clock
    _chance: Chance
    _trace: Callable[[str], None]
    visible: list[Message] = field(default_factory=list)
    open_bodies: Counter[str] = field(default_factory=Counter)
    in_flight: dict[int, Message] = field(default_factory=dict)
    """The received messages, by their numbers."""
    on_visible: Callable[[], None] = lambda: None

    def send(
        self,
        body: str,
        delay_seconds: float,
        lineage: Mapping[str, int],
        attributes: Mapping[str, str],
        origin: int,
    ) -> None:
        """Accept a message; it becomes visible after its delay plus network latency."""
        name = self.settings.name
        is_apart = name in NOTICES_QUEUES
        self.queues.numbers[is_apart] += 1
        number = self.queues.numbers[is_apart] + is_apart * _FIRST_APART
        message = Message(
            name, number, body, self._clock.now(), dict(lineage), attributes=attributes, origin=origin or number
        )
        self.open_bodies[body] += 1
        delay = delay_seconds + self._chance.stream(f"sqs-latency/{name}").uniform(0.01, 0.4)
        if self._chance.strikes("message-reordered", 0.02, site=name, note=f"message {message.number}"):
            delay += self._chance.stream("sqs-reorder").uniform(0.5, 20.0)
        if self._chance.strikes("message-delayed", 0.006, site=name, note=f"message {message.number}"):
            delay += self._chance.stream("sqs-delay").uniform(30.0, 300.0)
        self._clock.call_later(delay, lambda: self._show(message))

    def receive(self, limit: int) -> list[Message]:
        """Return up to `limit` visible messages, unordered; those received too often are dead-lettered."""
        batch: list[Message] = []
        while self.visible and len(batch) < limit:
            index = self._chance.stream(f"sqs-order/{self.settings.name}").randrange(len(self.visible))
            message = self.visible.pop(index)
            if message in batch:
                self.visible.append(message)
                break
            if message.receives >= self.settings.max_receive_count:
                if message.is_deleted:
                    continue
                self.delete(message)
                cause = f"received {message.receives} times"
                self.queues.dead_letter(self.settings.dead_letter_queue, message.body, cause, message.origin)
                continue
            self._deliver(message)
            batch.append(message)
        return batch

    def delete(self, message: Message) -> None:
        """Delete a message."""
        if not message.is_deleted:
            message.is_deleted = True
            self.in_flight.pop(message.number, None)
            self.open_bodies[message.body] -= 1
            if not self.open_bodies[message.body]:
                del self.open_bodies[message.body]

    def change_visibility(self, number: int, receive: int, seconds: float) -> None:
        """Make a message visible again after `seconds`, unless it is received again or deleted before."""
        message = self.in_flight.get(number)
        if message is not None and message.receives == receive:
            self._hide(message, seconds)

    def delete_received(self, number: int, receive: int) -> None:
        """Delete a message by the receipt handle of its last receive."""
        message = self.in_flight.get(number)
        if message is not None and message.receives == receive:
            self.delete(message)

    def _hide(self, message: Message, seconds: float) -> None:
        receive = message.receives
        message.invisible_until = self._clock.now() + timedelta(seconds=seconds)
        self._clock.call_later(seconds, lambda: self._time_out(message, receive))

    def acknowledge(self, message: Message) -> None:
        """Delete a handled message; if that fails, the message is received again."""
        if message.is_deleted:
            return
        note = f"message {message.number}"
        if self._chance.strikes("message-delete-lost", 0.004, site=self.settings.name, note=note):
            return
        self.delete(message)

    def _deliver(self, message: Message) -> None:
        message.receives += 1
        message.first_received_at = message.first_received_at or self._clock.now()
        self.in_flight[message.number] = message
        self._hide(message, self.settings.visibility_seconds)
        note = f"message {message.number}"
        if self._chance.strikes("message-duplicated", 0.012, site=self.settings.name, note=note):
            delay = self._chance.stream("sqs-duplicate").uniform(0.0, 8.0)
            self._clock.call_later(delay, lambda: self._show(message, is_copy=True))

    def _time_out(self, message: Message, receive: int) -> None:
        is_due = message.invisible_until is None or self._clock.now() >= message.invisible_until
        if is_due and not message.is_deleted and message.receives == receive > message.visible_after:
            message.visible_after = receive
            self._trace(f"{self.settings.name}: message {message.number} is visible again")
            self._show(message)

    def _show(self, message: Message, *, is_copy: bool = False) -> None:
        if is_copy or not message.is_deleted:
            self.visible.append(message)
            self.on_visible()


@dataclass
class Poller:
    """An event source mapping: receives batches from a queue and invokes a function, up to its maximum concurrency."""

    latency_seconds: ClassVar = (0.01, 0.25)

    _queue: Queue
    _settings: SourceSettings
    _clock: Clock
    _chance: Chance
    _outages: Outages
    _handle: Callable[[list[Message], Callable[[set[int] | None], None]], None]
    """Gets a batch, and a callback for the numbers of the failed messages (None: all)."""
    _running: int = 0
    _is_polling: bool = False

    def __post_init__(self) -> None:
        """Start polling."""
        self._queue.on_visible = self._wake

    def _wake(self) -> None:
        is_there = not self._outages.is_away(SQS)
        if self._queue.visible and is_there and not self._is_polling and self._running < self._settings.max_concurrency:
            self._is_polling = True
            latency = self._chance.stream(f"poll/{self._settings.function}").uniform(*self.latency_seconds)
            self._clock.call_later(latency, self._poll)

    def _poll(self) -> None:
        self._is_polling = False
        if self._outages.is_away(SQS):
            return
        batch = self._queue.receive(self._settings.batch_size)
        if self._outages.is_away(LAMBDA):
            # The messages come back after the visibility time-out, which counts as a receive.
            self._wake()
            return
        batch = [message for message in batch if self._breaks_no_loop(message)]
        if batch:
            self._running += 1
            self._handle(batch, lambda failed: self._handled(batch, failed))
        self._wake()

    def _handled(self, batch: list[Message], failed: set[int] | None) -> None:
        self._running -= 1
        for message in batch:
            if failed is not None and message.number not in failed:
                self._queue.acknowledge(message)
        self._wake()

    def _breaks_no_loop(self, message: Message) -> bool:
        if message.lineage.get(self._settings.function, 0) < LONGEST_LOOP:
            return True
        self._chance.note_organic("loop-of-16-passes")
        if self._settings.may_loop:
            return True
        self._queue.delete(message)
        self._queue.queues.dead_letter(self._queue.settings.dead_letter_queue, message.body, "recursive loop")
        return False
