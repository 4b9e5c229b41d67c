import json

import pytest

from relaunch_local.iam.calls import CalledAccount, CallPermissions
from relaunch_local.iam.conditions import PolicyError
from relaunch_local.iam.requests import RequestAuthorizer
from relaunch_local.iam.wire import read_call
from relaunch_local.request_guard.guard import RefusedRequestError
from relaunch_local.request_guard.signature import RequestHead, Signature

ROLE, ROOT = "ASIAROLE", "AKIAROOT"
TABLE = "arn:aws:dynamodb:us-east-1:111122223333:table/jobs"


def head(method: str = "POST", target: str = "/", **headers: str) -> RequestHead:
    return RequestHead(method, target, [(name.replace("_", "-"), value) for name, value in headers.items()])


def signed(key: str, service: str) -> Signature:
    return Signature(key, "20261103", "us-east-1", service, frozenset({"host"}), "0")


@pytest.mark.parametrize(
    ("service", "request_head", "body", "operation", "parameters"),
    [
        ("sqs", head(x_amz_target="AmazonSQS.SendMessage"), b'{"QueueUrl": "q"}', "SendMessage", {"QueueUrl": "q"}),
        (
            "sts",
            head(),
            b"Action=GetWebIdentityToken&Audience.member.1=a&Audience.member.2=b&DurationSeconds=300",
            "GetWebIdentityToken",
            {"Action": "GetWebIdentityToken", "Audience": ["a", "b"], "DurationSeconds": "300"},
        ),
        ("s3", head("GET", "/acme/a%20b/c"), b"", "GetObject", {"Bucket": "acme", "Key": "a b/c"}),
        ("s3", head("HEAD", "/acme"), b"", "HeadBucket", {"Bucket": "acme"}),
        (
            "s3",
            head("GET", "/acme?list-type=2&prefix=a%2F&max-keys=5"),
            b"",
            "ListObjectsV2",
            {"Bucket": "acme", "Prefix": "a/", "MaxKeys": "5"},
        ),
    ],
)
def test_calls_are_read_from_requests(
    service: str, request_head: RequestHead, body: bytes, operation: str, parameters: dict[str, object]
) -> None:
    assert read_call(service, request_head, body) == (operation, parameters)


@pytest.mark.parametrize(
    ("service", "request_head"),
    [("s3", head("POST", "/acme/a?uploads")), ("s3", head("DELETE", "/acme")), ("sts", head())],
)
def test_what_is_not_read_is_an_error(service: str, request_head: RequestHead) -> None:
    with pytest.raises(PolicyError, match="not read here"):
        read_call(service, request_head, b"Version=1")


class TestAuthorizing:
    def check(self, index: str = "", key: str = ROLE, operation: str = "Query") -> list[str]:
        refused: list[str] = []
        allowed = [{"Statement": [{"Effect": "Allow", "Action": "dynamodb:Query", "Resource": TABLE}]}]
        calls = CallPermissions(CalledAccount("111122223333", "us-east-1"))
        authorizer = RequestAuthorizer({ROLE: allowed}.get, calls, refused.append)
        query = {
            "TableName": "jobs",
            "KeyConditionExpression": "due = :due",
            "ExpressionAttributeValues": {":due": {"S": "OPEN"}},
            **({"IndexName": index} if index else {}),
        }
        request = head(x_amz_target=f"DynamoDB_20120810.{operation}")
        authorizer.check(signed(key, "dynamodb"), request, json.dumps(query).encode())
        return refused

    def test_what_the_role_may_is_taken(self) -> None:
        assert self.check() == []

    def test_an_index_is_another_resource_than_its_table(self) -> None:
        with pytest.raises(RefusedRequestError, match=r"dynamodb:Query on resource: .*index/due"):
            self.check("due")

    def test_the_root_user_may_do_everything(self) -> None:
        assert self.check("due", ROOT) == []

    def test_what_nothing_is_known_of_is_refused(self) -> None:
        with pytest.raises(RefusedRequestError, match="nothing is known of"):
            self.check(operation="Scan")
