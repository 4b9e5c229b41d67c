"""A guard that lets everything through, to see that what is refused would otherwise happen."""

from relaunch_local.request_guard.guard import RequestGuard
from relaunch_local.request_guard.signature import RequestHead, Signature, parse_signature


class UnguardedRequests(RequestGuard):
    """Takes every request, as its signer's or as that of an empty access key."""

    def check_sender(self, head: RequestHead) -> None:
        """Take it from anywhere."""

    def check_caller(self, head: RequestHead) -> Signature:
        """Take it from anybody."""
        return parse_signature(head) or Signature("", "", "", "", frozenset(), "")

    def check_signature(self, signature: Signature, head: RequestHead, body: bytes) -> None:
        """Take any signature."""
