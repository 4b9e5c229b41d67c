from collections.abc import Iterator
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.notice_receivers import ADDRESSES, CHANNEL, SECRET, TOKEN, ReceiverServices, serve_receivers
from fakes.notices import make_event
from relaunch.adapters.notices.configuration import ReceiverConfiguration
from relaunch.adapters.notices.receivers import ReceiverMaker
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.state import JobState
from relaunch.core.notices.notice import Notice
from relaunch.ports.notices import NoticeReceiver


@pytest.fixture(scope="module")
def served() -> Iterator[ReceiverServices]:
    with serve_receivers() as services:
        yield services


@pytest.fixture
def services(served: ReceiverServices) -> ReceiverServices:
    served.requests.clear()
    served.refusals.clear()
    served.addresses = {}
    return served


def make_receiver(services: ReceiverServices, kind: str, **members: Any) -> NoticeReceiver:
    """Make a receiver of a kind; Slack's with a token is `token`."""
    if kind == "token":
        members = {"kind": "slack", "token": TOKEN, "channel": CHANNEL} | members
    else:
        secret = {"secret": SECRET} if kind == "webhook" else {}
        members = {"kind": kind, "url": ADDRESSES[kind]} | secret | members
    configuration = ReceiverConfiguration(**members)
    maker = ReceiverMaker(("hooks.example.com",), (), None, FakeClock(), services.sender)
    return maker.make(configuration, configuration.subscription("team"))


def make_notice(kind: NoticeKind = NoticeKind.FAILED, **members: Any) -> Notice:
    event = make_event(3, state=JobState.FAILED, **members)
    return Notice(kind=kind, event=event, reason="<b>exit code 1</b> & @everyone *now* [x](y)")
