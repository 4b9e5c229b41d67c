"""What a host of the internet is asked, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class HostRequest:
    """A request; the names of headers are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class HostAnswer:
    """An answer."""

    status: int
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Host(Protocol):
    """What is behind a name."""

    def answer(self, request: HostRequest) -> HostAnswer:
        """Answer a request."""
