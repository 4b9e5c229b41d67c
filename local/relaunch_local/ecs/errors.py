"""The errors that ECS and EC2 return, by error code.

Sources: "Common errors" and each action's "Errors" in the Amazon ECS API Reference; messages that the
reference does not give follow reports from users.
"""

from typing import Any

_STATUSES = {
    **dict.fromkeys(("ServerException", "ServiceUnavailableException", "InternalError"), 500),
    # "Server error codes" of EC2, which SDKs send again: RunInstances raises it.
    "InsufficientInstanceCapacity": 500,
    **dict.fromkeys(("RequestLimitExceeded", "Unavailable"), 503),
    "UnauthorizedOperation": 403,
    "DryRunOperation": 412,
}
"""HTTP statuses by code; every other code comes with HTTP 400, ECS's throttling included."""


class EcsError(Exception):
    """An error response with the code and message of the real service."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        """Create an error; `fields` are its other members, such as ConflictException's `resourceIds`."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.fields = fields

    @property
    def http_status(self) -> int:
        """The HTTP status of the response."""
        return _STATUSES.get(self.code, 400)


class DroppedConnectionError(Exception):
    """The connection was closed before the response; the call may or may not have taken effect."""


def client_error(message: str) -> EcsError:
    """Return a ClientException."""
    return EcsError("ClientException", message)


def invalid_parameter(message: str) -> EcsError:
    """Return an InvalidParameterException."""
    return EcsError("InvalidParameterException", message)


def concurrent_registration() -> EcsError:
    """Return RegisterTaskDefinition's error while another call creates a revision of the same family."""
    return client_error("Too many concurrent attempts to create a new revision of the specified family.")


def throttled() -> EcsError:
    """Return a ThrottlingException: the account's token bucket for the action is empty."""
    return EcsError("ThrottlingException", "Rate exceeded")


def refuse(condition: bool, message: str) -> None:  # noqa: FBT001 - is read as an assert
    """Raise InvalidParameterException with this message if the condition is true."""
    if condition:
        raise invalid_parameter(message)


def refuse_as_client(condition: bool, message: str) -> None:  # noqa: FBT001 - is read as an assert
    """Raise ClientException with this message if the condition is true."""
    if condition:
        raise client_error(message)
