"""Signature Version 4 of a POST request.

Source: "Create a signed AWS API request", IAM User Guide.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit

from relaunch_action.http_requests import Request


@dataclass(frozen=True)
class Credentials:
    """AWS credentials; `token` is empty for those of a user."""

    access_key_id: str
    secret_access_key: str
    token: str = ""


@dataclass(frozen=True)
class Scope:
    """What a signature is for."""

    region: str
    service: str


def signed_post(url: str, body: bytes, credentials: Credentials, scope: Scope, now: datetime) -> Request:
    """Return the POST request of a JSON body to a URL without a query, signed at `now`, in UTC."""
    parts = urlsplit(url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    day = now.strftime("%Y%m%d")
    headers = {"content-type": "application/json", "host": parts.netloc, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    # Encoded once more than in the URL, as for every service but S3.
    path = quote(parts.path or "/", safe="/-_.~")
    canonical = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    region = scope.region
    service = scope.service
    within = f"{day}/{region}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{within}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    signer = f"Credential={credentials.access_key_id}/{within}"
    headers["authorization"] = f"AWS4-HMAC-SHA256 {signer}, SignedHeaders={names}, Signature={signature}"
    return Request(url, headers, body)
