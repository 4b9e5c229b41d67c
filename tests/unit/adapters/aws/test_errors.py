"""The AWS errors that are transient."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    ReadTimeoutError,
)

from relaunch.adapters.aws.errors import aws_errors, error_code, is_throttled, is_transient, readable_answer
from relaunch.ports import NotGrantedError, PermanentError, TransientError

URL = "https://dynamodb.us-east-1.amazonaws.com"


def refusal(code: str, status: int = 400) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "so it is"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetItem")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "code",
    [
        *("ThrottlingException", "Throttling", "ThrottledException", "KMS.ThrottlingException"),
        *("ProvisionedThroughputExceededException", "RequestLimitExceeded", "SlowDown"),
    ],
)
def test_throttling_is_transient(code: str) -> None:
    assert is_throttled(refusal(code))
    assert is_transient(refusal(code))


@pytest.mark.parametrize(
    "code", ["InternalServerError", "ServiceUnavailable", "RequestTimeout", "ExpiredTokenException"]
)
def test_faults_of_the_service_are_transient_but_no_throttling(code: str) -> None:
    assert is_transient(refusal(code))
    assert not is_throttled(refusal(code))


def test_registrations_of_one_family_at_once_are_transient_though_their_code_is_that_of_bad_parameters() -> None:
    message = "Too many concurrent attempts to create a new revision of the specified family."

    assert is_transient(ClientError({"Error": {"Code": "ClientException", "Message": message}}, "Register"))
    assert not is_transient(refusal("ClientException"))


def test_any_answer_of_500_and_above_is_transient() -> None:
    assert is_transient(refusal("SomethingNew", 500))
    assert is_transient(refusal("503", 503))


@pytest.mark.parametrize(
    "code", ["AccessDeniedException", "ValidationException", "ResourceNotFoundException", "NoSuchBucket"]
)
def test_refusals_are_permanent(code: str) -> None:
    assert not is_transient(refusal(code))


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        EndpointConnectionError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        CredentialRetrievalError(provider="container-role", error_msg="timed out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_could_not_be_reached_is_transient(error: BotoCoreError) -> None:
    with pytest.raises(TransientError, match="reading the table: ") as raised, aws_errors("reading the table"):
        raise error
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    "error",
    [NoCredentialsError(), ParamValidationError(report="no such parameter"), refusal("AccessDenied", 403)],
    ids=lambda error: type(error).__name__,
)
def test_what_is_wrong_on_our_side_is_permanent(error: Exception) -> None:
    with pytest.raises(PermanentError, match="reading the table: "), aws_errors("reading the table"):
        raise error


def test_other_errors_are_not_touched() -> None:
    with pytest.raises(KeyError), aws_errors("reading the table"):
        raise KeyError("a bug of ours")


def test_an_error_has_a_code_also_when_aws_gave_none() -> None:
    assert error_code(refusal("SlowDown")) == "SlowDown"
    assert error_code(NoCredentialsError()) == "NoCredentialsError"
    assert error_code(ClientError({}, "GetItem")) == ""


@pytest.mark.parametrize(
    "code",
    [
        *("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthFailure", "NotAuthorized"),
        *("UnrecognizedClientException", "InvalidClientTokenId", "SignatureDoesNotMatch", "InvalidAccessKeyId"),
        *("KMS.DisabledException", "KMSAccessDeniedException", "KMSInvalidStateException"),
        *("ClusterNotFoundException", "NoSuchBucket", "OptInRequired", "BlockedException", "AllAccessDisabled"),
    ],
)
def test_what_somebody_can_grant_or_mend_is_told_from_what_is_wrong_with_the_request(code: str) -> None:
    with pytest.raises(NotGrantedError, match=f"registering trainer: .*{code}"), aws_errors("registering trainer"):
        raise refusal(code)


@pytest.mark.parametrize(
    "message",
    [
        "Role is not valid",
        "ECS was unable to assume the role 'arn:aws:iam::111122223333:role/relaunch/trainer' that was provided for "
        "this task. Please verify that the role being passed has the proper trust relationship and permissions.",
        "Unable to assume the service linked role. Please verify that the ECS service linked role exists.",
    ],
)
def test_a_role_that_does_not_exist_yet_may_come(message: str) -> None:
    error = ClientError({"Error": {"Code": "ClientException", "Message": message}}, "RegisterTaskDefinition")

    with pytest.raises(NotGrantedError), aws_errors("registering trainer"):
        raise error


@pytest.mark.parametrize("code", ["ClientException", "ValidationException", "InvalidParameterException"])
def test_what_is_wrong_with_the_request_stays_wrong(code: str) -> None:
    with pytest.raises(PermanentError) as raised, aws_errors("registering trainer"):
        raise refusal(code)
    assert not isinstance(raised.value, NotGrantedError)


@pytest.mark.parametrize("error", [KeyError("Price"), TypeError("no list"), ValueError("free"), RecursionError()])
def test_an_answer_of_another_form_is_temporary(error: Exception) -> None:
    words = "reading prices: AWS answers in a form that this release does not read"
    with pytest.raises(TransientError, match=words), readable_answer("reading prices"):
        raise error
