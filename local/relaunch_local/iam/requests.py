"""Authorizes signed HTTP requests by the policies of who signed them."""

from collections.abc import Callable, Sequence

from relaunch_local.iam.calls import CallPermissions
from relaunch_local.iam.conditions import PolicyError
from relaunch_local.iam.policies import PolicyAuthorizer, PolicyDocument
from relaunch_local.iam.wire import read_call
from relaunch_local.request_guard.guard import RefusedRequestError
from relaunch_local.request_guard.signature import RequestHead, Signature

PoliciesOfCaller = Callable[[str], Sequence[PolicyDocument] | None]
"""Returns the policies of an access key, or None if its holder may do everything."""
# The names that requests are signed for, where they are not those of boto3.
_SERVICES = {"servicequotas": "service-quotas"}


class RequestAuthorizer:
    """Refuses the requests that the caller's policies do not allow, and those that nothing is known of."""

    def __init__(
        self, policies_of: PoliciesOfCaller, calls: CallPermissions, on_refused: Callable[[str], None] = lambda _: None
    ) -> None:
        """Authorize by these policies; `on_refused` is told of each refusal."""
        self._policies_of = policies_of
        self._calls = calls
        self._on_refused = on_refused

    def check(self, signature: Signature, head: RequestHead, body: bytes) -> None:
        """Check a request whose signature was verified.

        Raises:
            RefusedRequestError: AccessDenied.
        """
        policies = self._policies_of(signature.access_key_id)
        # Whoever calls a function URL is authorized by the emulator, which knows its function.
        if policies is None or signature.service == "lambda":
            return
        authorize = PolicyAuthorizer(lambda _key: policies)
        service = _SERVICES.get(signature.service, signature.service)
        try:
            operation, parameters = read_call(service, head, body)
            for permission in self._calls.required(signature.access_key_id, service, operation, parameters):
                if not authorize(permission):
                    self._refuse(f"{permission.action} on resource: {permission.resource}")
        except PolicyError as error:
            self._refuse(f"what nothing is known of here: {error}")

    def _refuse(self, what: str) -> None:
        message = f"The caller is not authorized to perform: {what}"
        self._on_refused(message)
        raise RefusedRequestError("AccessDeniedException", message)
