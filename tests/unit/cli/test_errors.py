"""Errors of AWS and of the ports as messages; bugs are none of these."""

import boto3
import pytest
import typer
from botocore import exceptions as boto
from typer.testing import CliRunner

from relaunch.ports import NoActiveRevisionError, PermanentError, StaleWriteError, TransientError
from relaunch_cli.app import app
from relaunch_cli.errors import REGION_KEY, CommandError, explain_error, print_error, reports_errors


def client_error(code: str) -> boto.ClientError:
    return boto.ClientError({"Error": {"Code": code, "Message": "so it is"}}, "RunTask")


UNREACHABLE = 'AWS cannot be reached: Could not connect to the endpoint URL: "u"'


@pytest.mark.parametrize(
    ("error", "message", "exit_code"),
    [
        (CommandError("no", "yes", 3), "no", 3),
        (boto.NoCredentialsError(), "no AWS credentials: Unable to locate credentials", 5),
        (boto.ProfileNotFound(profile="x"), "no AWS credentials: The config profile (x) could not be found", 5),
        (boto.NoRegionError(), "no AWS region: You must specify a region.", 5),
        (boto.EndpointConnectionError(endpoint_url="u"), UNREACHABLE, 5),
        (boto.ReadTimeoutError(endpoint_url="u"), 'AWS cannot be reached: Read timeout on endpoint URL: "u"', 5),
        (boto.ParamValidationError(report="r"), "the call to AWS failed: Parameter validation failed:", 5),
        (client_error("AccessDeniedException"), "AWS denies RunTask: so it is", 5),
        (client_error("ExpiredToken"), "AWS does not accept the credentials (ExpiredToken): so it is", 5),
        (client_error("ThrottlingException"), "AWS throttles RunTask: so it is", 4),
        (client_error("ResourceNotFoundException"), "RunTask: so it is", 3),
        (client_error("Other"), "AWS refuses RunTask (Other): so it is", 5),
        (NoActiveRevisionError("the family x has no ACTIVE revision"), "the family x has no ACTIVE revision", 3),
        (StaleWriteError("changed"), "changed", 4),
        (TransientError("later"), "later", 4),
        (PermanentError("never"), "never", 5),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)  # fmt: skip
def test_an_error_is_a_message_with_an_exit_code(error, message, exit_code):
    failure = explain_error(error)

    assert failure is not None
    assert (failure.message, failure.exit_code) == (message, exit_code)


def test_an_error_of_botocore_is_found_below_the_error_of_an_adapter():
    error = TransientError("saving job x: throttled")
    error.__cause__ = client_error("ThrottlingException")

    failure = explain_error(error)

    assert failure is not None
    assert failure.message == "AWS throttles RunTask: so it is"
    assert failure.hint == "try again in a minute"


def test_an_unreachable_endpoint_names_the_variable_that_points_there(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", "http://127.0.0.1:9")

    failure = explain_error(boto.EndpointConnectionError(endpoint_url="u"))

    assert failure is not None
    assert failure.hint.endswith("AWS_ENDPOINT_URL_ECS is http://127.0.0.1:9")


def test_an_endpoint_that_is_no_address_is_no_bug(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost")
    with pytest.raises(ValueError, match="Invalid endpoint") as refused:
        boto3.Session("a", "b", region_name="us-east-1").client("ecs")

    failure = explain_error(refused.value)

    assert failure is not None
    assert (failure.message, failure.exit_code) == ("AWS cannot be reached: Invalid endpoint: localhost", 5)
    assert failure.hint == "set or unset what names it; AWS_ENDPOINT_URL is localhost"


def test_a_code_that_nobody_types_is_a_question_that_was_not_answered():
    failure = explain_error(EOFError("EOF when reading a line"))

    assert failure is not None
    assert failure.exit_code == 130


def test_a_local_world_that_has_ended_is_no_matter_of_the_network():
    failure = explain_error(boto.EndpointConnectionError(endpoint_url="http://127.0.0.1:9/"))

    assert failure is not None
    assert failure.message == "the local world at http://127.0.0.1:9/ has ended"
    assert "`make local` starts another" in failure.hint


@pytest.mark.parametrize(
    ("code", "region", "named"),
    [
        ("InvalidClientTokenId", "me-south-1", "where they work in other regions, me-south-1 is off in the account: "),
        ("UnrecognizedClientException", "af-south-1", "enable-region --region-name af-south-1, which takes minutes"),
        ("AuthFailure", "", "this one is off in the account: aws account enable-region --region-name REGION"),
        # Regions that are on in every account, and IAM's, which is in none.
        ("AuthFailure", "us-west-2", None),
        ("InvalidClientTokenId", "ap-northeast-3", None),
        ("InvalidClientTokenId", "aws-global", None),
        ("ExpiredToken", "me-south-1", None),
    ],
)
def test_credentials_may_be_refused_because_the_region_is_off(code, region, named):
    error = client_error(code)
    error.response["ResponseMetadata"] = {REGION_KEY: region}

    failure = explain_error(error)

    assert failure is not None
    assert failure.hint.startswith("set AWS_PROFILE, or sign in")
    assert ("enable-region" in failure.hint) is (named is not None)
    assert named is None or named in failure.hint


@pytest.mark.parametrize(
    ("code", "text", "or_expired"),
    [
        ("InvalidSignatureException", "Signature expired: 20261130T1 is now earlier than 20261130T2", False),
        ("SignatureDoesNotMatch", "Signature not yet current: 20261130T2 is still later than 20261130T1", False),
        ("RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", False),
        ("RequestExpired", "Request has expired.", True),
    ],
)
def test_a_clock_that_is_wrong_is_not_called_bad_credentials(code, text, or_expired):
    failure = explain_error(boto.ClientError({"Error": {"Code": code, "Message": text}}, "DescribeStacks"))

    assert failure is not None
    assert failure.exit_code == 5
    assert failure.message == f"AWS does not accept the time of the request ({code}): {text}"
    assert failure.hint.startswith("set the clock of this machine")
    assert ("aws sso login" in failure.hint) is or_expired


def test_who_signed_in_with_aws_login_hears_what_to_type():
    failure = explain_error(boto.MissingDependencyException(msg="login needs botocore[crt]"))

    assert failure is not None
    assert failure.message.startswith("no AWS credentials: Missing Dependency")
    assert "aws configure export-credentials --format env" in failure.hint


def test_a_bug_is_not_explained():
    assert explain_error(KeyError("x")) is None


@pytest.mark.parametrize(
    ("environment", "start"),
    [
        ({"NO_COLOR": "", "TERM": "xterm"}, "\x1b[31mrelaunch: "),
        ({"NO_COLOR": "1", "TERM": "xterm"}, "relaunch: "),
        ({"NO_COLOR": "", "TERM": "dumb"}, "relaunch: "),
    ],
)
def test_errors_are_red_unless_the_environment_wants_no_colours(environment, start):
    result = CliRunner().invoke(app, ["plan", "--offline"], color=True, env=environment)

    assert result.exit_code == 2
    assert result.stderr.startswith(start)
    assert ("\x1b" in result.stderr) is start.startswith("\x1b")


def test_an_error_of_several_lines_has_them_all_below_its_first(capsys):
    print_error(CommandError("A=1 is not allowed\nB=2 is not allowed", "name others"))

    *lines, hint = capsys.readouterr().err.splitlines()
    assert lines == ["relaunch: A=1 is not allowed", "          B=2 is not allowed"]
    assert hint == "          name others"


def test_a_question_that_is_left_ends_as_ctrl_c_does():
    def leave() -> None:
        raise typer.Abort

    with pytest.raises(typer.Exit) as ended:
        reports_errors(leave)()

    assert ended.value.exit_code == 130


@pytest.mark.parametrize("arguments", [["show", "a\udcff"], ["submit", "resnet", "-i", "a=\udcff"]])
def test_what_is_no_utf_8_text_is_refused_before_it_goes_anywhere(arguments):
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2
    assert "is no UTF-8 text" in result.stderr
    assert "udcff" in result.stderr
