"""The receivers of a stack, made of what is stored of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, assert_never

from relaunch.adapters.notices.configuration import (
    MalformedReceiverError,
    ReceiverConfiguration,
    hosts_of,
    read_configuration,
)
from relaunch.adapters.notices.discord import DiscordWebhook
from relaunch.adapters.notices.https_sender import HttpsSender
from relaunch.adapters.notices.slack import SlackChannel, SlackWebhook
from relaunch.adapters.notices.sns import SnsTopic
from relaunch.adapters.notices.standard_webhook import StandardWebhook, read_secret
from relaunch.adapters.notices.teams import TeamsWorkflow
from relaunch.core.definitions.notice_routes import MAX_RECEIVERS
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.page import page_of
from relaunch.core.records import dataclass
from relaunch.ports import Clock, DecisionLog, PortError, TransientError
from relaunch.ports.notices import NoticeReceiver, Outcome

# So long a receiver that was added, changed or removed is used as it was.
HELD = timedelta(seconds=60)


class ReceiverParameters(Protocol):
    """Where receivers are stored."""

    def load(self) -> Mapping[str, str]:
        """Return what is stored of each receiver, by its name.

        Raises:
            PortError: it cannot be read.
        """


@dataclass(frozen=True)
class ReceiverMaker:
    """Makes receivers of what is stored of them: only for the hosts and topics that the stack allows."""

    notice_hosts: Sequence[str]
    topic_arns: Sequence[str]
    sns: Any
    clock: Clock
    make_sender: Callable[[Sequence[str]], HttpsSender] = HttpsSender
    page_url: str = ""
    """Where the page of a job is, with `{job_id}` in it; empty if there is none."""

    def make(self, configuration: ReceiverConfiguration, subscription: Subscription) -> NoticeReceiver:
        """Return a receiver, whose notices lead to the page of their job.

        Raises:
            MalformedReceiverError: its secret is none, or its topic is none of the stack's.
        """
        receiver = self._make(configuration, subscription)
        return WithPage(receiver, self.page_url) if self.page_url else receiver

    def _make(self, configuration: ReceiverConfiguration, subscription: Subscription) -> NoticeReceiver:
        url = configuration.url.get_secret_value() if configuration.url else ""
        sender = self.make_sender(hosts_of(configuration.kind, self.notice_hosts))
        match configuration.kind:
            case "slack" if configuration.token is not None:
                token = configuration.token.get_secret_value()
                return SlackChannel(subscription, token, configuration.channel or "", sender, self.clock)
            case "slack":
                return SlackWebhook(subscription, url, sender, self.clock)
            case "teams":
                return TeamsWorkflow(subscription, url, sender, self.clock)
            case "discord":
                return DiscordWebhook(subscription, url, sender, self.clock)
            case "sns":
                return SnsTopic(subscription, self._topic(configuration.topic_arn or ""), self.sns)
            case "webhook":
                secret = configuration.secret.get_secret_value() if configuration.secret else ""
                return StandardWebhook(subscription, url, _read_key(secret), sender, self.clock)
            case _:
                assert_never(configuration.kind)

    def _topic(self, arn: str) -> str:
        if arn not in self.topic_arns:
            raise MalformedReceiverError("its topic is none of the stack's parameter NoticeTopicArns")
        return arn


class WithPage:
    """Implements NoticeReceiver: another one, whose notices have the address of their job's page."""

    def __init__(self, receiver: NoticeReceiver, page_url: str) -> None:
        self._receiver = receiver
        self._page_url = page_url

    @property
    def subscription(self) -> Subscription:
        return self._receiver.subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        return self._receiver.deliver(replace(notice, page_url=page_of(self._page_url, notice.event.job_id)), thread)


class StoredReceivers:
    """Implements ReceiverSource; what was read is used for a minute, and while it cannot be read again."""

    def __init__(self, parameters: ReceiverParameters, maker: ReceiverMaker, clock: Clock, log: DecisionLog) -> None:
        self._parameters = parameters
        self._maker = maker
        self._clock = clock
        self._log = log
        self._found: Mapping[str, ReceiverConfiguration] = {}
        self._read_at: datetime | None = None

    def receivers_for(self, event: JobStateChange) -> Sequence[NoticeReceiver]:
        self._refresh()
        named = event.notices or {}
        missing = sorted(named.keys() - self._found.keys())
        if missing:
            self._log.decided("receivers missing", definition=event.definition, receivers=missing)
        receivers = []
        for name, configuration in self._found.items():
            if not configuration.is_for_all and name not in named:
                continue
            subscription = configuration.subscription(name, named.get(name, ()))
            try:
                receivers.append(self._maker.make(configuration, subscription))
            except MalformedReceiverError as error:
                self._say_unusable(name, str(error))
        return receivers

    def _refresh(self) -> None:
        now = self._clock.now()
        if self._read_at is not None and now - self._read_at < HELD:
            return
        try:
            stored = self._parameters.load()
        except PortError as error:
            if self._read_at is None:
                raise TransientError(str(error)) from error
            self._log.decided("receivers not read again", reason=str(error))
            return
        self._found = self._read(stored)
        self._read_at = now

    def _read(self, stored: Mapping[str, str]) -> Mapping[str, ReceiverConfiguration]:
        names = sorted(stored)
        if len(names) > MAX_RECEIVERS:
            beyond = names[MAX_RECEIVERS:]
            self._log.decided("too many receivers", limit=MAX_RECEIVERS, left_out=beyond, is_alert=True)
        found = {}
        for name in names[:MAX_RECEIVERS]:
            try:
                found[name] = read_configuration(stored[name])
            except MalformedReceiverError as error:
                self._say_unusable(name, str(error))
        return found

    def _say_unusable(self, name: str, reason: str) -> None:
        self._log.decided("receiver unusable", receiver=name, reason=reason, is_alert=True)


def _read_key(secret: str) -> bytes:
    try:
        return read_secret(secret)
    except ValueError as error:
        raise MalformedReceiverError(str(error)) from None
