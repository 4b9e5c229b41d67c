"""Errors of the command: a message, a hint and an exit code, without a traceback where the user can fix the cause."""

import errno
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer

from relaunch_cli import exit_codes
from relaunch_cli.loopback import is_loopback
from relaunch_cli.terminal import echo

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

CREDENTIALS_HINT = "set AWS_PROFILE, or sign in with `aws sso login` or `aws configure`"
# botocore reads what `aws login` signed in with awscrt only, which would make each command a third slower to start.
LOGIN_HINT = (
    'who signed in with `aws login` gives this shell its credentials first: eval "$(aws configure export-credentials '
    '--format env)"'
)
REGION_HINT = "set AWS_REGION, or a region in the profile"
# A ValueError of botocore's, as of an address without https://.
_BAD_ENDPOINT = "Invalid endpoint: "
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SURROGATE = re.compile("[\ud800-\udfff]")
_BAD_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidToken",
        "UnrecognizedClientException",
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        "AuthFailure",
    }
)
# Of a request whose time is minutes off, as that of a WSL2 that slept (webiny/webiny-js#612). EC2 answers the first to
# credentials that have expired, too ("Error codes for the Amazon EC2 API").
_BAD_TIME = frozenset({"RequestExpired", "RequestTimeTooSkewed"})
_BAD_TIME_TEXT = re.compile("Signature (expired|not yet current)")
_CLOCK_HINT = "set the clock of this machine: it is minutes off"
# What AWS answers to good credentials where the region is off in their account (aws/chalice#1445, fog/fog-aws#585).
_MAYBE_OFF = frozenset({"InvalidClientTokenId", "UnrecognizedClientException", "AuthFailure"})
# The regions that are on in every account ("Enable or disable AWS Regions in your account", Account Management guide).
_ALWAYS_ON = re.compile(
    "us-(east|west)-[12]|ca-central-1|sa-east-1|eu-(central-1|north-1|west-[123])|ap-(south-1|northeast-[123]|southeast-[12])"
)
# The key of an answer's metadata that the command adds: the region of the client.
REGION_KEY = "RelaunchRegion"
DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"})


