"""Verifies the signature of webhook deliveries.

Source: GitHub Docs, "Validating webhook deliveries". Only X-Hub-Signature-256 is used; X-Hub-Signature is SHA-1.
Imports are kept to a minimum for the cold start of github_webhook.
"""

import hmac
from collections.abc import Callable, Sequence

MAX_AGE_SECONDS = 600  # the time after which a revoked secret is no longer accepted
REREAD_SECONDS = 60  # minimum time between two reads caused by wrong signatures
_PREFIX = "sha256="
_HEXADECIMAL = frozenset("0123456789abcdef")


class NoSecretError(Exception):
    """The webhook has no secret, so that no delivery can be verified."""


class SecretRing:
    """The secrets that a delivery may be signed with: the current one and, during a rotation, the previous one.

    GitHub signs with one secret at a time. To rotate it, store the new one in Secrets Manager (the old one becomes
    AWSPREVIOUS), then set it in GitHub. `read_stage` returns the secret with a staging label, None if there is none;
    its exceptions are propagated. `now` returns seconds. The previous secret is only read if the current one does not
    match.
    """

    def __init__(self, read_stage: Callable[[str], str | None], now: Callable[[], float]) -> None:
        self._read_stage = read_stage
        self._now = now
        self._secrets: tuple[bytes, ...] = ()
        self._has_read_all = False
        self._read_at = 0.0

    def has_signed(self, body: bytes, digest: bytes) -> bool:
        """Return whether the digest (64 hexadecimal characters) is that of the body with one of the secrets.

        Raises:
            NoSecretError: there is no secret.
        """
        now = self._now()
        if not self._secrets or now - self._read_at >= MAX_AGE_SECONDS:
            self._read(now, ("AWSCURRENT",))
        if is_signed_by(self._secrets, body, digest):
            return True
        if self._has_read_all and now - self._read_at < REREAD_SECONDS:
            return False
        self._read(now, ("AWSCURRENT", "AWSPREVIOUS"))
        return is_signed_by(self._secrets, body, digest)

    def _read(self, now: float, stages: Sequence[str]) -> None:
        # Trailing newlines come from files. An empty secret must never be used: anybody could sign with it.
        values = [(self._read_stage(stage) or "").strip("\r\n").encode() for stage in stages]
        self._secrets = tuple(value for value in values if value) if values[0] else ()
        self._has_read_all = len(stages) > 1
        self._read_at = now
        if not self._secrets:
            raise NoSecretError("the webhook has no secret")


def read_digest(header: str | None) -> bytes | None:
    """Return the digest of an X-Hub-Signature-256 header, None if it is missing or malformed."""
    if header is None or not header.startswith(_PREFIX):
        return None
    digest = header[len(_PREFIX) :]
    if len(digest) != 64 or not _HEXADECIMAL.issuperset(digest):
        return None
    return digest.encode("ascii")


def is_signed_by(secrets: Sequence[bytes], body: bytes, digest: bytes) -> bool:
    """Return whether the digest matches one of the secrets, comparing all of them in constant time.

    The digests are bytes because hmac.compare_digest raises TypeError for non-ASCII strings.
    """
    is_signed = False
    for secret in secrets:
        is_signed |= hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), digest)
    return is_signed
