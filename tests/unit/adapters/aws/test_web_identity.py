import boto3
import pytest
from botocore.stub import Stubber

from relaunch.adapters.aws.web_identity import WebIdentity
from relaunch.ports import PermanentError, TransientError

OPERATION = "get_web_identity_token"


@pytest.fixture
def sts() -> Stubber:
    client = boto3.client("sts", region_name="eu-central-1", aws_access_key_id="x", aws_secret_access_key="y")
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_a_token_is_for_one_audience_and_minutes(sts: Stubber) -> None:
    asked = {"Audience": ["relaunch"], "SigningAlgorithm": "RS256", "DurationSeconds": 300}
    sts.add_response(OPERATION, {"WebIdentityToken": "jwt-of-aws"}, asked)

    assert WebIdentity(sts.client, "relaunch").issue_token() == "jwt-of-aws"


def test_an_account_without_federation_is_told_how_to_enable_it(sts: Stubber) -> None:
    sts.add_client_error(OPERATION, "OutboundWebIdentityFederationDisabledException")

    with pytest.raises(PermanentError, match="enable-outbound-web-identity-federation"):
        WebIdentity(sts.client, "relaunch").issue_token()


@pytest.mark.parametrize(("code", "error"), [("AccessDenied", PermanentError), ("Throttling", TransientError)])
def test_a_token_that_is_not_issued_is_an_error(sts: Stubber, code: str, error: type[Exception]) -> None:
    sts.add_client_error(OPERATION, code)

    with pytest.raises(error, match=f"issuing a web identity token.*{code}"):
        WebIdentity(sts.client, "relaunch").issue_token()
