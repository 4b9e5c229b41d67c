import http.client
import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotocoreCredentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fakes.aws_endpoint import FakeAwsEndpoint, serve_aws
from relaunch.adapters.aws.sigv4 import AwsCallError, AwsClient, Credentials, find_endpoint, sign_post

AT = datetime(2026, 11, 3, 12, 30, 42, tzinfo=UTC)
SECRET_ARN = "arn:aws:secretsmanager:us-east-1:111122223333:secret:hook-AbCdEf"


@pytest.fixture
def aws() -> Iterator[FakeAwsEndpoint]:
    with serve_aws() as endpoint:
        endpoint.secrets = {"AWSCURRENT": "new"}
        yield endpoint


MakeClient = Callable[..., AwsClient]


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    with ExitStack() as made:

        def make(url: str, timeout_seconds: float = 60.0, **environment: str) -> AwsClient:
            variables = {
                "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
                "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                "AWS_ENDPOINT_URL": url,
                **environment,
            }
            return made.enter_context(closing(AwsClient(variables, AT.timestamp, timeout_seconds)))

        yield make


@pytest.fixture
def client(aws: FakeAwsEndpoint, make_client: MakeClient) -> AwsClient:
    return make_client(aws.url)


def signed_by_botocore(url: str, headers: dict[str, str], body: bytes, token: str) -> dict[str, str]:
    request = AWSRequest("POST", url, headers, body)
    credentials = BotocoreCredentials("AKIDEXAMPLE", "secret/key+1", token or None)
    with patch("botocore.auth.get_current_datetime", return_value=AT.replace(tzinfo=None)):
        SigV4Auth(credentials, "sqs", "eu-north-1").add_auth(request)
    return dict(request.headers.items())


@pytest.mark.parametrize("token", ["", "IQoJb3JpZ2luX2VjEXAMPLE//token=="])
@pytest.mark.parametrize("body", [b"", b'{"MessageBody":"\xc3\xa9"}'])
@pytest.mark.parametrize(
    "url",
    [
        "https://sqs.eu-north-1.amazonaws.com",
        "https://sqs.eu-north-1.amazonaws.com:443/",
        "http://127.0.0.1:4566",
        "http://localhost:80/",
        "http://127.0.0.1:4566/base/path",
    ],
)
def test_the_signature_is_that_of_botocore(url, body, token):
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.SendMessage"}
    signer = (Credentials("AKIDEXAMPLE", "secret/key+1", token), "eu-north-1", AT.strftime("%Y%m%dT%H%M%SZ"))

    signed = sign_post(urlsplit(url), "sqs", headers, body, signer)

    assert {name: value for name, value in signed.items() if name != "Host"} == signed_by_botocore(
        url, headers, body, token
    )


def test_a_message_is_sent_as_sqs_expects_it(aws, make_client):
    message_id = make_client(aws.url, AWS_SESSION_TOKEN="token").send_message("https://queue/intake", '{"n": "é"}')

    (target, headers, body) = aws.requests[0]
    assert (message_id, aws.messages) == ("message-1", [{"n": "é"}])
    assert target == "AmazonSQS.SendMessage"
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert headers["Host"] == aws.url.removeprefix("http://")
    assert headers["X-Amz-Security-Token"] == "token"
    assert headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261103/us-east-1/sqs/")
    assert json.loads(body) == {"QueueUrl": "https://queue/intake", "MessageBody": '{"n": "é"}'}


def test_a_secret_is_read_by_its_stage(aws, client):
    aws.stored_at = 1793709042.5
    assert client.read_secret(SECRET_ARN, "AWSCURRENT") == ("new", 1793709042.5)
    assert client.read_secret(SECRET_ARN, "AWSPREVIOUS") is None
    assert json.loads(aws.requests[0][2]) == {"SecretId": SECRET_ARN, "VersionStage": "AWSCURRENT"}


def test_a_secret_whose_time_is_missing_counts_as_stored_long_ago(aws, client):
    aws.stored_at = None

    assert client.read_secret(SECRET_ARN, "AWSCURRENT") == ("new", 0.0)


def test_a_refusal_is_an_error_with_the_code_of_aws(aws, client):
    aws.failures = {
        "GetSecretValue": [(400, "AccessDeniedException")],
        "SendMessage": [(400, "com.amazonaws.sqs#QueueDoesNotExist")],
    }

    with pytest.raises(AwsCallError, match="AccessDeniedException: GetSecretValue was refused: as planned"):
        client.read_secret(SECRET_ARN, "AWSCURRENT")
    with pytest.raises(AwsCallError) as refused:
        client.send_message("https://queue/intake", "{}")
    assert refused.value.code == "QueueDoesNotExist"


