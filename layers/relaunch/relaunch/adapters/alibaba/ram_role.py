"""Signs in to Alibaba Cloud as a RAM role, by an OIDC token.

Source: AssumeRoleWithOIDC (STS 2015-04-01).
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
from pydantic import Field

from relaunch.adapters.alibaba.answers import Answer, alibaba_errors, check
from relaunch.adapters.alibaba.signature import Credentials
from relaunch.core.records import dataclass
from relaunch.ports import PermanentError

AUDIENCE = "sts.aliyuncs.com"
"""Whom the tokens of AWS STS are for: the client ID of the OIDC provider in RAM, which trusts them."""
# The shortest that STS issues.
ROLE_SECONDS = 900
_CONNECT_SECONDS = 3.0
_READ_SECONDS = 10.0
_HINT = (
    "check that the trust policy of the RAM role has the function's role in oidc:sub (docs/kubernetes.md), and the "
    "OIDC provider's issuer, fingerprint and client ID"
)


class _Credentials(Answer):
    access_key_id: str = Field(alias="AccessKeyId", min_length=1)
    access_key_secret: str = Field(alias="AccessKeySecret", min_length=1, repr=False)
    security_token: str = Field(alias="SecurityToken", min_length=1, repr=False)
    expiration: datetime | None = Field(alias="Expiration", default=None)


class _AssumedRole(Answer):
    credentials: _Credentials = Field(alias="Credentials")


@dataclass(frozen=True)
class AssumedRole:
    """Temporary credentials of a RAM role, and when they expire if STS said so."""

    credentials: Credentials
    expires_at: datetime | None


@dataclass(frozen=True)
class RamRole:
    """A RAM role, its OIDC provider, and the region of Alibaba Cloud whose STS is called.

    Some regions have the names of AWS regions.
    """

    region: str
    role_arn: str
    oidc_provider_arn: str

    def __post_init__(self) -> None:
        """Check what becomes part of an address.

        Raises:
            PermanentError: the region has characters that none has.
        """
        if not re.fullmatch(r"[a-z0-9-]{4,40}", self.region):
            raise PermanentError(f"{self.region!r} is no region of Alibaba Cloud: it is one like cn-beijing")


def open_client(transport: httpx.BaseTransport | None) -> httpx.Client:
    """Return a client of Alibaba Cloud's APIs."""
    timeout = httpx.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS)
    return httpx.Client(timeout=timeout, transport=transport, trust_env=False)


class RamSignIn:
    """Assumes a RAM role; `web_identity_token` returns a token of an issuer that RAM trusts."""

    def __init__(
        self,
        role: RamRole,
        web_identity_token: Callable[[], str],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._role = role
        self._web_identity_token = web_identity_token
        self._now = now
        self._http = open_client(transport)

    def assume(self) -> AssumedRole:
        """Return new credentials of the role.

        Raises:
            TransientError: STS is throttling or not reachable.
            RefusedError: STS refused; the message says what to check.
        """
        doing = f"assuming the RAM role {self._role.role_arn}"
        time = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        query = {"Action": "AssumeRoleWithOIDC", "Version": "2015-04-01", "Format": "JSON", "Timestamp": time}
        form = {
            "OIDCProviderArn": self._role.oidc_provider_arn,
            "RoleArn": self._role.role_arn,
            "OIDCToken": self._web_identity_token(),
            "RoleSessionName": "relaunch",
            "DurationSeconds": str(ROLE_SECONDS),
        }
        with alibaba_errors(doing):
            answer = self._http.post(f"https://sts.{self._role.region}.aliyuncs.com/", params=query, data=form)
            check(answer, doing, _HINT)
            found = _AssumedRole.model_validate_json(answer.content).credentials
        return AssumedRole(
            Credentials(found.access_key_id, found.access_key_secret, found.security_token), found.expiration
        )
