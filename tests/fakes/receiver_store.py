"""The receivers of a stack in memory, as the command stores them."""

from collections.abc import Callable, Mapping
from typing import Any

from fakes.clock import FakeClock
from relaunch.adapters.notices.https_sender import HttpsSender
from relaunch.adapters.notices.receivers import ReceiverMaker
from relaunch_cli.aws.notices import StackNotices

TOPIC = "arn:aws:sns:us-east-1:111122223333:training"


class FakeReceiverStore:
    """Implements ReceiverStore; `error` is raised instead of names, if it is set."""

    def __init__(self, stored: Mapping[str, str] | None = None) -> None:
        self.stored = dict(stored or {})
        self.error: Exception | None = None

    def of_stack(self, make_sender: Callable[..., HttpsSender] = HttpsSender, sns: Any = None) -> StackNotices:
        """Return these receivers as a stack's, which lets notices go to hooks.example.com and to one topic."""
        return StackNotices(self, ReceiverMaker(("hooks.example.com",), (TOPIC,), sns, FakeClock(), make_sender))

    def names(self) -> frozenset[str]:
        if self.error is not None:
            raise self.error
        return frozenset(self.stored)

    def load(self) -> Mapping[str, str]:
        return self.stored

    def save(self, name: str, text: str, *, is_new: bool) -> bool:
        if is_new and name in self.stored:
            return False
        self.stored[name] = text
        return True

    def delete(self, name: str) -> bool:
        return self.stored.pop(name, None) is not None
