from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from fakes.action_services import JOB_API_URL
from relaunch_action.signature import Credentials, Scope, signed_post

NOW = datetime(2026, 11, 3, 12, 30, 42, tzinfo=UTC)
KEYS = ("ASIAEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")


@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzEBYaD//token+/="])
@pytest.mark.parametrize("url", [JOB_API_URL, JOB_API_URL[:-1], "http://127.0.0.1:4566/_aws/lambda-url/ab c%20d/"])
@pytest.mark.parametrize("body", [b"", b'{"action": "show"}', "é\n".encode()])
def test_it_is_the_signature_that_botocore_makes(url: str, body: bytes, token: str) -> None:
    request = signed_post(url, body, Credentials(*KEYS, token), Scope("eu-central-1", "lambda"), NOW)

    signer = botocore.auth.SigV4Auth(BotoCredentials(*KEYS, token or None), "lambda", "eu-central-1")
    theirs = AWSRequest("POST", url, data=body)
    for name, value in request.headers.items():
        if name not in ("authorization", "host"):
            theirs.headers.add_header(name, value)
    theirs.context["timestamp"] = "20261103T123042Z"
    signature = signer.signature(signer.string_to_sign(theirs, signer.canonical_request(theirs)), theirs)

    assert request.headers["authorization"].endswith(f"Signature={signature}")
    assert request.headers["x-amz-date"] == "20261103T123042Z"
    assert (request.url, request.body, request.method) == (url, body, "POST")
    assert request.headers.get("x-amz-security-token", "") == token
