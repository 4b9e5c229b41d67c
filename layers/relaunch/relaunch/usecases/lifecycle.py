"""How a job or a machine advances: load, finish the pending effects, decide, save, do the effects of the decision."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from relaunch.ports import JobDependencies, StaleWriteError

# Each conflict means that another write succeeded; this many in a row are a fault.
_ATTEMPTS = 6


class HasEffects(Protocol):
    """A job or a machine: `pending` are the effects that its last writer saved, and may not have done."""

    @property
    def pending(self) -> Sequence[Any]:
        """Return the effects."""
        ...


class MayBeIgnored(Protocol):
    """A decision."""

    @property
    def is_ignored(self) -> bool:
        """Return whether it changes nothing."""
        ...


Item = TypeVar("Item", bound=HasEffects)
Event = TypeVar("Event")
Decided = TypeVar("Decided", bound=MayBeIgnored)


class Lifecycle(ABC, Generic[Item, Event, Decided]):
    """What advances the items of one kind."""

    kind: ClassVar[str]

    def __init__(self, deps: JobDependencies) -> None:
        """Create it with what it reads, writes and calls."""
        self.deps = deps

    def advance(self, item_id: str, event_for: Callable[[Item], Event | None]) -> Item | None:
        """Load an item, finish its pending effects, and apply the event that `event_for` returns for it.

        Returns the item after that, None if it does not exist.

        Raises:
            StaleWriteError: other writers saved the item several times in a row; retry.
        """
        for _ in range(_ATTEMPTS):
            item = self.load(item_id)
            if item is None:
                self.deps.log.decided("ignored", **{f"{self.kind}_id": item_id}, reason=f"no such {self.kind}")
                return None
            try:
                item = self.finish(item)
                event = event_for(item)
                return self.leave(item) if event is None else self.apply(item, event)
            except StaleWriteError:
                continue
        raise StaleWriteError(
            f"{self.kind} {item_id} was saved by others {_ATTEMPTS} times while it was being decided on"
        )

    def apply(self, item: Item, event: Event) -> Item:
        """Decide on a loaded item, save the decision, and do its effects; return the saved item.

        Raises:
            StaleWriteError: the item was changed since it was loaded.
        """
        now = self.deps.clock.now()
        decision = self.decide(item, event, now)
        self.log(item, event, decision)
        return self.leave(item) if decision.is_ignored else self.follow(self.save(item, decision, now))

    def finish(self, item: Item) -> Item:
        """Do the pending effects of an item, then save that they are done.

        Raises:
            TransientError: an effect failed; it stays pending and is repeated when the item is loaded next.
        """
        return self.save_done(item, self.left(item), self.perform_all(item, item.pending))

    def perform_all(self, item: Item, effects: Sequence[Any]) -> list[Event]:
        """Do these effects of an item; return the events that they brought about."""
        return [event for effect in effects if (event := self.perform(item, effect)) is not None]

    def follow(self, item: Item) -> Item:
        """Do what follows from a decision that was saved just now; return the item after that."""
        return self.finish(item)

    def leave(self, item: Item) -> Item:
        """Return an item that is not decided on any more, after what is due of it whatever is decided."""
        return item

    @abstractmethod
    def load(self, item_id: str) -> Item | None:
        """Load an item, None if it does not exist."""

    @abstractmethod
    def decide(self, item: Item, event: Event, now: datetime) -> Decided:
        """Return the decision of the transition table."""

    @abstractmethod
    def log(self, item: Item, event: Event, decision: Decided) -> None:
        """Log a decision before it is saved."""

    @abstractmethod
    def save(self, item: Item, decision: Decided, now: datetime) -> Item:
        """Save a decision and record its metrics; return the saved item."""

    @abstractmethod
    def perform(self, item: Item, effect: Any) -> Event | None:
        """Do an effect; return the event that it brought about for the item, None if it brought none."""

    @abstractmethod
    def left(self, item: Item) -> tuple[Any, ...]:
        """Return the effects that stay pending although they were performed."""

    @abstractmethod
    def save_done(self, item: Item, left: tuple[Any, ...], events: Sequence[Event] = ()) -> Item:
        """Save that all effects but those left are done, and with it what their events change; return the item."""
