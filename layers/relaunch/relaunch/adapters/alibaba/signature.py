"""Signature version 3 of Alibaba Cloud, ACS3-HMAC-SHA256 ("V3 request structure and signature", Alibaba Cloud SDK)."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from urllib.parse import quote

from relaunch.core.records import dataclass

ALGORITHM = "ACS3-HMAC-SHA256"


@dataclass(frozen=True)
class Credentials:
    """An access key; the security token is empty unless it is temporary."""

    access_key_id: str
    access_key_secret: str = field(repr=False)
    security_token: str = field(default="", repr=False)


@dataclass(frozen=True)
class Operation:
    """A request without a body: the operation's name and version, and where it is sent."""

    name: str
    version: str
    method: str
    host: str
    path: str
    query: Mapping[str, str]


def sign(operation: Operation, credentials: Credentials, at: datetime, nonce: str) -> dict[str, str]:
    """Return the headers of a signed request; `nonce` is new for each."""
    empty = hashlib.sha256(b"").hexdigest()
    headers = {
        "host": operation.host,
        "x-acs-action": operation.name,
        "x-acs-content-sha256": empty,
        "x-acs-date": at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "x-acs-signature-nonce": nonce,
        "x-acs-version": operation.version,
    }
    if credentials.security_token:
        headers["x-acs-security-token"] = credentials.security_token
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    query = canonical_query(operation.query)
    request = "\n".join([operation.method, operation.path, query, *lines, "", names, empty])
    to_sign = f"{ALGORITHM}\n{hashlib.sha256(request.encode()).hexdigest()}"
    signature = hmac.digest(credentials.access_key_secret.encode(), to_sign.encode(), "sha256").hex()
    headers["Authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key_id},SignedHeaders={names},Signature={signature}"
    )
    return headers


def canonical_query(query: Mapping[str, str]) -> str:
    """Return the query as it is signed, and has to be sent: sorted, in percent-encoding (RFC 3986)."""
    return "&".join(f"{quote(key, safe='~')}={quote(value, safe='~')}" for key, value in sorted(query.items()))
