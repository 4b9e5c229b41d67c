"""Verifies Signature Version 4 in the Authorization header, by signing the received request again with botocore.

Source: "AWS Signature Version 4 for API requests" in the IAM User Guide. Presigned URLs are not accepted: a page can
make a browser follow one. The time of a signature is not checked: its credentials live no longer than the local world.
"""

import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/(\d{8})/([^/,\s]+)/([^/,\s]+)/aws4_request,"
    r"\s*SignedHeaders=([!-~]+),\s*Signature=([0-9a-f]{64})"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class RequestHead:
    """The head of an HTTP request; names of headers are in lower case, repeated ones are kept."""

    method: str
    target: str
    """Path and query as they were sent."""
    headers: Sequence[tuple[str, str]]

    def values(self, name: str) -> list[str]:
        """Return the values of a header."""
        return [value for each, value in self.headers if each == name]

    def value(self, name: str) -> str:
        """Return the value of a header; an empty string unless there is exactly one."""
        values = self.values(name)
        return values[0] if len(values) == 1 else ""


@dataclass(frozen=True)
class Signature:
    """A parsed Authorization header."""

    access_key_id: str
    date: str
    region: str
    service: str
    signed_headers: frozenset[str]
    signature: str

    def is_valid(self, head: RequestHead, body: bytes, secret_access_key: str) -> bool:
        """Return whether the holder of the secret signed this request, with its Host and body."""
        timestamp = head.value("x-amz-date")
        if "host" not in self.signed_headers or not timestamp.startswith(self.date):
            return False
        # S3's clients declare the body's hash, or that it is not signed, in a header of its own.
        declared = head.value("x-amz-content-sha256")
        if _SHA256.fullmatch(declared) and declared != hashlib.sha256(body).hexdigest():
            return False
        return hmac.compare_digest(self._sign(head, body, timestamp, secret_access_key), self.signature)

    def _sign(self, head: RequestHead, body: bytes, timestamp: str, secret_access_key: str) -> str:
        request = AWSRequest(head.method, f"http://{head.value('host')}{head.target}", data=body)
        for name, value in head.headers:
            if name in self.signed_headers:
                request.headers.add_header(name, value)
        request.context["timestamp"] = timestamp
        # S3 signs paths as they are sent, the other services normalized ones.
        algorithm = S3SigV4Auth if self.service == "s3" else SigV4Auth
        signer = algorithm(Credentials(self.access_key_id, secret_access_key), self.service, self.region)
        return str(signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request))


def parse_signature(head: RequestHead) -> Signature | None:
    """Return the signature of a request, or None if it has none in the Authorization header."""
    found = _AUTHORIZATION.fullmatch(head.value("authorization"))
    if found is None:
        return None
    access_key_id, date, region, service, signed_headers, signature = found.groups()
    return Signature(access_key_id, date, region, service, frozenset(signed_headers.split(";")), signature)
