"""What is stored of a receiver."""

import pytest

from fakes.notice_receivers import ENDPOINT, SECRET, SLACK_WEBHOOK, TOKEN
from relaunch.adapters.notices.configuration import (
    MalformedReceiverError,
    ReceiverConfiguration,
    hosts_of,
    is_receiver_name,
    read_configuration,
    write_configuration,
)
from relaunch.core.definitions.notice_routes import DEFAULT_KINDS, NoticeKind

STORED = {
    "slack": {"kind": "slack", "token": TOKEN, "channel": "#training"},
    "slack-url": {"kind": "slack", "url": SLACK_WEBHOOK, "waits_after_minutes": 5},
    "webhook": {"kind": "webhook", "url": ENDPOINT, "secret": SECRET, "is_for_all": False, "kinds": ["failed"]},
    "sns": {"kind": "sns", "topic_arn": "arn:aws:sns:us-east-1:111122223333:training"},
}


@pytest.mark.parametrize("members", STORED.values(), ids=STORED)
def test_what_is_written_is_read_again_and_printing_it_shows_no_secret(members: dict[str, object]) -> None:
    configuration = ReceiverConfiguration.model_validate(members)

    assert read_configuration(write_configuration(configuration)) == configuration
    assert not any(each in repr(configuration) for each in ("xoxb", "secretpath", "secretkey", "whsec"))


def test_without_kinds_it_gets_the_usual_ones_and_a_definition_may_name_others() -> None:
    configuration = ReceiverConfiguration.model_validate(STORED["slack"])

    assert configuration.subscription("team").kinds == frozenset(DEFAULT_KINDS)
    assert configuration.subscription("team", (NoticeKind.STARTED,)).kinds == {NoticeKind.STARTED}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        '"secret"',
        '{"kind": "secret"}',
        '{"kind": "slack", "url": 5}',
        '{"kind": "slack", "secret": "secret"}',
        '{"kind": "slack", "url": "secret", "token": "secret", "channel": "c"}',
        '{"kind": "webhook", "url": "secret"}',
        '{"kind": "slack", "token": "secret", "channel": "secret channel"}',
        '{"kind": "sns", "topic_arn": "secret"}',
        '{"kind": "teams", "url": "u", "kinds": ["secret"]}',
        '{"kind": "teams", "url": "u", "waits_after_minutes": 0}',
    ],
)
def test_what_is_no_receiver_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(MalformedReceiverError) as error:
        read_configuration(text)

    words = str(error.value).replace("secret and url", "").replace("; secret", "").removeprefix("it is no receiver: ")
    assert "secret" not in words.replace("has secret", "")


def test_names_and_hosts() -> None:
    assert is_receiver_name("team-ml")
    assert not any(map(is_receiver_name, ("", "Team", "1a", "a" * 41, "a/b", "a_b")))
    assert hosts_of("webhook", ["h"]) == ("h",)
    assert "slack.com" in hosts_of("slack", ["h"])
