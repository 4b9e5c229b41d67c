"""Decides which requests a server of the local world takes."""

import re
from collections.abc import Callable, Collection

from relaunch_local.request_guard.signature import RequestHead, Signature, parse_signature

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost"})
REFUSAL = "[relaunch] refused:"
"""How a line of the emulator's log begins that tells of a request which the caller's policies do not allow."""
HOSTS_VARIABLE = "RELAUNCH_GUARD_HOSTS"
"""The environment variable of the emulator's process with more hosts, separated by commas."""

SecretOf = Callable[[str], str | None]
"""Returns the secret access key of an access key, or None if the key is unknown."""

_PORT = re.compile(r":\d{1,5}$")
# Browsers send Origin with what a script or a form of another site sends, except with GET and HEAD of simple requests;
# they send Sec-Fetch-Site with everything (Fetch Metadata Request Headers, W3C), and let no script remove either.
_BROWSER_HEADERS = ("origin", "sec-fetch-site")


class RefusedRequestError(Exception):
    """The request is refused: AWS's error code for it, and a message that says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class RequestGuard:
    """Takes requests that no browser sent, that name this server by a loopback address, and that are signed."""

    def __init__(self, secret_of: SecretOf, hosts: Collection[str] = LOOPBACK_HOSTS) -> None:
        """Take requests to these hosts, signed with the secrets that `secret_of` returns."""
        self._secret_of = secret_of
        self._hosts = hosts

    def check_sender(self, head: RequestHead) -> None:
        """Check that the request is no browser's and names this server; read the body only afterwards.

        A page whose host name is rebound to a loopback address sends that name as Host, and neither Origin nor
        another site's Sec-Fetch-Site.

        Raises:
            RefusedRequestError: AccessDenied.
        """
        if _PORT.sub("", head.value("host")).lower() not in self._hosts:
            known = " or ".join(sorted(self._hosts))
            raise RefusedRequestError(
                "AccessDenied", f"The local world is called by {known} only, and not by this Host."
            )
        if head.method == "OPTIONS" or any(head.values(name) for name in _BROWSER_HEADERS):
            raise RefusedRequestError(
                "AccessDenied", "The local world takes no requests of web pages: use the AWS CLI, an SDK or curl."
            )

    def check_caller(self, head: RequestHead) -> Signature:
        """Return the signature of a known caller, which is to be verified as soon as the body is read.

        Raises:
            RefusedRequestError: MissingAuthenticationToken or InvalidClientTokenId.
        """
        signature = parse_signature(head)
        if signature is None:
            raise RefusedRequestError(
                "MissingAuthenticationToken",
                "The request has no Authorization header with a Signature Version 4: sign it with the credentials "
                "that `make local` prints.",
            )
        if self._secret_of(signature.access_key_id) is None:
            raise RefusedRequestError(
                "InvalidClientTokenId",
                "The access key is not of this local world, which has its own each time it is opened: use the "
                "credentials that `make local` prints.",
            )
        return signature

    def check_signature(self, signature: Signature, head: RequestHead, body: bytes) -> None:
        """Verify the signature of the whole request.

        Raises:
            RefusedRequestError: SignatureDoesNotMatch.
        """
        secret = self._secret_of(signature.access_key_id)
        if secret is None or not signature.is_valid(head, body, secret):
            raise RefusedRequestError(
                "SignatureDoesNotMatch", "The signature is not one of this request with the key's secret access key."
            )
