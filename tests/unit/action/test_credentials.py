import pytest

from fakes.action_services import ROLE, SUBJECT, FakeServices, FakeTime, make_token, runner_environment
from relaunch_action.credentials import Role, RoleCredentials, read_credentials
from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.http_requests import NoResponseError, Response
from relaunch_action.signature import Credentials

DENIED = b"""<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>
<Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message>
</Error></ErrorResponse>"""


class RoleOfJob:
    """Credentials of a role, what they called, and what they masked."""

    def __init__(self, **changes: str) -> None:
        self.services, self.time, self.masked = FakeServices(), FakeTime(), list[str]()
        role = Role(ROLE, "eu-central-1", "relaunch-1658821493-1")
        environment = runner_environment(**changes)
        self.find = RoleCredentials(role, environment, self.services.send, self.time.clock, self.masked.append)


def test_the_token_of_the_job_becomes_credentials_and_every_secret_is_masked() -> None:
    role = RoleOfJob()

    assert role.find() == Credentials("ASIA1", "secret-key-1", "session-token-1")
    (asked,) = role.services.assumed
    assert asked == {
        "Action": "AssumeRoleWithWebIdentity",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "relaunch-1658821493-1",
        "WebIdentityToken": make_token(),
        "DurationSeconds": "3600",
    }
    assert set(role.masked) == {make_token(), "secret-key-1", "session-token-1"}


def test_the_role_is_assumed_again_before_its_credentials_expire_and_not_earlier() -> None:
    role = RoleOfJob()

    keys = []
    for seconds in (0.0, 2_999.0, 3_000.0, 5_999.0, 6_000.0):
        role.time.seconds = seconds
        keys.append(role.find().access_key_id)

    assert keys == ["ASIA1", "ASIA1", "ASIA2", "ASIA2", "ASIA3"]


@pytest.mark.parametrize("variable", ["ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"])
def test_a_job_without_the_permission_is_told_which(variable: str) -> None:
    with pytest.raises(ActionError, match=r"permissions: \{id-token: write\}"):
        RoleOfJob(**{variable: ""}).find()


def test_a_role_that_does_not_trust_the_job_is_told_with_what_to_trust() -> None:
    role = RoleOfJob()
    role.services.sts_answers = [Response(403, DENIED)]

    with pytest.raises(ActionError) as refused:
        role.find()

    assert not isinstance(refused.value, UnavailableError)
    for words in (ROLE, "AccessDenied", "trust policy", f"sub {SUBJECT}", "aud sts.amazonaws.com"):
        assert words in str(refused.value)
    assert make_token() not in str(refused.value)


def test_a_provider_without_the_audience_is_told_and_not_the_trust_policy() -> None:
    said = DENIED.replace(b"AccessDenied", b"InvalidIdentityToken")
    said = said.replace(b"Not authorized to perform sts:AssumeRoleWithWebIdentity", b"Incorrect token audience")
    role = RoleOfJob()
    role.services.sts_answers = [Response(400, said)]

    with pytest.raises(ActionError, match="add-client-id-to-open-id-connect-provider") as refused:
        role.find()

    assert "trust policy" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        NoResponseError("timed out"),
        Response(503, b""),
        Response(429, b""),
        Response(400, DENIED.replace(b"AccessDenied", b"IDPCommunicationError")),
        Response(400, DENIED.replace(b"AccessDenied", b"Throttling")),
    ],
)
def test_what_may_pass_is_worth_another_try(answer: Response | Exception) -> None:
    role = RoleOfJob()
    role.services.sts_answers = [answer]

    with pytest.raises(UnavailableError):
        role.find()

    assert role.find().access_key_id == "ASIA1"


@pytest.mark.parametrize("answer", [NoResponseError("refused"), Response(500, b"")])
def test_github_may_not_answer_either(answer: Response | Exception) -> None:
    role = RoleOfJob()
    role.services.token_answers = [answer]

    with pytest.raises(UnavailableError, match="GitHub's OIDC provider"):
        role.find()


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"value": 5}', b"<html>", b"[" * 70_000, rb'{"value": "\ud800"}']
)
def test_an_answer_without_a_token_is_none(body: bytes) -> None:
    role = RoleOfJob()
    role.services.token_answers = [Response(200, body)]

    with pytest.raises(ActionError, match="gave no token: status 200"):
        role.find()


@pytest.mark.parametrize("body", [b"", b"<html>", b"<a/>", b'{"Error": {}}'])
def test_an_answer_of_sts_that_is_none_is_a_refusal(body: bytes) -> None:
    role = RoleOfJob()
    role.services.sts_answers = [Response(400, body)]

    with pytest.raises(ActionError, match="status 400"):
        role.find()


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "a.bnVsbA.c"])
def test_a_token_that_nobody_can_read_is_sent_all_the_same(token: str) -> None:
    role = RoleOfJob()
    role.services.token_answers = [Response(200, f'{{"value": "{token}"}}'.encode())]
    role.services.sts_answers = [Response(403, DENIED)]

    with pytest.raises(ActionError, match="the sub of the token"):
        role.find()


def test_credentials_of_an_earlier_step_are_used() -> None:
    found = read_credentials({"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"})

    assert found == Credentials("A", "s", "t")
    with pytest.raises(ActionError, match="set the input role-to-assume"):
        read_credentials({"AWS_ACCESS_KEY_ID": "A"})
