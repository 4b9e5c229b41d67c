"""The random choices of a run, drawn from its seed; faults are listed, so that a replay can omit some."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Injection:
    """An injected fault; `identity` is the same in every run of the seed that reaches it the same way."""

    identity: str
    kind: str
    at: datetime
    note: str


class Chance:
    """Draws from independent streams, so that omitting one fault changes others as little as possible.

    With `allowed` None every fault may be injected, otherwise only those it names.
    """

    def __init__(self, seed: int, now: Callable[[], datetime], allowed: frozenset[str] | None = None) -> None:
        """Start the streams of the seed."""
        self.seed = seed
        self.is_calm = False
        self.intensity = 1.0
        self.injected: list[Injection] = []
        self.happened: Counter[str] = Counter()
        self._now = now
        self._allowed = allowed
        self._streams: dict[str, random.Random] = {}
        self._draws: Counter[str] = Counter()

    def stream(self, name: str) -> random.Random:
        """Return the stream of this name."""
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
        return True

    def withdraw(self) -> None:
        """Remove the last fault: there was nothing to apply it to."""
        self.happened[self.injected.pop().kind] -= 1

    def note_organic(self, kind: str) -> None:
        """Count a fault that was not injected: a race, a quota that was reached."""
        self.happened[kind] += 1
