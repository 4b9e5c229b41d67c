"""Requires the header that the distribution in front of the webhook adds to each request (examples/edge).

It keeps requests away that go past the distribution. CloudFront cannot sign GitHub's requests instead: with origin
access control the client must send the hash of a POST's body ("Restrict access to an AWS Lambda function URL origin",
Amazon CloudFront Developer Guide), which GitHub does not. Imports are kept to a minimum for the cold start of
github_webhook.
"""

import hmac
from collections.abc import Mapping, Sequence

HEADER = "x-relaunch-origin"


def read_secrets(text: str) -> tuple[bytes, ...]:
    """Return the accepted secrets of the stack parameter OriginSecrets: one, two while it is changed, or none."""
    return tuple(part.strip().encode() for part in text.split(",") if part.strip())


def has_origin_secret(headers: Mapping[str, str], secrets: Sequence[bytes]) -> bool:
    """Return whether the header is one of the secrets, comparing all of them in constant time; True without secrets."""
    given = headers.get(HEADER, "").encode("utf-8", "surrogatepass")
    is_known = not secrets
    for secret in secrets:
        is_known |= hmac.compare_digest(secret, given)
    return is_known
