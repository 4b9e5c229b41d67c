"""Discord: a webhook of a channel.

Sources: docs.discord.com/developers/resources/webhook#execute-webhook (`content` of 2,000 characters, `wait`),
…/resources/message#allowed-mentions-object (`{"parse": []}` mentions nobody), …/topics/rate-limits (429, Retry-After,
and `retry_after` in the body, in seconds). A webhook replies to no message, so there are no threads.
"""

import json
import re
from datetime import datetime, timedelta
from urllib.parse import urlsplit, urlunsplit

from relaunch.adapters.notices.http_outcomes import outcome_of, post_outcome
from relaunch.adapters.notices.https_sender import Answer, HttpsSender
from relaunch.core.jobs.changes import cut
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.text import write_text
from relaunch.ports import Clock
from relaunch.ports.notices import Outcome, Postponed

HOSTS = ("discord.com",)
_MAX_CONTENT = 2_000
_SUPPRESS_EMBEDS = 4
_MARKDOWN = re.compile(r"([\\*_~`|>#\-\[\]()<:@])")


class DiscordWebhook:
    """Implements NoticeReceiver, each notice as a message of its own."""

    def __init__(self, subscription: Subscription, url: str, sender: HttpsSender, clock: Clock) -> None:
        self._subscription = subscription
        self._url = _waiting(url)
        self._sender = sender
        self._clock = clock

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        del thread
        message = {
            "content": write_content(notice),
            "allowed_mentions": {"parse": []},
            "flags": _SUPPRESS_EMBEDS,
        }
        body = json.dumps(message).encode()
        return post_outcome(
            lambda: self._sender.post(self._url, body, {"Content-Type": "application/json"}),
            lambda answer: _read(answer, self._clock.now()),
        )


def write_content(notice: Notice) -> str:
    """Return the text of a message, in which nothing but the title, the page and the commands is formatted."""
    text = write_text(notice)
    title = f"**{_escape(text.title)}**"
    # The address is the operator's, and would be no link with its characters escaped.
    further = "\n".join((*((text.page_url,) if text.page_url else ()), *(f"`{each}`" for each in text.commands)))
    between = "\n".join(map(_escape, text.lines))
    return f"{title}\n{cut(between, _MAX_CONTENT - len(title) - len(further) - 2)}\n{further}"


def _escape(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", text)


def _waiting(url: str) -> str:
    """Return the URL with `wait=true`: without it Discord answers before it has saved the message."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="wait=true"))


def _read(answer: Answer, now: datetime) -> Outcome:
    outcome = outcome_of(answer, "Discord", now)
    if answer.status != 429 or not isinstance(outcome, Postponed) or outcome.retry_at is not None:
        return outcome
    try:
        seconds = float(json.loads(answer.content)["retry_after"])
        return Postponed(outcome.reason, now + timedelta(seconds=seconds))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return outcome
