"""Signing in without a key: the three requests, what each may refuse, and that no secret is in an error."""

import base64
import json
from datetime import UTC, datetime
from urllib.parse import parse_qs

import httpx
import pytest

from relaunch.adapters.alibaba.cluster_access import ClusterReference, KeylessAccess
from relaunch.adapters.alibaba.ram_role import RamRole
from relaunch.ports import PermanentError, TransientError

NOW = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
CLUSTER = "c5b5e80b0b64a4bf6939d2d8f00112233"
PROVIDER, ROLE = "acs:ram::113511544585:oidc-provider/aws", "acs:ram::113511544585:role/relaunch"
CA = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nca\n-----END CERTIFICATE-----\n").decode()
SECRETS = ("jwt-of-aws", "secret-of-role", "token-of-role", "token-of-user")
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: k, cluster: {{server: "https://192.0.2.1:6443", certificate-authority-data: {CA}}}}}]
contexts: [{{name: c, context: {{cluster: k, user: u}}}}]
users: [{{name: u, user: {{token: token-of-user}}}}]
"""
ASSUMED = {
    "RequestId": "r-1",
    "AssumedRoleUser": {"Arn": "acs:ram::113511544585:role/relaunch/relaunch"},
    "Credentials": {
        "AccessKeyId": "STS.id",
        "AccessKeySecret": "secret-of-role",
        "SecurityToken": "token-of-role",
        "Expiration": "2026-11-03T12:15:00Z",
    },
}
ISSUED = {"config": KUBECONFIG, "expiration": "2026-11-03T12:15:00Z"}


class Alibaba:
    """Answers the two services in order."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def access(self) -> KeylessAccess:
        cluster = ClusterReference(RamRole("cn-beijing", ROLE, PROVIDER), CLUSTER)
        return KeylessAccess(cluster, lambda: "jwt-of-aws", now=lambda: NOW, transport=httpx.MockTransport(self.handle))


def ok(body: object) -> httpx.Response:
    return httpx.Response(200, content=json.dumps(body))


def refused(status: int, code: str, *, capital: bool = True) -> httpx.Response:
    body = {"Code": code, "Message": "so it is", "RequestId": "r-9"}
    return httpx.Response(status, json=body if capital else {key[0].lower() + key[1:]: body[key] for key in body})


def test_an_aws_token_becomes_access_to_a_cluster() -> None:
    alibaba = Alibaba(ok(ASSUMED), ok(ISSUED))

    access = alibaba.access().fetch()

    assert (access.server, access.token) == ("https://192.0.2.1:6443", "token-of-user")
    assert access.expires_at == datetime(2026, 11, 3, 12, 15, tzinfo=UTC)
    role, config = alibaba.requests
    assert (role.method, role.url.host) == ("POST", "sts.cn-beijing.aliyuncs.com")
    assert role.url.params["Action"] == "AssumeRoleWithOIDC"
    assert {key: value for key, (value,) in parse_qs(role.content.decode()).items()} == {
        "OIDCProviderArn": PROVIDER,
        "RoleArn": ROLE,
        "OIDCToken": "jwt-of-aws",
        "RoleSessionName": "relaunch",
        "DurationSeconds": "900",
    }
    assert "Authorization" not in role.headers
    url = f"https://cs.cn-beijing.aliyuncs.com/k8s/{CLUSTER}/user_config?TemporaryDurationMinutes=15"
    assert (config.method, str(config.url)) == ("GET", url)
    assert config.headers["x-acs-security-token"] == "token-of-role"
    assert config.headers["x-acs-date"] == "2026-11-03T12:00:00Z"
    assert config.headers["Authorization"].startswith("ACS3-HMAC-SHA256 Credential=STS.id,")


def test_each_signed_request_has_its_own_nonce() -> None:
    alibaba = Alibaba(ok(ASSUMED), ok(ISSUED), ok(ASSUMED), ok(ISSUED))
    access = alibaba.access()

    access.fetch()
    access.fetch()

    assert len({each.headers["x-acs-signature-nonce"] for each in alibaba.requests[1::2]}) == 2


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (
            refused(400, "AuthenticationFail.OIDCToken.Expired"),
            PermanentError,
            "check that the trust policy of the RAM role has",
        ),
        (refused(404, "EntityNotExist.Role"), PermanentError, "so it is .HTTP 404 EntityNotExist.Role, request r-9"),
        (refused(400, "Throttling.User"), TransientError, "Throttling.User"),
        (refused(503, "ServiceUnavailable"), TransientError, "HTTP 503"),
        (httpx.Response(502, content="bad gateway"), TransientError, "HTTP 502"),
        (httpx.ConnectTimeout("timed out"), TransientError, "no answer: ConnectTimeout"),
        (ok({"Credentials": {"AccessKeyId": "STS.id"}}), TransientError, "the answer is malformed"),
        (httpx.Response(200, content="secret-of-role"), TransientError, "the answer is malformed"),
    ],
)
def test_a_role_that_cannot_be_assumed(answer, error, message: str) -> None:
    with pytest.raises(error, match=f"assuming the RAM role {ROLE}.*{message}") as caught:
        Alibaba(answer).access().fetch()

    assert not any(secret in str(caught.value) for secret in SECRETS)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (refused(403, "StatusForbidden", capital=False), PermanentError, "allow the RAM role cs:DescribeClusterUser"),
        (refused(404, "ErrorClusterNotFound", capital=False), PermanentError, "ErrorClusterNotFound, request r-9"),
        (refused(429, "Throttling", capital=False), TransientError, "HTTP 429"),
        (httpx.ReadTimeout("timed out"), TransientError, "ReadTimeout"),
        (ok({"expiration": "2026-11-03T12:15:00Z"}), TransientError, "the answer is malformed: config"),
    ],
)
def test_a_kubeconfig_that_cannot_be_read(answer, error, message: str) -> None:
    with pytest.raises(error, match=f"reading the kubeconfig of cluster {CLUSTER}.*{message}") as caught:
        Alibaba(ok(ASSUMED), answer).access().fetch()

    assert not any(secret in str(caught.value) for secret in SECRETS)


def test_an_issued_kubeconfig_is_read_as_strictly_as_any() -> None:
    unsafe = KUBECONFIG.replace("certificate-authority-data", "insecure-skip-tls-verify: true, x")

    with pytest.raises(PermanentError, match="the server must prove who it is"):
        Alibaba(ok(ASSUMED), ok({"config": unsafe})).access().fetch()


@pytest.mark.parametrize(
    ("region", "cluster_id", "message"),
    [("evil.example/", CLUSTER, "no region of Alibaba"), ("cn-beijing", "../../secrets", "no cluster ID")],
)
def test_what_becomes_part_of_an_address_is_checked(region: str, cluster_id: str, message: str) -> None:
    with pytest.raises(PermanentError, match=message):
        ClusterReference(RamRole(region, ROLE, PROVIDER), cluster_id)
