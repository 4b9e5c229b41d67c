"""The retries of simulated clients are those of real clients."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from fakes.scripted_aws import ScriptedAws
from relaunch.adapters.aws.client_config import CLIENT_CONFIG, SINGLE_SEND_CONFIG
from relaunch_local.simulation.aws.sdk_retries import SdkRetries

URL = "https://ecs.us-east-1.amazonaws.com"
READ_TIMEOUT = ReadTimeoutError(endpoint_url=URL)
DISCONNECTED = ConnectionClosedError(endpoint_url=URL)


def answer(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "RunTask")  # type: ignore[typeddict-item]


def sends_of(retries: SdkRetries, error: Callable[[], Exception]) -> int:
    """Return how often a call is sent that fails in this way each time."""
    context: dict[str, Any] = {}
    sends = 1
    while retries.pause_after(error(), sends, context) is not None:
        sends += 1
    return sends


@pytest.mark.parametrize("config", [CLIENT_CONFIG, SINGLE_SEND_CONFIG], ids=["client", "fleet"])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ServerException", 500),
        ("ServiceUnavailable", 503),
        ("ThrottlingException", 400),
        ("RequestLimitExceeded", 503),
        ("TransactionInProgressException", 400),
        ("AccessDeniedException", 400),
        ("ConditionalCheckFailedException", 400),
        ("TransactionCanceledException", 400),
        ("ClientException", 400),
    ],
)
def test_an_error_is_repeated_as_often_as_by_a_real_client(
    monkeypatch: pytest.MonkeyPatch, config: Config, code: str, status: int
) -> None:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    real = ScriptedAws("ecs", config)
    for _ in range(3):
        real.refuse("RunTask", code, "-", status)
    with pytest.raises(ClientError) as caught:
        real.client.run_task(taskDefinition="trainer")

    retries = SdkRetries("ecs", config, lambda: 0.5)
    assert sends_of(retries, lambda: answer(code, status)) == len(real.sent("RunTask"))
    error = answer(code, status)
    retries.pause_after(error, len(real.sent("RunTask")), {})
    attempts = error.response["ResponseMetadata"]["RetryAttempts"]
    assert attempts == caught.value.response["ResponseMetadata"]["RetryAttempts"]


@pytest.mark.parametrize("error", [READ_TIMEOUT, DISCONNECTED], ids=["time-out", "disconnected"])
def test_a_call_without_an_answer_is_repeated(error: Exception) -> None:
    assert sends_of(SdkRetries("ecs", CLIENT_CONFIG, lambda: 0.5), lambda: error) == 3
    assert sends_of(SdkRetries("ec2", SINGLE_SEND_CONFIG, lambda: 0.5), lambda: error) == 1


def test_the_pauses_grow_and_are_those_of_the_service() -> None:
    throttled, context = answer("ThrottlingException", 400), dict[str, Any]()
    retries = SdkRetries("ecs", CLIENT_CONFIG, lambda: 0.5)
    assert [retries.pause_after(throttled, sends, context) for sends in (1, 2)] == [0.5, 1.0]
    assert [retries.pause_after(DISCONNECTED, sends, context) for sends in (1, 2)] == [0.025, 0.05]
    dynamodb = SdkRetries("dynamodb", CLIENT_CONFIG, lambda: 0.5)
    assert dynamodb.pause_after(DISCONNECTED, 1, context) == 0.0125


def test_a_client_whose_calls_all_fail_stops_repeating_until_some_succeed() -> None:
    retries = SdkRetries("ecs", CLIENT_CONFIG, lambda: 0.5)

    def fail() -> Iterator[int]:
        while True:
            yield sends_of(retries, lambda: READ_TIMEOUT)

    attempts = fail()
    assert next(attempts) == 3
    assert 1 in (next(attempts) for _ in range(100))
    for _ in range(14):
        retries.note_success({})
    assert next(attempts) > 1


def test_a_client_waits_for_an_answer_as_long_as_it_is_configured_to() -> None:
    assert SdkRetries("ecs", CLIENT_CONFIG, lambda: 0.5).read_timeout == 8
    assert SdkRetries("ec2", SINGLE_SEND_CONFIG, lambda: 0.5).read_timeout == 40
