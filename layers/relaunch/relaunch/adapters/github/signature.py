"""Verifies the signature of webhook deliveries.

Source: GitHub Docs, "Validating webhook deliveries". Only X-Hub-Signature-256 is used; X-Hub-Signature is SHA-1.
Imports are kept to a minimum for the cold start of github_webhook.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence

from relaunch.adapters.github.webhook_secrets import (
    DEFAULT_SCOPE,
    ScopeSecret,
    find_signing_scope,
    is_document,
    parse_document,
)

REFRESH_SECONDS = 60  # the time after which a revoked secret is no longer accepted, and a new one known
MAX_AGE_SECONDS = 600  # the same while Secrets Manager does not answer
_PREFIX = "sha256="
_HEXADECIMAL = frozenset("0123456789abcdef")


class NoSecretError(Exception):
    """The webhook has no secret, so that no delivery can be verified."""


class SecretUnavailableError(Exception):
    """The secret could not be read; trying again may help."""


class SecretRing:
    """The secrets that a delivery may be signed with: those of its scope, the current and for a while the previous one.

    GitHub signs with one secret at a time; to replace it, a new one is stored first and then set in GitHub. A stored
    text is the secret of the default scope, whose previous secret, of the stage AWSPREVIOUS, is accepted for
    `previous_seconds` after the current one was stored. Stored JSON says all of that itself (webhook_secrets).

    `read_stage` returns the secret with a staging label and when it was stored, in seconds since 1970, None if there is
    none; its exceptions other than SecretUnavailableError are propagated. `now` returns seconds since 1970. AWSPREVIOUS
    is only read if nothing else matches.
    """

    def __init__(
        self,
        read_stage: Callable[[str], tuple[str, float] | None],
        now: Callable[[], float],
        previous_seconds: float,
    ) -> None:
        self._read_stage = read_stage
        self._now = now
        self._previous_seconds = previous_seconds
        self._secrets: Mapping[str, ScopeSecret] = {}
        self._has_read_all = False
        self._read_at = 0.0
        self._tried_at = 0.0

    def has_signed(self, scope: str, body: bytes, digest: bytes) -> bool:
        """Return whether the digest (64 hexadecimal characters) is that of the body with a secret of the scope.

        Raises:
            NoSecretError: there is no secret at all.
            MalformedSecretError: what is stored cannot be parsed.
            SecretUnavailableError: the secrets could not be read.
        """
        now = self._now()
        if not self._secrets or now - self._tried_at >= REFRESH_SECONDS:
            self._refresh(now)
        if self._is_signed(scope, body, digest, now):
            return True
        if self._has_read_all and now - self._read_at < REFRESH_SECONDS:
            return False
        self._read(now, has_previous=True)
        return self._is_signed(scope, body, digest, now)

    def find_signing_scope(self, payload: Mapping[str, object]) -> str | None:
        """Return the scope whose secret signs for what a payload names, by the secrets that were read last."""
        return find_signing_scope(self._secrets, payload)

    def _is_signed(self, scope: str, body: bytes, digest: bytes, now: float) -> bool:
        secret = self._secrets.get(scope)
        if secret is None:
            return False
        has_previous = secret.has_previous(now, self._previous_seconds)
        accepted = (secret.secret, secret.previous) if has_previous else (secret.secret,)
        return is_signed_by([each.encode() for each in accepted], body, digest)

    def _refresh(self, now: float) -> None:
        self._tried_at = now
        try:
            self._read(now, has_previous=False)
        except SecretUnavailableError:
            if not self._secrets or now - self._read_at >= MAX_AGE_SECONDS:
                raise

    def _read(self, now: float, *, has_previous: bool) -> None:
        text, stored_at = self._read_stage("AWSCURRENT") or ("", 0.0)
        # Trailing newlines come from files. An empty secret must never be used: anybody could sign with it.
        text = text.strip("\r\n")
        if is_document(text):
            # Only what was read without an error is used, and nothing that was read before it.
            self._secrets = {}
            self._secrets = parse_document(text)
        elif text:
            previous = self._read_stage("AWSPREVIOUS") if has_previous and self._is_recent(stored_at, now) else None
            replaced = previous[0].strip("\r\n") if previous else ""
            # The JSON from which somebody went back to a text is the secret of no scope.
            self._secrets = {DEFAULT_SCOPE: ScopeSecret(text, "" if is_document(replaced) else replaced, stored_at)}
        else:
            self._secrets = {}
        self._has_read_all = has_previous
        self._read_at = now
        if not self._secrets:
            raise NoSecretError("the webhook has no secret")

    def _is_recent(self, stored_at: float, now: float) -> bool:
        return now < stored_at + self._previous_seconds


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
