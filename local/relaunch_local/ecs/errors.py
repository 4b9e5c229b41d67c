"""The errors ECS answers, by their codes.

Sources: "Common errors" and each action's "Errors" in the Amazon ECS API Reference; the messages follow what callers
report from the field where the reference gives none.
"""

from typing import Any, NoReturn

SERVER_FAULTS = frozenset({"ServerException", "ServiceUnavailableException", "InternalError"})
"""Codes that come with HTTP 500; every other code comes with HTTP 400, throttling included."""


class EcsError(Exception):
    """A refusal, with the code and message of the real service."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        """Keep the code, the message and the members some errors carry, such as ConflictException's `resourceIds`."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.fields = fields

    @property
    def http_status(self) -> int:
        """The HTTP status the code comes with."""
        return 500 if self.code in SERVER_FAULTS else 400


class DroppedConnectionError(Exception):
    """The connection broke: the caller cannot know whether the call took effect."""


def client_error(message: str) -> EcsError:
    """The request asks for something its caller may not have, or that is not there."""
    return EcsError("ClientException", message)


def invalid_parameter(message: str) -> EcsError:
    """A parameter of the request breaks a documented rule."""
    return EcsError("InvalidParameterException", message)


def cluster_not_found() -> EcsError:
    """The named cluster does not exist."""
    return EcsError("ClusterNotFoundException", "Cluster not found.")


def throttled() -> EcsError:
    """The account's token bucket for this action is empty."""
    return EcsError("ThrottlingException", "Rate exceeded")


def refuse(condition: bool, message: str) -> None:
    """Raise InvalidParameterException with this message where the condition holds."""
    if condition:
        raise invalid_parameter(message)


def refuse_as_client(condition: bool, message: str) -> None:
    """Raise ClientException with this message where the condition holds."""
    if condition:
        raise client_error(message)


def unknown_operation(action: str) -> NoReturn:
    """Raise what a JSON 1.1 service answers to an action it has not got."""
    raise EcsError("UnknownOperationException", f"The simulator does not serve {action}.")
