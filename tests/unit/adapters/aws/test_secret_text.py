import boto3
import pytest
from botocore.stub import Stubber

from relaunch.adapters.aws.secret_text import SecretText
from relaunch.ports import PermanentError, TransientError

SECRET = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:kubeconfig"
ASKED = {"SecretId": SECRET}


@pytest.fixture
def manager() -> Stubber:
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "y"}
    with Stubber(boto3.client("secretsmanager", region_name="eu-central-1", **keys)) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_a_text_is_read_anew_each_time(manager: Stubber) -> None:
    for value in ("one", "two"):
        manager.add_response("get_secret_value", {"SecretString": value}, ASKED)
    secret = SecretText(manager.client, SECRET)

    assert [secret.read(), secret.read()] == ["one", "two"]


def test_a_binary_secret_is_refused_and_not_quoted(manager: Stubber) -> None:
    manager.add_response("get_secret_value", {"SecretBinary": b"bytes-7"}, ASKED)

    with pytest.raises(PermanentError, match="store it as SecretString") as caught:
        SecretText(manager.client, SECRET).read()

    assert "bytes-7" not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "error"),
    [("ResourceNotFoundException", PermanentError), ("InternalServiceError", TransientError)],
)
def test_a_secret_that_cannot_be_read_is_an_error(manager: Stubber, code: str, error: type[Exception]) -> None:
    manager.add_client_error("get_secret_value", code, http_status_code=500 if error is TransientError else 400)

    with pytest.raises(error, match=f"reading the secret {SECRET}.*{code}"):
        SecretText(manager.client, SECRET).read()
