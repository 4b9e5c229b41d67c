"""A region that is off in the account: AWS answers as to bad credentials, and the command names the region."""

from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from relaunch_cli.aws.account import AwsAccount
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.errors import explain_error


class Refusal:
    """The body of what STS answers with HTTP status 403."""

    def stream(self) -> list[bytes]:
        return [
            b"<ErrorResponse><Error><Code>InvalidClientTokenId</Code>"
            b"<Message>The security token included in the request is invalid.</Message></Error></ErrorResponse>"
        ]


def refuse(session: boto3.Session) -> None:
    session.events.register("before-send", lambda **_: AWSResponse("https://sts", 403, {}, Refusal()))


@pytest.mark.usefixtures("_credentials")
@pytest.mark.parametrize("opened", [AwsAccount, lambda: AwsConnection("relaunch").account], ids=["deploy", "a stack"])
def test_the_region_that_is_off_is_named(monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-east-1")
    account = opened()
    refuse(account._session)

    with pytest.raises(ClientError) as refused:
        _ = account.id

    failure = explain_error(refused.value)
    assert failure is not None
    assert "aws account enable-region --region-name ap-east-1" in failure.hint
