"""GitHub's signature over a delivery, and the secrets it may be made with.

Source: GitHub Docs, "Validating webhook deliveries". Only X-Hub-Signature-256 counts: X-Hub-Signature is SHA-1.
Every import here is paid at each cold start of github_webhook.
"""

import hmac
from collections.abc import Callable, Sequence

MAX_AGE_SECONDS = 600  # a secret that was taken back opens nothing after this time
REREAD_SECONDS = 60  # at most so often a wrong signature makes us look for a new secret
_PREFIX = "sha256="
_HEXADECIMAL = frozenset("0123456789abcdef")


class NoSecretError(Exception):
    """The webhook has no secret: nothing can be verified, so everything is refused."""


class SecretRing:
    """The secrets a delivery may be signed with: the current one and, while it is being changed, the one before.

    GitHub signs with one secret at a time: store the new one in Secrets Manager (the old one becomes AWSPREVIOUS), then
    give it to GitHub. `read_stage` returns the secret of a stage, None when there is none; what it raises is passed on.
    `now` returns seconds. The previous secret is read only when the current one does not fit.
    """

    def __init__(self, read_stage: Callable[[str], str | None], now: Callable[[], float]) -> None:
        self._read_stage = read_stage
        self._now = now
        self._secrets: tuple[bytes, ...] = ()
        self._has_read_all = False
        self._read_at = 0.0

    def has_signed(self, body: bytes, digest: bytes) -> bool:
        """Tell whether the digest (64 hexadecimal characters) is that of the body with one of the secrets.

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
        # A file's last newline is no part of a secret, and an empty secret would be everybody's.
        values = [(self._read_stage(stage) or "").strip("\r\n").encode() for stage in stages]
        self._secrets = tuple(value for value in values if value) if values[0] else ()
        self._has_read_all = len(stages) > 1
        self._read_at = now
        if not self._secrets:
            raise NoSecretError("the webhook has no secret")


def read_digest(header: str | None) -> bytes | None:
    """Return the digest in an X-Hub-Signature-256 header, None when it is missing or malformed."""
    if header is None or not header.startswith(_PREFIX):
        return None
    digest = header[len(_PREFIX) :]
    if len(digest) != 64 or not _HEXADECIMAL.issuperset(digest):
        return None
    return digest.encode("ascii")


def is_signed_by(secrets: Sequence[bytes], body: bytes, digest: bytes) -> bool:
    """Compare in constant time, as bytes (text that is not ASCII raises), and with every secret."""
    is_signed = False
    for secret in secrets:
        is_signed |= hmac.compare_digest(hmac.digest(secret, body, "sha256").hex().encode("ascii"), digest)
    return is_signed
