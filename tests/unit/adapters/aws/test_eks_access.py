"""Access to a cluster of EKS: its address and CA from DescribeCluster, and a token that is signed here."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from botocore.stub import Stubber

from relaunch.adapters.aws.eks_access import EksAccess
from relaunch.ports import NotGrantedError, PermanentError, TransientError

REGION = "eu-central-1"
CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
NOW = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
CLUSTER: dict[str, Any] = {
    "name": "ml",
    "status": "ACTIVE",
    "endpoint": "https://A1B2.gr7.eu-central-1.eks.amazonaws.com",
    "certificateAuthority": {"data": base64.b64encode(CA.encode()).decode()},
    "resourcesVpcConfig": {"endpointPublicAccess": True, "endpointPrivateAccess": False},
}
OPERATION = "describe_cluster"


def client_of(service: str) -> Any:
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_secret_access_key": "secret", "aws_session_token": "session"}
    return boto3.client(service, region_name=REGION, **keys)


@pytest.fixture
def eks() -> Stubber:
    with Stubber(client_of("eks")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


@pytest.fixture
def access(eks: Stubber) -> EksAccess:
    return EksAccess(eks.client, client_of("sts"), "ml", now=lambda: NOW)


def test_the_cluster_is_found_by_its_name_and_its_token_expires(eks: Stubber, access: EksAccess) -> None:
    eks.add_response(OPERATION, {"cluster": CLUSTER}, {"name": "ml"})

    found = access.fetch()

    assert (found.server, found.certificate_authority) == (CLUSTER["endpoint"], CA)
    assert found.expires_at == NOW + timedelta(minutes=15)
    assert "k8s-aws-v1" not in repr(found)


def test_the_token_is_a_request_to_sts_for_this_cluster_alone(eks: Stubber, access: EksAccess) -> None:
    eks.add_response(OPERATION, {"cluster": CLUSTER})
    eks.add_response(OPERATION, {"cluster": CLUSTER})

    tokens = [access.fetch().token for _ in range(2)]

    for token in tokens:
        prefix, _, encoded = token.partition("k8s-aws-v1.")
        assert (prefix, encoded.rstrip("=")) == ("", encoded)
        url = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
        query = parse_qs(url.query)
        assert (url.scheme, url.hostname) == ("https", f"sts.{REGION}.amazonaws.com")
        assert (query["Action"], query["Version"]) == (["GetCallerIdentity"], ["2011-06-15"])
        # The cluster takes no other headers, and none without its name.
        assert query["X-Amz-SignedHeaders"] == ["host;x-k8s-aws-id"]
        assert query["X-Amz-Expires"] == ["60"]
        assert query["X-Amz-Credential"][0].endswith(f"/{REGION}/sts/aws4_request")
        assert query["X-Amz-Security-Token"] == ["session"]
        assert len(query["X-Amz-Signature"][0]) == 64


def test_other_requests_of_the_client_do_not_name_the_cluster(eks: Stubber) -> None:
    sts = client_of("sts")
    eks.add_response(OPERATION, {"cluster": CLUSTER})
    EksAccess(eks.client, sts, "ml", now=lambda: NOW).fetch()

    url = sts.generate_presigned_url("get_caller_identity", HttpMethod="GET")

    assert parse_qs(urlsplit(url).query)["X-Amz-SignedHeaders"] == ["host"]


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        ("ResourceNotFoundException", NotGrantedError, "there is none: correct the parameter EksClusterName"),
        ("AccessDeniedException", NotGrantedError, "reading the EKS cluster ml"),
        ("ThrottlingException", TransientError, "reading the EKS cluster ml"),
        ("InvalidParameterException", PermanentError, "reading the EKS cluster ml"),
    ],
)
def test_what_eks_refuses_may_be_granted_or_may_pass(
    eks: Stubber, access: EksAccess, code: str, error: type[Exception], said: str
) -> None:
    eks.add_client_error(OPERATION, code)

    with pytest.raises(error, match=said):
        access.fetch()


@pytest.mark.parametrize(
    ("changed", "error", "said"),
    [
        ({"status": "CREATING"}, TransientError, "it is CREATING"),
        ({"resourcesVpcConfig": {"endpointPublicAccess": False}}, NotGrantedError, "functions are in no VPC"),
        ({"endpoint": ""}, TransientError, "it has no endpoint"),
        ({"certificateAuthority": {}}, TransientError, "it has no certificate authority"),
        ({"certificateAuthority": {"data": "*"}}, TransientError, "it has no certificate authority"),
    ],
)
def test_a_cluster_that_cannot_be_reached_yet_is_waited_for(
    eks: Stubber, access: EksAccess, changed: dict[str, Any], error: type[Exception], said: str
) -> None:
    eks.add_response(OPERATION, {"cluster": CLUSTER | changed})

    with pytest.raises(error, match=said):
        access.fetch()


def test_without_credentials_nothing_is_signed(eks: Stubber) -> None:
    eks.add_response(OPERATION, {"cluster": CLUSTER})
    session = boto3.Session(region_name=REGION)
    session._session._credentials = None
    sts = session.client("sts")
    sts._request_signer._credentials = None

    with pytest.raises(NotGrantedError, match="signing in to the EKS cluster"):
        EksAccess(eks.client, sts, "ml").fetch()