def test_a_server_error_is_tried_once_more(aws, client):
    aws.failures = {"SendMessage": [(503, "ServiceUnavailable")]}

    client.send_message("https://queue/intake", "{}")
    assert len(aws.messages) == 1

    aws.failures = {"SendMessage": [(500, "InternalError"), (500, "InternalError")]}
    with pytest.raises(AwsCallError, match="InternalError"):
        client.send_message("https://queue/intake", "{}")


def test_a_connection_that_died_while_the_function_was_frozen_is_opened_anew(aws, client):
    client.send_message("https://queue/intake", "{}")
    aws.failures = {"SendMessage": [None]}

    client.send_message("https://queue/intake", "{}")

    assert len(aws.messages) == 2
    assert aws.targets() == ["SendMessage"] * 3


def test_a_new_connection_that_dies_is_an_error(aws, client):
    aws.failures = {"SendMessage": [None]}

    with pytest.raises(AwsCallError, match="SendMessage got no answer"):
        client.send_message("https://queue/intake", "{}")


def test_a_connection_that_the_server_closes_after_each_answer_is_fine(aws, client):
    aws.closes_connections = True
    for _ in range(3):
        client.send_message("https://queue/intake", "{}")

    assert len(aws.messages) == 3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signed itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "relaunch test")])
    address = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(pem, pkcs8, serialization.NoEncryption()) + signed.public_bytes(pem))
    return path


def test_over_tls_only_servers_with_a_trusted_certificate_are_told_anything(certificate, make_client):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serve_aws(context) as aws:
        with pytest.raises(AwsCallError, match="CERTIFICATE_VERIFY_FAILED"):
            make_client(aws.url).send_message("https://queue/intake", "{}")
        assert aws.requests == []

        trusting = make_client(aws.url, AWS_CA_BUNDLE=str(certificate))
        trusting.send_message("https://queue/intake", "{}")
        trusting.send_message("https://queue/intake", "{}")
        assert len(aws.messages) == 2
        trusting.close()


def test_nobody_listening_is_an_error(make_client):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    with pytest.raises(AwsCallError, match=r"got no answer from 127\.0\.0\.1"):
        make_client(f"http://127.0.0.1:{port}").send_message("https://queue/intake", "{}")


def test_an_answer_that_does_not_come_is_not_waited_for(make_client):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = make_client(f"http://127.0.0.1:{port}", timeout_seconds=0.05)

        with pytest.raises(AwsCallError, match="TimeoutError"):
            client.send_message("https://queue/intake", "{}")


def test_a_kept_connection_that_falls_silent_is_not_tried_twice(aws, make_client):
    client = make_client(aws.url)
    client.send_message("https://queue/intake", "{}")
    arrived = threading.Event()
    answer = aws.answer

    def answer_late(target: str, parameters: dict[str, str]) -> tuple[int, dict[str, str]]:
        arrived.set()
        return answer(target, parameters)

    def time_out(_connection: http.client.HTTPConnection) -> None:
        arrived.wait()
        raise TimeoutError("timed out")

    with (
        patch.object(aws, "answer", answer_late),
        patch.object(http.client.HTTPConnection, "getresponse", time_out),
        pytest.raises(AwsCallError, match="TimeoutError"),
    ):
        client.send_message("https://queue/intake", "{}")
    assert aws.targets() == ["SendMessage"] * 2


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]"])
def test_an_answer_that_is_no_json_object_is_an_error(answer, make_client):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(AwsCallError, match="HTTP 403"):
            make_client(f"http://127.0.0.1:{server.getsockname()[1]}").send_message("https://queue/intake", "{}")
        thread.join()


@pytest.mark.parametrize(
    ("environment", "service", "url"),
    [
        ({"AWS_REGION": "eu-west-1"}, "sqs", "https://sqs.eu-west-1.amazonaws.com"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, "secretsmanager", "https://secretsmanager.eu-west-1.amazonaws.com"),
        ({"AWS_REGION": "cn-north-1"}, "sqs", "https://sqs.cn-north-1.amazonaws.com.cn"),
        ({"AWS_ENDPOINT_URL": "http://a:1"}, "sqs", "http://a:1"),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_SQS": "http://b:2"}, "sqs", "http://b:2"),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_SQS": "http://b:2"}, "secretsmanager", "http://a:1"),
        ({"AWS_ENDPOINT_URL_SECRETS_MANAGER": "http://c:3", "AWS_REGION": "x"}, "secretsmanager", "http://c:3"),
    ],
)
def test_a_service_is_found_as_the_sdks_find_it(environment, service, url):
    assert find_endpoint(environment, service) == url


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({}, "AWS_REGION"),
        ({"AWS_REGION": "us-east-1"}, "AWS_ACCESS_KEY_ID"),
        ({"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a"}, "AWS_SECRET_ACCESS_KEY"),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, "AWS_REGION"),
    ],
)
def test_what_the_environment_lacks_is_named(environment, missing):
    with pytest.raises(AwsCallError, match=f"{missing} is not set"):
        AwsClient(environment).send_message("https://queue/intake", "{}")
