"""Checks what a person gives for a receiver of notices, before anything secret is asked for.

What is refused is shown, but for what was asked for, which is secret; the message says what to give instead.
"""

import difflib
import re
from collections.abc import Mapping, Sequence

from relaunch.adapters.notices.configuration import KINDS, is_receiver_name
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch_cli.errors import CommandError

_MOST_MINUTES = 14 * 24 * 60  # as adapters.notices.configuration
_NEED_ANOTHER = {
    "email": "sns",
    "mail": "sns",
    "e-mail": "sns",
    "msteams": "teams",
    "http": "webhook",
    "https": "webhook",
}
# Where the address of each kind is found, for somebody who gave another one.
_ADDRESSES = {
    "slack": "the URL of an incoming webhook begins with https://hooks.slack.com/services/",
    "teams": "copy the URL of the channel's workflow: its host ends in .logic.azure.com or .powerplatform.com",
    "discord": "the URL of a webhook begins with https://discord.com/api/webhooks/",
}


def check_kind(kind: str) -> None:
    """Refuse what is no kind of receiver."""
    if kind in KINDS:
        return
    lower = kind.lower()
    near = _NEED_ANOTHER.get(lower) or _nearest(lower, KINDS)
    hint = f"did you mean --kind {near}? " if near else ""
    raise CommandError(f"{kind!r} is no kind of receiver", f"{hint}There are {', '.join(KINDS)}; e-mail is sns")


def check_name(name: str) -> None:
    """Refuse what is no name of a receiver."""
    if not is_receiver_name(name):
        raise CommandError(f"{name!r} is no name of a receiver", "up to 40 of a-z, 0-9 and -, a letter first: team-ml")


def read_kinds(texts: Sequence[str]) -> "list[NoticeKind]":
    """Return the kinds of notices that an option names, each once."""
    return [_read_kind(each) for each in texts]


def _read_kind(text: str) -> "NoticeKind":
    kinds = [kind.value for kind in NoticeKind]
    if text in kinds:
        return NoticeKind(text)
    if "," in text:
        raise CommandError(
            f"{text!r} is no kind of notice", "repeat the option for each kind: --notice failed --notice finished"
        )
    near = _nearest(text.lower().replace("_", "-"), kinds)
    hint = f"did you mean {near}? " if near else ""
    raise CommandError(f"{text!r} is no kind of notice", f"{hint}There are {', '.join(kinds)}")


def check_minutes(minutes: int | None) -> None:
    """Refuse a wait that is none."""
    if minutes is not None and not 1 <= minutes <= _MOST_MINUTES:
        raise CommandError(f"--waits-after is 1 to {_MOST_MINUTES:,} minutes, not {minutes:,}", "an hour is 60")


def check_place(kind: str, channel: str | None, topic: str | None) -> None:
    """Refuse a channel or a topic that is none, or of another kind of receiver."""
    if channel is not None and kind != "slack":
        raise CommandError(f"--channel is for --kind slack, not for {kind}", "leave it out: the URL says which channel")
    if channel is not None and not re.fullmatch(r"[A-Za-z0-9#_.-]{1,80}", channel):
        raise CommandError(
            f"{channel!r} is no channel of Slack", "its ID is like C0123ABCD: it is at the end of the channel's details"
        )
    if topic is not None and kind != "sns":
        raise CommandError(f"--topic is for --kind sns, not for {kind}", "leave it out")
    if kind == "sns" and topic is None:
        raise CommandError("a receiver of the kind sns needs --topic ARN", "`aws sns list-topics` lists the ARNs")
    if topic is not None and not re.fullmatch(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+", topic):
        raise CommandError(
            f"{topic!r} is no ARN of a topic", "`aws sns list-topics` lists them: arn:aws:sns:REGION:ACCOUNT:NAME"
        )


def check_answers(kind: str, answers: Mapping[str, str | None]) -> None:
    """Refuse a URL or a token that is none; what was given is not shown."""
    token = answers.get("token")
    if token is not None and (not token or "://" in token or any(each.isspace() for each in token)):
        raise CommandError(
            "that is no bot token", "it begins with xoxb-; for the URL of an incoming webhook leave --channel out"
        )
    url = answers.get("url")
    if url is None or url.startswith("https://"):
        return
    if not url:
        raise CommandError("no URL was given", _hint_of(kind))
    if url.startswith("xox"):
        raise CommandError("that is a bot token, not a URL", "with a bot token give --channel ID too")
    raise CommandError("the address must be an https URL: it begins with https://", _hint_of(kind))


def hint_of_host(kind: str, host: str, allowed: Sequence[str]) -> str:
    """Return what to do about a host that notices may not go to."""
    if kind == "webhook":
        return f"`relaunch deploy NoticeHosts={','.join([*allowed, host])}` lets notices go there"
    return _hint_of(kind)


def _hint_of(kind: str) -> str:
    return _ADDRESSES.get(kind, "give it on standard input, or where the command asks for it")


def _nearest(text: str, known: Sequence[str]) -> str:
    return next(iter(difflib.get_close_matches(text, known, 1)), "")
