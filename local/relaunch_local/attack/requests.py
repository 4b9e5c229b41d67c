"""Requests to servers on loopback, signed by botocore or not at all."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningCredentials

from relaunch_local.request_guard.credentials import Credentials

REGION = "eu-central-1"


@dataclass(frozen=True)
class Call:
    """A request to a server on loopback, whatever host its headers name."""

    url: str
    method: str = "POST"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def sign(self, credentials: Credentials, service: str = "lambda", token: str | None = None) -> "Call":
        """Return the call with a signature, for the Host that it has been given or its URL's."""
        host = self.headers.get("Host", urlsplit(self.url).netloc)
        request = AWSRequest(self.method, self.url, headers={**self.headers, "Host": host}, data=self.body)
        keys = SigningCredentials(credentials.access_key_id, credentials.secret_access_key, token)
        (S3SigV4Auth if service == "s3" else SigV4Auth)(keys, service, REGION).add_auth(request)
        return replace(self, headers=dict(request.headers.items()))

    def add(self, **headers: str) -> "Call":
        """Return the call with more headers, which are not signed."""
        return replace(self, headers={**self.headers, **{name.replace("_", "-"): headers[name] for name in headers}})

    def send(self) -> "Answer":
        """Send it over a connection of its own."""
        url = urlsplit(self.url)
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
        try:
            target = url.path + (f"?{url.query}" if url.query else "")
            connection.request(self.method, target or "/", self.body or None, dict(self.headers))
            response = connection.getresponse()
            return Answer(response.status, response.read().decode(), dict(response.headers))
        finally:
            connection.close()


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    body: str
    headers: Mapping[str, str]
