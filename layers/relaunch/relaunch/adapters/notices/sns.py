"""E-mail, and whatever else subscribes to an SNS topic of the user's.

Source: "Publish" (Amazon SNS API Reference): a subject is up to 99 printable ASCII characters without a line break.
"""

from typing import Any

from relaunch.adapters.aws.errors import AwsError, error_code, is_not_granted, is_transient
from relaunch.core.jobs.changes import cut
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.text import write_text
from relaunch.ports.notices import Delivered, Outcome, Postponed, Refused

_MAX_SUBJECT = 95
_MENDABLE = frozenset({"AuthorizationError", "NotFound", "KMSDisabled"})


class SnsTopic:
    """Implements NoticeReceiver; `client` is SNS's, of the region of the topic."""

    def __init__(self, subscription: Subscription, topic_arn: str, client: Any) -> None:
        self._subscription = subscription
        self._topic_arn = topic_arn
        self._client = client

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        del thread
        text = write_text(notice)
        try:
            answer = self._client.publish(TopicArn=self._topic_arn, Subject=_subject(text.title), Message=text.plain)
        except AwsError as error:
            code = error_code(error)
            if is_transient(error) or is_not_granted(error) or code in _MENDABLE:
                return Postponed(f"SNS answers {code}")
            return Refused(f"SNS answers {code}")
        return Delivered(answer=f"message {answer.get('MessageId', '')}")


def _subject(title: str) -> str:
    plain = "".join(each if " " <= each <= "~" else "?" for each in title)
    return cut(plain, _MAX_SUBJECT).replace("…", "...")
