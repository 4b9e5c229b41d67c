"""Slack: a thread per job with a bot token (chat.postMessage), single messages with an incoming webhook.

Sources: docs.slack.dev/reference/methods/chat.postMessage (errors, `thread_ts`), /apis/web-api/rate-limits (429 and
Retry-After; a message per second and channel), /messaging/formatting-message-text (`&`, `<` and `>` of `text` are
escaped), /reference/block-kit/blocks/rich-text-block (a text element has its style beside it, and is no markup),
/messaging/sending-messages-using-incoming-webhooks (which have no threads: they answer `ok` without a timestamp).
"""

import json
from datetime import datetime
from typing import Any

from relaunch.adapters.notices.http_outcomes import outcome_of, post_outcome, retry_at, words
from relaunch.adapters.notices.https_sender import Answer, HttpsSender
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.text import write_text
from relaunch.ports import Clock
from relaunch.ports.notices import Delivered, Outcome, Postponed, Refused

HOSTS = ("slack.com", "hooks.slack.com")
POST_MESSAGE = "https://slack.com/api/chat.postMessage"
_JSON = "application/json; charset=utf-8"
_NEVER = frozenset(
    {"invalid_arguments", "invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long", "no_text"}
)
# The first message of the job is gone, or is in another channel.
_LOST_THREAD = frozenset({"cannot_reply_to_message", "invalid_thread_ts", "message_not_found", "thread_not_found"})


class SlackChannel:
    """Implements NoticeReceiver with a bot token: the first notice of a job is a message, the next are replies."""

    def __init__(self, subscription: Subscription, token: str, channel: str, sender: HttpsSender, clock: Clock) -> None:
        self._subscription = subscription
        self._token = token
        self._channel = channel
        self._sender = sender
        self._clock = clock

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        message: dict[str, Any] = {"channel": self._channel, **_message(notice)}
        if thread:
            # The end of a job is seen in the channel too, not by those alone who follow the thread.
            is_end = notice.event.state.is_final
            message |= {"thread_ts": thread, **({"reply_broadcast": True} if is_end else {})}
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": _JSON}
        body = json.dumps(message).encode()
        outcome = post_outcome(
            lambda: self._sender.post(POST_MESSAGE, body, headers),
            lambda answer: _read(answer, thread, self._clock.now()),
        )
        if isinstance(outcome, _LostThread):
            return self.deliver(notice, "")
        return outcome


class SlackWebhook:
    """Implements NoticeReceiver with an incoming webhook, each notice as a message of its own."""

    def __init__(self, subscription: Subscription, url: str, sender: HttpsSender, clock: Clock) -> None:
        self._subscription = subscription
        self._url = url
        self._sender = sender
        self._clock = clock

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        del thread
        body = json.dumps(_message(notice)).encode()
        return post_outcome(
            lambda: self._sender.post(self._url, body, {"Content-Type": _JSON}),
            lambda answer: outcome_of(answer, "Slack", self._clock.now()),
        )


class _LostThread(Refused):
    """Slack does not find the first message of the job."""


def _message(notice: Notice) -> dict[str, Any]:
    text = write_text(notice)
    elements: list[dict[str, Any]] = [
        {"type": "text", "text": f"{text.title}\n", "style": {"bold": True}},
        {"type": "text", "text": "".join(f"{line}\n" for line in text.lines)},
    ]
    if text.page_url:
        page = {"type": "link", "url": text.page_url, "text": "Open the job"}
        elements += [page, {"type": "text", "text": "\n"}]
    for command in text.commands:
        elements += [{"type": "text", "text": command, "style": {"code": True}}, {"type": "text", "text": "\n"}]
    block = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}
    # What is read aloud, and shown where blocks are not, as in a notification.
    return {"text": _escape(text.plain), "blocks": [block], "unfurl_links": False, "unfurl_media": False}


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _read(answer: Answer, thread: str, now: datetime) -> Outcome:
    """Read an answer of chat.postMessage, which says in its body what went wrong, with status 200."""
    if answer.status != 200:
        return outcome_of(answer, "Slack", now)
    try:
        members = json.loads(answer.content)
        is_ok = members["ok"] is True
    except (ValueError, KeyError, TypeError, RecursionError):
        return Postponed("Slack answers in a form that this release does not read")
    if is_ok:
        return Delivered(thread or str(members.get("ts", "")), "ok")
    error = words(members.get("error"))
    if thread and error in _LOST_THREAD:
        return _LostThread(error)
    if error in _NEVER:
        return Refused(f"Slack answers {error}")
    return Postponed(f"Slack answers {error}", retry_at(answer.headers, now))
