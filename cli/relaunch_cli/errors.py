"""What went wrong, in a sentence and a hint, with its exit code; no traceback for what a user can set right."""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

from relaunch_cli import exit_codes


class CommandError(Exception):
    """Something the user can set right: a sentence, what to do about it, and the exit code."""

    def __init__(self, message: str, hint: str = "", exit_code: int = exit_codes.USAGE) -> None:
        super().__init__(message)
        self.hint = hint
        self.exit_code = exit_code


class NotConnectedError(CommandError):
    """There is no stack to be asked: no region, no credentials, or nothing deployed there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure as it is shown."""

    message: str
    hint: str
    exit_code: int


_CREDENTIALS = (
    "set AWS_PROFILE, or sign in with `aws sso login` or `aws configure`",
    frozenset(
        {
            "NoCredentialsError",
            "PartialCredentialsError",
            "CredentialRetrievalError",
            "TokenRetrievalError",
            "SSOTokenLoadError",
            "UnauthorizedSSOTokenError",
            "LoginRefreshRequired",
            "ProfileNotFound",
        }
    ),
)
_REGION = ("set AWS_REGION, or a region in the profile", frozenset({"NoRegionError", "InvalidRegionError"}))
_UNREACHABLE = (
    "check the network, the region and AWS_ENDPOINT_URL",
    frozenset(
        {
            "EndpointConnectionError",
            "ConnectTimeoutError",
            "ReadTimeoutError",
            "ConnectionClosedError",
            "ProxyConnectionError",
            "SSLError",
            "HTTPClientError",
        }
    ),
)
_BAD_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "AuthFailure",
    }
)
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})
_THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "RequestLimitExceeded",
        "TooManyRequestsException",
        "ProvisionedThroughputExceededException",
        "RequestThrottled",
        "SlowDown",
    }
)


def explain_failure(error: BaseException) -> Failure | None:
    """Return how a failure is shown; None for an error of ours, which deserves its traceback."""
    if isinstance(error, CommandError):
        return Failure(str(error), error.hint, error.exit_code)
    for cause in _causes(error):
        found = _explain_client_error(cause) or _explain_botocore_error(cause)
        if found:
            return found
    return _explain_port_error(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised from: the adapters wrap what AWS said."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__


def _explain_botocore_error(error: BaseException) -> Failure | None:
    # By name, because importing botocore costs more than most commands without AWS take.
    if not type(error).__module__.startswith("botocore."):
        return None
    name, text = type(error).__name__, str(error).splitlines()[0] if str(error) else type(error).__name__
    if name in _CREDENTIALS[1]:
        return Failure(f"no AWS credentials: {text}", _CREDENTIALS[0], exit_codes.REFUSED)
    if name in _REGION[1]:
        return Failure(f"no AWS region: {text}", _REGION[0], exit_codes.REFUSED)
    if name in _UNREACHABLE[1]:
        endpoints = {key: value for key, value in os.environ.items() if key.startswith("AWS_ENDPOINT_URL")}
        shown = "".join(f"; {key} is {value}" for key, value in sorted(endpoints.items()))
        return Failure(f"AWS cannot be reached: {text}", _UNREACHABLE[0] + shown, exit_codes.REFUSED)
    return Failure(f"the call to AWS failed: {text}", "", exit_codes.REFUSED)


def _explain_client_error(error: BaseException) -> Failure | None:
    response = getattr(error, "response", None)
    if not isinstance(response, dict) or "Error" not in response:
        return None
    code = str(response["Error"].get("Code", ""))
    text = str(response["Error"].get("Message", "")) or code
    call = str(getattr(error, "operation_name", "the call"))
    if code in _BAD_CREDENTIALS:
        return Failure(f"AWS does not accept the credentials ({code}): {text}", _CREDENTIALS[0], exit_codes.REFUSED)
    if code in _DENIED:
        hint = f"ask for permission to call {call}; docs/command.md lists what each command calls"
        return Failure(f"AWS denies {call}: {text}", hint, exit_codes.REFUSED)
    if code in _THROTTLED:
        return Failure(f"AWS throttles {call}: {text}", "try again in a minute", exit_codes.UNAVAILABLE)
    if code == "ResourceNotFoundException":
        hint = "is this the right stack, region and account?"
        return Failure(f"{call}: {text}", hint, exit_codes.NOT_FOUND)
    return Failure(f"AWS refuses {call} ({code}): {text}", "", exit_codes.REFUSED)


def _explain_port_error(error: BaseException) -> Failure | None:
    ports = sys.modules.get("relaunch.ports")
    if ports is None:
        return None
    if isinstance(error, ports.NoActiveRevisionError):
        return Failure(str(error), "register one: aws ecs register-task-definition", exit_codes.NOT_FOUND)
    if isinstance(error, ports.StaleWriteError):
        return Failure(str(error), "others are changing this job: try again", exit_codes.UNAVAILABLE)
    if isinstance(error, ports.TransientError):
        return Failure(str(error), "this is temporary: try again", exit_codes.UNAVAILABLE)
    if isinstance(error, ports.PermanentError):
        return Failure(str(error), "", exit_codes.REFUSED)
    return None


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """Show the failures of a command as sentences and end with their exit codes."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            raise typer.Exit(exit_codes.CANCELLED) from None
        except Exception as error:
            failure = explain_failure(error)
            if failure is None:
                raise
            typer.secho(f"relaunch: {failure.message}", err=True, fg="red")
            if failure.hint:
                typer.echo(f"          {failure.hint}", err=True)
            raise typer.Exit(failure.exit_code) from error

    return run
