"""What is stored of a receiver: one parameter, in JSON, with its address and its secrets.

No error of this module repeats anything of a parameter but the names of its members.
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, assert_never, get_args

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_serializer, model_validator

from relaunch.adapters.notices import discord, slack, teams
from relaunch.core.definitions.notice_routes import DEFAULT_KINDS, RECEIVER_NAME_PATTERN, NoticeKind
from relaunch.core.notices.notice import LONGEST_WAIT, Subscription

ReceiverKind = Literal["slack", "teams", "discord", "sns", "webhook"]
KINDS: tuple[str, ...] = get_args(ReceiverKind)
MAX_BYTES = 4_096
"""A standard parameter of SSM has 4 KB, and costs nothing."""
_MINUTES = int(LONGEST_WAIT.total_seconds() // 60)
_MOST_MINUTES = 14 * 24 * 60
_PLACES = ("url", "token", "channel", "secret", "topic_arn")


class ReceiverConfiguration(BaseModel):
    """Where a receiver is, and what it wants. Its secrets are not shown when it is printed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    kind: ReceiverKind
    url: SecretStr | None = None
    token: SecretStr | None = None
    secret: SecretStr | None = None
    channel: str | None = Field(default=None, pattern=r"^[A-Za-z0-9#_.-]{1,80}$")
    topic_arn: str | None = Field(default=None, pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$")
    kinds: tuple[NoticeKind, ...] = DEFAULT_KINDS
    is_for_all: bool = True
    waits_after_minutes: int = Field(default=_MINUTES, ge=1, le=_MOST_MINUTES)

    @model_validator(mode="after")
    def check_places(self) -> "ReceiverConfiguration":
        """Reject members that its kind has no use for, and a kind without what it needs."""
        given = frozenset(name for name in _PLACES if getattr(self, name) is not None)
        choices = _needed(self.kind)
        if given not in choices:
            needed = ", or ".join(" and ".join(sorted(each)) for each in choices)
            raise ValueError(f"a receiver of the kind {self.kind} has {needed}, and none of the others")
        return self

    @field_serializer("url", "token", "secret", when_used="json-unless-none")
    def reveal(self, value: SecretStr) -> str:
        """Return the value to be stored."""
        return value.get_secret_value()

    def subscription(self, name: str, kinds: Sequence[NoticeKind] = ()) -> Subscription:
        """Return what it wants; `kinds` are those that a definition names."""
        return Subscription(
            name=name,
            kinds=frozenset(kinds or self.kinds),
            is_for_all=self.is_for_all,
            waits_after=timedelta(minutes=self.waits_after_minutes),
        )


def _needed(kind: ReceiverKind) -> tuple[frozenset[str], ...]:
    """Return what a kind needs: any of these sets."""
    match kind:
        case "slack":
            return frozenset({"token", "channel"}), frozenset({"url"})
        case "teams" | "discord":
            return (frozenset({"url"}),)
        case "sns":
            return (frozenset({"topic_arn"}),)
        case "webhook":
            return (frozenset({"url", "secret"}),)
        case _:
            assert_never(kind)


class MalformedReceiverError(Exception):
    """A parameter is no receiver; the message has names of members at most."""


def is_receiver_name(name: str) -> bool:
    """Return whether a receiver may have this name."""
    return re.fullmatch(RECEIVER_NAME_PATTERN, name) is not None


def read_configuration(text: str) -> ReceiverConfiguration:
    """Return a receiver as it is stored.

    Raises:
        MalformedReceiverError: it is none that this release knows.
    """
    try:
        return ReceiverConfiguration.model_validate_json(text)
    except ValidationError as error:
        # Pydantic's own words show the input.
        places = sorted({".".join(map(str, each["loc"])) or each["msg"] for each in error.errors(include_input=False)})
        raise MalformedReceiverError(f"it is no receiver: {', '.join(places)}") from None


def write_configuration(configuration: ReceiverConfiguration) -> str:
    """Return a receiver as it is stored."""
    return configuration.model_dump_json(exclude_none=True, exclude_defaults=True)


def hosts_of(kind: ReceiverKind, notice_hosts: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts that a receiver of a kind may have; those of webhooks are the stack's NoticeHosts."""
    match kind:
        case "slack":
            return slack.HOSTS
        case "teams":
            return teams.HOSTS
        case "discord":
            return discord.HOSTS
        case "sns" | "webhook":
            return tuple(notice_hosts)
        case _:
            assert_never(kind)
