from dataclasses import replace

import boto3
import pytest
from botocore.config import Config

from relaunch_local.attack.requests import REGION, Call
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.signature import RequestHead, parse_signature

ROOT = Credentials("AKIAROOT", "secret")
URL = "http://127.0.0.1:4566"


def head_of(call: Call) -> RequestHead:
    headers = [(name.lower(), value) for name, value in call.headers.items()]
    return RequestHead(call.method, call.url.removeprefix(URL), headers)


def is_valid(call: Call, secret: str = ROOT.secret_access_key) -> bool:
    signature = parse_signature(head_of(call))
    return signature is not None and signature.is_valid(head_of(call), call.body, secret)


# The example "get-vanilla" of the Signature Version 4 test suite of AWS's SDKs.
VANILLA = RequestHead(
    "GET",
    "/",
    [
        ("host", "example.amazonaws.com"),
        ("x-amz-date", "20150830T123600Z"),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
            "SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
    ],
)


def test_the_example_of_aws_is_valid_at_any_time() -> None:
    signature = parse_signature(VANILLA)

    assert signature is not None
    assert signature.access_key_id == "AKIDEXAMPLE"
    assert signature.is_valid(VANILLA, b"", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
    assert not signature.is_valid(VANILLA, b"", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEX")


CALLS = [
    Call(f"{URL}/2015-03-31/functions/a%3Ab/invocations?Qualifier=b&a=%20", body=b'{"a": 1}'),
    Call(f"{URL}/", body=b"Action=ListQueues", headers={"Content-Type": "application/x-www-form-urlencoded"}),
    Call(f"{URL}/", headers={"X-Amz-Target": "AmazonEC2ContainerServiceV20141113.ListTasks", "A": "two  spaces "}),
    Call(f"{URL}/x//../y", method="GET"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("service", ["lambda", "s3"])
def test_what_botocore_signs_is_valid(call: Call, service: str) -> None:
    assert is_valid(call.sign(ROOT, service))
    assert is_valid(call.sign(ROOT, service, token="a token"))


@pytest.mark.parametrize("service", ["lambda", "s3"])
@pytest.mark.parametrize(
    "change",
    [
        lambda call: replace(call, body=b"other"),
        lambda call: replace(call, method="PUT"),
        lambda call: replace(call, url=f"{URL}/other"),
        lambda call: replace(call, url=f"{call.url}?more=1"),
        lambda call: call.add(Host="localhost:4566"),
        lambda call: call.add(**{"X-Amz-Date": "20260101T000000Z"}),
        lambda call: call.add(Authorization=call.headers["Authorization"].replace("AKIAROOT", "AKIANOBODY")[:-1] + "g"),
        lambda call: call.add(Authorization=call.headers["Authorization"].replace("host;", "")),
        lambda call: call.add(
            Authorization=call.headers["Authorization"].replace("/lambda/", "/iam/")[:-64] + "0" * 64
        ),
        lambda call: call.add(Authorization=""),
    ],
)
def test_what_was_changed_since_is_not(change, service: str) -> None:
    call = Call(f"{URL}/path", body=b"body").sign(ROOT, service)

    assert is_valid(call)
    assert not is_valid(change(call))
    assert not is_valid(call, "another secret")


def test_a_declared_hash_is_that_of_the_body() -> None:
    signed = Call(f"{URL}/b/k", "PUT", b"body").sign(ROOT, "s3")

    assert is_valid(signed)
    assert not is_valid(replace(signed, body=b"other"))


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer x",
        "AWS AKIAROOT:signature",
        "AWS4-HMAC-SHA256 Credential=111122223333",
        "AWS4-HMAC-SHA256 " + "a" * 10_000,
    ],
)
def test_another_authorization_is_no_signature(authorization: str) -> None:
    assert parse_signature(head_of(Call(URL, headers={"Authorization": authorization}))) is None


def test_a_repeated_header_is_no_signature() -> None:
    twice = [*VANILLA.headers, ("authorization", "AWS4-HMAC-SHA256")]

    assert parse_signature(replace(VANILLA, headers=twice)) is None


@pytest.mark.parametrize(
    ("service", "operation", "arguments"),
    [
        ("s3", "put_object", {"Bucket": "b", "Key": "a b/ü", "Body": b"content", "Metadata": {"a": "b"}}),
        ("s3", "list_objects_v2", {"Bucket": "b", "Prefix": "a b/+"}),
        ("sqs", "send_message", {"QueueUrl": f"{URL}/1/q", "MessageBody": "ü"}),
        ("iam", "list_roles", {"PathPrefix": "/a/"}),
        ("lambda", "invoke", {"FunctionName": "a", "Payload": b"{}"}),
        ("ec2", "describe_instances", {"InstanceIds": ["i-0"]}),
    ],
)
def test_what_boto3_sends_is_valid(service: str, operation: str, arguments: dict[str, object]) -> None:
    verdicts: list[bool] = []

    def check(request, **_):
        headers = [
            (name.lower(), value.decode() if isinstance(value, bytes) else value)
            for name, value in [*request.headers.items(), ("Host", "127.0.0.1:4566")]
        ]
        head = RequestHead(request.method, request.url.removeprefix(URL), headers)
        body = request.body.read() if hasattr(request.body, "read") else request.body or b""
        body = body.encode() if isinstance(body, str) else body
        signature = parse_signature(head)
        verdicts.append(signature is not None and signature.is_valid(head, body, ROOT.secret_access_key))
        raise ConnectionError

    client = boto3.client(
        service,
        endpoint_url=URL,
        region_name=REGION,
        aws_access_key_id=ROOT.access_key_id,
        aws_secret_access_key=ROOT.secret_access_key,
        config=Config(retries={"total_max_attempts": 1}),
    )
    client.meta.events.register("before-send", check)

    with pytest.raises(ConnectionError):
        getattr(client, operation)(**arguments)

    assert verdicts == [True]
