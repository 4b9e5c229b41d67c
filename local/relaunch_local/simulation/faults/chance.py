"""Every choice of a simulated run, drawn from its seed; faults are listed, so that a replay can leave some out."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Injection:
    """One injected fault: `identity` is the same in every run of the seed that gets there in the same way."""

    identity: str
    kind: str
    at: datetime
    note: str


class Chance:
    """Draws from streams that do not disturb each other: leaving out one fault moves others as little as it can.

    `allowed` None lets every fault strike; else only those named in it do.
    """

    def __init__(self, seed: int, now: Callable[[], datetime], allowed: frozenset[str] | None = None) -> None:
        """Begin the streams that belong to the seed."""
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
        """The stream of this name; each has numbers of its own."""
        found = self._streams.get(name)
        if found is None:
            # A repeatable choice, not a secret.
            found = self._streams[name] = random.Random(f"{self.seed}/{name}")  # noqa: S311
        return found

    def strikes(self, kind: str, probability: float, *, site: str = "", note: str = "") -> bool:
        """Decide whether a fault of this kind strikes here and now; write it down if it does."""
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
        """Take the last fault back: there was nothing that it could be done to."""
        self.happened[self.injected.pop().kind] -= 1

    def note_organic(self, kind: str) -> None:
        """Count something bad that nobody injected: a race, a quota that was reached."""
        self.happened[kind] += 1
