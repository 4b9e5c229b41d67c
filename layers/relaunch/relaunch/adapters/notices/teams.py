"""Microsoft Teams: the URL of a workflow "Send webhook alerts to a channel", which takes adaptive cards.

Sources: learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using (workflows take
adaptive cards alone, the connectors of Office 365 are retired), …/how-to/add-incoming-webhook (28 KB, four requests
per second, 429), adaptivecards.io/explorer/TextRun.html (the text of a TextRun is no Markdown),
learn.microsoft.com/adaptive-cards/schema-explorer/action-open-url (a button of the card). A workflow answers 202,
has no threads, and does not say whether the card arrived in the channel.
"""

import json
from typing import Any

from relaunch.adapters.notices.http_outcomes import outcome_of, post_outcome
from relaunch.adapters.notices.https_sender import HttpsSender
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.text import write_text
from relaunch.ports import Clock
from relaunch.ports.notices import Outcome

HOSTS = ("*.webhook.office.com", "*.logic.azure.com", "*.powerplatform.com")


class TeamsWorkflow:
    """Implements NoticeReceiver, each notice as a card of its own."""

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
        body = json.dumps(write_card(notice)).encode()
        return post_outcome(
            lambda: self._sender.post(self._url, body, {"Content-Type": "application/json"}),
            lambda answer: outcome_of(answer, "Teams", self._clock.now()),
        )


def write_card(notice: Notice) -> dict[str, Any]:
    """Return the message with its card."""
    text = write_text(notice)
    title = {"type": "TextRun", "text": text.title, "weight": "bolder"}
    commands = [{"type": "TextRun", "text": each, "fontType": "monospace"} for each in text.commands]
    runs = [title, *({"type": "TextRun", "text": line} for line in text.lines), *commands]
    page = {"actions": [{"type": "Action.OpenUrl", "title": "Open the job", "url": text.page_url}]}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [{"type": "RichTextBlock", "inlines": [run]} for run in runs],
        **(page if text.page_url else {}),
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}
