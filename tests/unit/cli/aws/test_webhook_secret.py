"""The stored secrets in Secrets Manager."""

import pytest
from botocore.exceptions import ReadTimeoutError

from fakes.aws import aws_in_process, make_client
from relaunch_cli.aws.webhook_secret import SecretsManagerStore


@pytest.fixture
def client():
    with aws_in_process():
        yield make_client("secretsmanager")


@pytest.fixture
def store(client):
    arn = client.create_secret(Name="hook", SecretString="generated")["ARN"]
    return SecretsManagerStore(client, arn, "https://hook.example/", 60.0)


def test_a_secret_is_replaced(store):
    stored = store.load()
    assert stored.text == "generated"
    assert store.load_previous() == ""

    assert store.replace(stored, "new")

    assert store.load().text == "new"
    assert store.load_previous() == "generated"


def test_of_two_that_read_the_same_version_one_writes(store):
    first, second = store.load(), store.load()

    assert store.replace(first, "of the first")
    assert not store.replace(second, "of the second")
    assert store.load().text == "of the first"
    assert store.replace(store.load(), "of both")
    assert store.load_previous() == "of the first"


def test_a_write_that_is_repeated_has_no_further_effect(store):
    stored = store.load()

    assert store.replace(stored, "new")
    assert store.replace(stored, "new")
    assert store.load_previous() == "generated"


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_write_without_an_answer_is_looked_up(store, client, monkeypatch, is_stored):
    put = client.put_secret_value

    def put_without_answer(**request):
        if is_stored:
            put(**request)
        raise ReadTimeoutError(endpoint_url="https://secretsmanager")

    monkeypatch.setattr(client, "put_secret_value", put_without_answer)

    if is_stored:
        assert store.replace(store.load(), "new")
    else:
        with pytest.raises(ReadTimeoutError):
            store.replace(store.load(), "new")
