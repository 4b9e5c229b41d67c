import json

import pytest

from fakes.builders import NOW
from fakes.webhook_secret import FakeWebhookSecret
from relaunch.adapters.github.webhook_secrets import parse_document
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.webhook_secret import secret_of


def test_a_repository_gets_a_secret_of_its_own_once():
    store = FakeWebhookSecret()

    first, second = secret_of("acme/vision", store, NOW), secret_of("acme/vision", store, NOW)

    scopes = parse_document(store.load().text)
    assert first == second == scopes["acme/vision"].secret
    assert len(first) == 64
    assert scopes["/"].secret == "generated"


def test_another_change_at_the_same_time_is_kept():
    store = FakeWebhookSecret()
    store.before_write.append(lambda: store.store(json.dumps({"scopes": {"acme/other": {"secret": "o"}}})))

    secret_of("acme/vision", store, NOW)

    assert set(parse_document(store.load().text)) == {"acme/other", "acme/vision"}


def test_it_gives_up_where_others_write_all_the_time():
    store = FakeWebhookSecret()
    store.before_write += [lambda: store.store("another")] * 5

    with pytest.raises(CommandError, match="replaced 5 times in between"):
        secret_of("acme/vision", store, NOW)


def test_a_malformed_secret_is_told_and_kept():
    store = FakeWebhookSecret('{"scopes": 1}')

    with pytest.raises(CommandError):
        secret_of("acme/vision", store, NOW)

    assert store.load().text == '{"scopes": 1}'
