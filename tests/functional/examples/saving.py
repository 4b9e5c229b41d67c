"""Attempts of a job that save into a folder, and what Relaunch would find of it."""

import re
from pathlib import Path
from typing import Protocol

from relaunch_training import Checkpoints, find_complete

OBJECTS = {"model/part-0.bin": b"\x00\x01", "state.json": b"{}"}


class Attempt(Protocol):
    """Makes the checkpoints of an attempt of job-1."""

    def __call__(self, number: int = 1, **options: object) -> Checkpoints: ...


def steps_in(folder: Path) -> list[tuple[int, ...]]:
    """Return step and attempt of each complete checkpoint, the newest first."""
    places = (
        re.findall(r"attempt-([0-9]+)/step-([0-9]+)/", uri)[0] for uri in find_complete(f"file://{folder}/job-1/")
    )
    return [(int(step), int(attempt)) for attempt, step in places]


class Answered:
    """The body of an answer, as urllib3 gives it."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content

    def stream(self) -> list[bytes]:
        return [self.content]
