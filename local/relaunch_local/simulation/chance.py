"""The random choices of a run, drawn from its seed; faults are listed, so that a replay can omit some."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Injection:
    """An injected fault; `identity` is the same in every run of the seed that reaches it the same way."""

    identity: str
    kind: str
    at: datetime
    note: str


@dataclass(slots=True)
class Chance:
    """Draws from independent streams, so that omitting one fault changes others as little as possible."""

    seed: int
    _now: Callable[[], datetime]
    _allowed: frozenset[str] | None = None
    """The faults that may be injected; None: every fault."""
    is_calm: bool = False
    intensity: float = 1.0
    injected: list[Injection] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    apart: Callable[[], str] = lambda: ""
    """Returns what the names of the streams begin with that are drawn from now."""
    on_strike: Callable[[str], None] = lambda _kind: None
    """Called with the kind of each fault that is injected."""
    _streams: dict[str, random.Random] = field(default_factory=dict)
    _draws: Counter[str] = field(default_factory=Counter)

    def stream(self, name: str) -> random.Random:
        """Return the stream of this name."""
        name = f"{self.apart()}{name}"
        found = self._streams.get(name)
        if found is None:
            # Reproducible, not a secret.
            found = self._streams[name] = random.Random(f"{self.seed}/{name}")  # noqa: S311
        return found

    def strikes(self, kind: str, probability: float, *, site: str = "", note: str = "") -> bool:
        """Return whether to inject a fault of this kind here; record it if so."""
        name = f"{kind}@{site}" if site else kind
        self._draws[name] += 1
        if self.is_calm or self.stream(name).random() >= probability * self.intensity:
            return False
        identity = f"{name}#{self._draws[name]}"
        if self._allowed is not None and identity not in self._allowed:
            return False
        self.injected.append(Injection(identity, kind, self._now(), note))
        self.happened[kind] += 1
        self.on_strike(kind)
        return True

    def withdraw(self) -> None:
        """Remove the last fault: there was nothing to apply it to."""
        self.happened[self.injected.pop().kind] -= 1

    def note_organic(self, kind: str) -> None:
        """Count a fault that was not injected: a race, a quota that was reached."""
        self.happened[kind] += 1


class ChanceApart(Chance):
    """The choices of one part of a run, from streams of its own: what it draws changes nothing that others draw."""

    def __init__(self, chance: Chance, name: str) -> None:
        """Draw from the streams of a run that begin with this name."""
        self._chance = chance
        self._name = name

    def stream(self, name: str) -> random.Random:
        """Return the stream of this name."""
        return self._chance.stream(f"{self._name}/{name}")

    def strikes(self, kind: str, probability: float, *, site: str = "", note: str = "") -> bool:
        """Return whether to inject a fault of this kind here; record it if so."""
        return self._chance.strikes(kind, probability, site=f"{self._name}/{site}", note=note)

    def note_organic(self, kind: str) -> None:
        """Count a fault that was not injected."""
        self._chance.note_organic(kind)
