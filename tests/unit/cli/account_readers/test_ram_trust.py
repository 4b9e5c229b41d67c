"""The RAM role of a stack is asked as the caller, who is none of its functions."""

from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from botocore.exceptions import ClientError

from relaunch.adapters.alibaba import ram_role
from relaunch.core.checks import Check, Verdict
from relaunch.ports import TransientError
from relaunch_cli.account_readers.calls import AccountCalls
from relaunch_cli.account_readers.ram_trust import check_ram_trust

ROLE = "acs:ram::113511544585:role/relaunch"
OUTPUTS = {
    "AlibabaRoleArn": ROLE,
    "AlibabaOidcProviderArn": "acs:ram::113511544585:oidc-provider/aws",
    "AckRegion": "cn-beijing",
    "AlibabaSubjects": "arn:aws:iam::1:role/launch",
}
KEYS = {"AccessKeyId": "STS.id", "AccessKeySecret": "secret-of-role", "SecurityToken": "token-of-role"}


class Sts:
    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.asked: list[dict[str, Any]] = []

    def client(self, service: str) -> Any:
        assert service == "sts"
        return self

    def get_web_identity_token(self, **asked: Any) -> dict[str, str]:
        self.asked.append(asked)
        if self.refusal:
            raise ClientError({"Error": {"Code": self.refusal, "Message": "no"}}, "GetWebIdentityToken")
        return {"WebIdentityToken": "jwt-of-the-caller"}


def check(monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | None, sts: Sts, **outputs: str) -> list[Check]:
    def handle(request: httpx.Request) -> httpx.Response:
        assert parse_qs(request.content.decode())["OIDCToken"] == ["jwt-of-the-caller"]
        assert request.url.host == "sts.cn-beijing.aliyuncs.com"
        assert answer is not None
        return answer

    monkeypatch.setattr(ram_role, "open_client", lambda _: httpx.Client(transport=httpx.MockTransport(handle)))
    return list(check_ram_trust(OUTPUTS | outputs, AccountCalls(sts)))


def refusal(code: str) -> httpx.Response:
    return httpx.Response(403, json={"Code": code, "Message": "You are not authorized", "RequestId": "r-1"})


def test_a_role_that_anybody_of_the_account_may_assume_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    sts = Sts()

    (found,) = check(monkeypatch, httpx.Response(200, json={"Credentials": KEYS}), sts)

    assert found.verdict is Verdict.PROBLEM
    assert "arn:aws:iam::1:role/launch" in found.to_do
    assert sts.asked[0]["Audience"] == ["sts.aliyuncs.com"]
    assert not any(secret in f"{found}" for secret in (*KEYS.values(), "jwt-of-the-caller"))


def test_a_role_that_only_the_functions_may_assume_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = check(monkeypatch, refusal("AuthenticationFail.NoPermission"), Sts())

    assert found.verdict is Verdict.OK


def test_another_refusal_says_nothing_of_the_trust_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = check(monkeypatch, refusal("AuthenticationFail.OIDCToken.Invalid"), Sts())

    assert found.verdict is Verdict.UNKNOWN
    assert "You are not authorized" in found.text


@pytest.mark.parametrize("code", ["AccessDenied", "OutboundWebIdentityFederationDisabledException"])
def test_without_a_token_of_aws_it_is_unknown(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    (found,) = check(monkeypatch, None, Sts(code))

    assert found.verdict is Verdict.UNKNOWN
    assert "sts:GetWebIdentityToken" in found.to_do


def test_alibaba_cloud_that_does_not_answer_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TransientError):
        check(monkeypatch, httpx.Response(503), Sts())


@pytest.mark.parametrize("missing", ["AlibabaRoleArn", "AlibabaOidcProviderArn", "AckRegion"])
def test_a_stack_that_signs_in_by_no_role_is_not_checked(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    sts = Sts()

    assert check(monkeypatch, None, sts, **{missing: ""}) == []
    assert sts.asked == []
