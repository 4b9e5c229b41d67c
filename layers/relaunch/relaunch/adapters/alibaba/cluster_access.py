"""Signs in to Alibaba Cloud by an OIDC token, and reads the kubeconfig of an ACK or ACS cluster.

Sources: AssumeRoleWithOIDC (STS 2015-04-01), DescribeClusterUserKubeconfig (CS 2015-12-15).
"""

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
from pydantic import Field

from relaunch.adapters.alibaba.answers import Answer, alibaba_errors, check
from relaunch.adapters.alibaba.signature import Credentials, Operation, canonical_query, sign
from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess, read_kubeconfig
from relaunch.ports import PermanentError

# The shortest that STS and ACK issue. Both are used at once, the kubeconfig until it expires.
ROLE_SECONDS = 900
KUBECONFIG_MINUTES = 15
_CONNECT_SECONDS = 3.0
_READ_SECONDS = 10.0
_ROLE_HINT = "check the trust policy of the RAM role, and the OIDC provider's issuer, fingerprint and client ID"
_CLUSTER_HINT = "allow the RAM role cs:DescribeClusterUserKubeconfig on this cluster, and check its ID and region"


class _RoleCredentials(Answer):
    access_key_id: str = Field(alias="AccessKeyId", min_length=1)
    access_key_secret: str = Field(alias="AccessKeySecret", min_length=1, repr=False)
    security_token: str = Field(alias="SecurityToken", min_length=1, repr=False)


class _AssumedRole(Answer):
    credentials: _RoleCredentials = Field(alias="Credentials")


class _UserKubeconfig(Answer):
    config: str = Field(min_length=1, repr=False)
    expiration: datetime | None = None


@dataclass(frozen=True)
class ClusterReference:
    """A cluster of Alibaba Cloud, in a region of Alibaba Cloud: some have the names of AWS regions."""

    region: str
    cluster_id: str
    role_arn: str
    oidc_provider_arn: str

    def __post_init__(self) -> None:
        """Check what becomes part of an address.

        Raises:
            PermanentError: the region or the ID has characters that none has.
        """
        if not re.fullmatch(r"[a-z0-9-]{4,40}", self.region):
            raise PermanentError(f"{self.region!r} is no region of Alibaba Cloud: it is one like cn-beijing")
        if not re.fullmatch(r"[a-z0-9]{8,64}", self.cluster_id):
            raise PermanentError(f"{self.cluster_id!r} is no cluster ID: the console shows it, 33 letters and digits")


class KeylessAccess:
    """Fetches access to a cluster; `web_identity_token` returns a token of an issuer that RAM trusts.

    The user of the kubeconfig is the RAM role, and needs a RoleBinding in the cluster.
    """

    def __init__(
        self,
        cluster: ClusterReference,
        web_identity_token: Callable[[], str],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._cluster = cluster
        self._web_identity_token = web_identity_token
        self._now = now
        timeout = httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
        self._http = httpx.Client(timeout=timeout, transport=transport, trust_env=False)

    def fetch(self) -> ClusterAccess:
        """Return new access with the time when it expires; every call makes three requests.

        Raises:
            TransientError: a service is throttling or not reachable.
            PermanentError: a service refused; the message says what to check.
        """
        issued = self._read_kubeconfig(self._assume_role(self._web_identity_token()))
        return read_kubeconfig(issued.config, expires_at=issued.expiration)

    def _assume_role(self, token: str) -> Credentials:
        doing = f"assuming the RAM role {self._cluster.role_arn}"
        query = {"Action": "AssumeRoleWithOIDC", "Version": "2015-04-01", "Format": "JSON", "Timestamp": self._time()}
        form = {
            "OIDCProviderArn": self._cluster.oidc_provider_arn,
            "RoleArn": self._cluster.role_arn,
            "OIDCToken": token,
            "RoleSessionName": "relaunch",
            "DurationSeconds": str(ROLE_SECONDS),
        }
        with alibaba_errors(doing):
            answer = self._http.post(f"https://sts.{self._cluster.region}.aliyuncs.com/", params=query, data=form)
            check(answer, doing, _ROLE_HINT)
            found = _AssumedRole.model_validate_json(answer.content).credentials
        return Credentials(found.access_key_id, found.access_key_secret, found.security_token)

    def _read_kubeconfig(self, credentials: Credentials) -> _UserKubeconfig:
        doing = f"reading the kubeconfig of cluster {self._cluster.cluster_id}"
        operation = Operation(
            "DescribeClusterUserKubeconfig",
            "2015-12-15",
            "GET",
            f"cs.{self._cluster.region}.aliyuncs.com",
            f"/k8s/{self._cluster.cluster_id}/user_config",
            {"TemporaryDurationMinutes": str(KUBECONFIG_MINUTES)},
        )
        headers = sign(operation, credentials, self._now(), secrets.token_hex(16))
        with alibaba_errors(doing):
            url = f"https://{operation.host}{operation.path}?{canonical_query(operation.query)}"
            answer = self._http.get(url, headers=headers)
            check(answer, doing, _CLUSTER_HINT)
            return _UserKubeconfig.model_validate_json(answer.content)

    def _time(self) -> str:
        return self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