class CommandError(Exception):
    """An error that the user can fix: what is wrong, a hint, and the exit code."""

    def __init__(self, message: str, hint: str = "", exit_code: int = exit_codes.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code


class NotConnectedError(CommandError):
    """There is no stack to connect to: no region, no credentials, or no such stack."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the known names nearest to `name`; empty when none is near."""
    from relaunch.core.offerings.instance_types import nearest_names  # noqa: PLC0415 - of errors only

    near = nearest_names(name, known)
    return f"did you mean {' or '.join(near)}?" if near else ""


def explain_error(error: BaseException) -> CommandError | None:
    """Return an error as it is printed; None for a bug."""
    if isinstance(error, CommandError):
        return error
    for cause in _causes(error):
        # An error of botocore can only exist once botocore is imported; importing it takes longer than most commands.
        if type(cause).__module__.startswith("botocore."):
            return _explain_botocore_error(cause)
        if isinstance(cause, EOFError):
            # botocore asks for the code of an MFA device.
            return CommandError("a question was not answered: nobody can be asked here", "", exit_codes.CANCELLED)
        if isinstance(cause, ValueError) and (text := str(cause)).startswith(_BAD_ENDPOINT):
            hint = f"set or unset what names it{_named_endpoints()}"
            return CommandError(f"AWS cannot be reached: {text}", hint, exit_codes.REFUSED)
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return CommandError(f"nothing more can be written: {cause.strerror}", "make room, and run it again")
    return _explain_port_error(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors it was raised from: adapters wrap those of botocore."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__


def _explain_botocore_error(error: BaseException) -> CommandError:
    from botocore import exceptions  # noqa: PLC0415 - it is imported where there is such an error

    if isinstance(error, exceptions.ClientError):
        return _explain_client_error(error)
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    no_credentials = (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.SSOError,
        exceptions.LoginError,
        exceptions.MissingDependencyException,
        exceptions.ProfileNotFound,
    )
    if isinstance(error, no_credentials):
        hint = LOGIN_HINT if isinstance(error, exceptions.MissingDependencyException) else CREDENTIALS_HINT
        return CommandError(f"no AWS credentials: {text}", hint, exit_codes.REFUSED)
    if isinstance(error, exceptions.NoRegionError | exceptions.InvalidRegionError):
        return CommandError(f"no AWS region: {text}", REGION_HINT, exit_codes.REFUSED)
    if isinstance(error, exceptions.EndpointConnectionError) and is_loopback(url := str(error.kwargs["endpoint_url"])):
        hint = "`make local` starts another: paste what it prints; a new terminal is without these endpoints"
        return CommandError(f"the local world at {url} has ended", hint, exit_codes.REFUSED)
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        hint = f"check the network, the region and AWS_ENDPOINT_URL{_named_endpoints()}"
        return CommandError(f"AWS cannot be reached: {text}", hint, exit_codes.REFUSED)
    return CommandError(f"the call to AWS failed: {text}", "", exit_codes.REFUSED)


def _named_endpoints() -> str:
    named = {key: value for key, value in os.environ.items() if key.startswith("AWS_ENDPOINT_URL")}
    return "".join(f"; {key} is {value}" for key, value in sorted(named.items()))


def _explain_client_error(error: "ClientError") -> CommandError:
    from relaunch.adapters.aws.errors import error_code, is_throttled  # noqa: PLC0415 - as above

    code = error_code(error)
    call = error.operation_name
    text = error.response.get("Error", {}).get("Message", "") or code
    if code in _BAD_TIME or (code in _BAD_CREDENTIALS and _BAD_TIME_TEXT.match(text)):
        hint = _CLOCK_HINT + (f"; or {CREDENTIALS_HINT}: they have expired" if code == "RequestExpired" else "")
        return CommandError(f"AWS does not accept the time of the request ({code}): {text}", hint, exit_codes.REFUSED)
    if code in _BAD_CREDENTIALS:
        hint = CREDENTIALS_HINT + _region_hint(error)
        return CommandError(f"AWS does not accept the credentials ({code}): {text}", hint, exit_codes.REFUSED)
    if code in DENIED:
        hint = f"ask for permission to call {call}; docs/command.md lists what each command calls"
        return CommandError(f"AWS denies {call}: {text}", hint, exit_codes.REFUSED)
    if is_throttled(error):
        return CommandError(f"AWS throttles {call}: {text}", "try again in a minute", exit_codes.UNAVAILABLE)
    if code == "ResourceNotFoundException":
        return CommandError(f"{call}: {text}", "check the stack, the region and the account", exit_codes.NOT_FOUND)
    return CommandError(f"AWS refuses {call} ({code}): {text}", "", exit_codes.REFUSED)


def _region_hint(error: "ClientError") -> str:
    """Return how to switch the region on, if AWS may have refused the credentials because it is off."""
    metadata: Mapping[str, Any] = error.response.get("ResponseMetadata", {})
    region = metadata.get(REGION_KEY, "")
    if error.response["Error"]["Code"] not in _MAYBE_OFF or region == "aws-global" or _ALWAYS_ON.fullmatch(region):
        return ""
    return (
        f"; where they work in other regions, {region or 'this one'} is off in the account: "
        f"aws account enable-region --region-name {region or 'REGION'}, which takes minutes"
    )


def _explain_port_error(error: BaseException) -> CommandError | None:
    ports = sys.modules.get("relaunch.ports")
    if ports is None:
        return None
    if isinstance(error, ports.NoActiveRevisionError):
        return CommandError(str(error), "register one: aws ecs register-task-definition", exit_codes.NOT_FOUND)
    if isinstance(error, ports.StaleWriteError):
        return CommandError(str(error), "it was changed at the same time: try again", exit_codes.UNAVAILABLE)
    if isinstance(error, ports.TransientError):
        return CommandError(str(error), "this is temporary: try again", exit_codes.UNAVAILABLE)
    if isinstance(error, ports.PermanentError):
        return CommandError(str(error), "", exit_codes.REFUSED)
    return None


def print_error(failure: CommandError) -> None:
    """Print an error and its hint to standard error; an error of several lines says several things."""
    for index, line in enumerate(failure.message.split("\n")):
        echo(f"{'          ' if index else 'relaunch: '}{line}", err=True, fg="red")
    if failure.hint:
        echo(f"          {failure.hint}", err=True)


def _require_text(arguments: Mapping[str, Any]) -> None:
    """Check that what a command is given is text that can be stored and sent; names of files may be any bytes.

    Raises:
        CommandError: it has bytes that are no UTF-8, which Python makes half surrogate pairs.
    """
    for value in arguments.values():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str) and _SURROGATE.search(each):
                raise CommandError(f"{each!a} is no UTF-8 text: type it in a terminal whose encoding that is")


def reports_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with its errors printed as messages and turned into exit codes."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            _require_text(kwargs)
            command(*args, **kwargs)
        except (KeyboardInterrupt, typer.Abort):
            raise typer.Exit(exit_codes.CANCELLED) from None
        except Exception as error:
            failure = explain_error(error)
            if failure is None:
                raise
            print_error(failure)
            raise typer.Exit(failure.exit_code) from error

    return run
