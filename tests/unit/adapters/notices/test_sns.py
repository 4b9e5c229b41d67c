"""Topics of SNS."""

from typing import Any

import pytest

from fakes.aws import refusal
from fakes.notices import FakeReceiver
from relaunch.adapters.notices.sns import SnsTopic
from relaunch.core.notices.notice import Subscription
from relaunch.ports.notices import Delivered, Postponed, Refused
from unit.adapters.notices.conftest import make_notice

ARN = "arn:aws:sns:us-east-1:111122223333:training"


class Topics:
    """SNS: keeps what is published, or raises what it is to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.published: list[dict[str, Any]] = []
        self._error = error

    def publish(self, **message: Any) -> dict[str, str]:
        if self._error is not None:
            raise self._error
        self.published.append(message)
        return {"MessageId": "m-1"}


def test_a_notice_is_a_mail_with_a_subject_of_plain_ascii() -> None:
    topics = Topics()
    name = f"résnet-{'x' * 200}"

    outcome = SnsTopic(Subscription(name="mail"), ARN, topics).deliver(make_notice(job_id=name), "")

    assert outcome == Delivered(answer="message m-1")
    (mail,) = topics.published
    assert mail["TopicArn"] == ARN
    assert mail["Subject"].startswith("r?snet-x")
    assert len(mail["Subject"]) < 100
    assert mail["Subject"].isascii()
    assert mail["Message"].endswith(f"relaunch explain {name}\nrelaunch logs {name}\nrelaunch retry {name}")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        # "Publish", Amazon SNS API Reference, "Errors".
        ("NotFound", Postponed),
        ("AuthorizationError", Postponed),
        ("KMSDisabled", Postponed),
        ("KMSThrottling", Postponed),
        ("Throttled", Postponed),
        ("ThrottledException", Postponed),
        ("InternalError", Postponed),
        ("InvalidParameter", Refused),
        ("EndpointDisabled", Refused),
    ],
)
def test_what_may_heal_is_tried_again(code: str, outcome: type) -> None:
    topic = SnsTopic(Subscription(name="mail"), ARN, Topics(refusal(code)))

    answered = topic.deliver(make_notice(), "")

    assert isinstance(answered, outcome)
    assert isinstance(answered, Postponed | Refused)
    assert code in answered.reason
    assert topic.subscription == FakeReceiver(Subscription(name="mail")).subscription
