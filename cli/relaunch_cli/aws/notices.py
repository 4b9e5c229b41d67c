"""The receivers of notices of a stack, as the command reads, stores and tries them, with the caller's credentials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from relaunch.adapters.aws.receiver_parameters import SsmReceivers
from relaunch.adapters.notices.receivers import ReceiverMaker
from relaunch.bootstrap import LazyClient, SystemClock
from relaunch.setting_values import split
from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError

TURN_ON = "relaunch deploy Notices=on"


class ReceiverStore(Protocol):
    """Where receivers are stored."""

    def names(self) -> frozenset[str]:
        """Return their names, without reading what is stored."""

    def load(self) -> Mapping[str, str]:
        """Return what is stored of each, by its name."""

    def save(self, name: str, text: str, *, is_new: bool) -> bool:
        """Store one; return False if `is_new` and there is one of that name."""
        ...

    def delete(self, name: str) -> bool:
        """Delete one; return False if there is none of that name."""
        ...


@dataclass(frozen=True)
class StackNotices:
    """Where receivers are stored, and what makes them for the hosts and topics that the stack allows."""

    store: ReceiverStore
    maker: "ReceiverMaker"


def open_notices(outputs: Mapping[str, str], stack: str, client: Any) -> StackNotices:
    """Return the receivers of a stack with these outputs; `client` makes clients by their service.

    Raises:
        CommandError: the stack sends no notices.
    """
    path = outputs.get("NoticesPath", "")
    if not path:
        raise CommandError(f"the stack {stack} sends no notices", TURN_ON, exit_codes.NOT_FOUND)

    hosts, topics = (split(outputs.get(name, "")) for name in ("NoticeHosts", "NoticeTopicArns"))
    page = outputs.get("JobPageUrl", "")
    maker = ReceiverMaker(hosts, topics, LazyClient(lambda: client("sns")), SystemClock(), page_url=page)
    return StackNotices(SsmReceivers(client("ssm"), path), maker)
