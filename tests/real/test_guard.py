"""Whoever attacks the emulator is refused by the guard, and runs code in an emulator without it."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from fakes.emulators import (
    FUNCTIONS,
    KNOWN_TO_EVERYBODY,
    ROLE,
    create_role,
    creating,
    function_with,
    invoking,
    presigned,
    unguarded_emulator,
)
from relaunch_local.attack.requests import REGION, Call
from relaunch_local.request_guard.credentials import Credentials, function_access_key, random_root_credentials
from relaunch_local.stack.emulator import ACCOUNT, Emulator, running_emulator

Attack = Callable[[Call], Call]

ATTACKS: dict[str, Attack] = {
    "MiniStack's root key": lambda call: call.sign(KNOWN_TO_EVERYBODY),
    "its root key with a wrong secret": lambda call: call.sign(Credentials("test", "wrong")),
    "twelve digits, unsigned": lambda call: call.add(
        Authorization=f"AWS4-HMAC-SHA256 Credential={ACCOUNT}/20260101/{REGION}/lambda/aws4_request"
    ),
    "its root key in the query": lambda call: presigned(call, "test"),
    "twelve digits in the query": lambda call: presigned(call, ACCOUNT),
    "plain text of a page": lambda call: presigned(call, "test").add(
        Content_Type="text/plain", Origin="http://a.example"
    ),
    "a page": lambda call: call.sign(KNOWN_TO_EVERYBODY).add(Origin="http://127.0.0.1:8000"),
    "a page without a name": lambda call: call.sign(KNOWN_TO_EVERYBODY).add(Origin="null"),
    "a name that was bound to loopback": lambda call: call.add(Host="attacker.example").sign(KNOWN_TO_EVERYBODY),
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with running_emulator(tmp_path_factory.mktemp("guarded"), {}, random_root_credentials()) as emulator:
        create_role(emulator)
        yield emulator


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with unguarded_emulator(tmp_path_factory.mktemp("unguarded") / "emulator") as emulator:
        create_role(emulator)
        yield emulator


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "code-was-run"


def attack_with(attack: Attack, emulator: Emulator, marker: Path) -> list[int]:
    """Create a function and invoke it; return both statuses."""
    name = f"f{hashlib.sha256(str(marker).encode()).hexdigest()[:16]}"
    return [attack(call).send().status for call in (creating(emulator, name, marker), invoking(emulator, name))]


def function_names(emulator: Emulator) -> set[str]:
    return {each["FunctionName"] for each in emulator.client("lambda").list_functions()["Functions"]}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
class TestRunningCode:
    def test_without_the_guard_the_code_is_run(self, unguarded: Emulator, marker: Path, attack: Attack) -> None:
        assert attack_with(attack, unguarded, marker) == [201, 200]
        assert marker.exists()

    def test_with_it_nothing_happens(self, guarded: Emulator, marker: Path, attack: Attack) -> None:
        before = function_names(guarded)

        assert attack_with(attack, guarded, marker) == [403, 403]

        assert function_names(guarded) == before
        assert not marker.exists()


@pytest.mark.parametrize("header", [{"Origin": "null"}, {"Host": "attacker.example"}, {"Sec-Fetch-Site": "none"}])
def test_not_even_the_right_credentials_let_a_page_through(
    guarded: Emulator, marker: Path, header: dict[str, str]
) -> None:
    def attack(call: Call) -> Call:
        return replace(call, headers=header).sign(guarded.root)

    assert attack_with(attack, guarded, marker) == [403, 403]
    assert not marker.exists()


def test_whoever_has_the_credentials_gets_through(guarded: Emulator, marker: Path) -> None:
    assert attack_with(lambda call: call.sign(guarded.root), guarded, marker) == [201, 200]
    assert marker.exists()


def test_a_wrong_secret_of_the_right_key_does_not(guarded: Emulator, marker: Path) -> None:
    guessed = Credentials(guarded.root.access_key_id, "guessed")

    assert attack_with(lambda call: call.sign(guessed), guarded, marker) == [403, 403]
    assert not marker.exists()


@pytest.mark.parametrize(
    ("service", "operation"),
    [("dynamodb", "list_tables"), ("iam", "list_roles"), ("s3", "list_buckets"), ("lambda", "list_functions")],
)
def test_boto3_reads_why_it_is_refused(guarded: Emulator, service: str, operation: str) -> None:
    client = Emulator(guarded.endpoint_url, KNOWN_TO_EVERYBODY).client(service)

    with pytest.raises(ClientError, match=r"InvalidClientTokenId.*`make local` prints"):
        getattr(client, operation)()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/_ministack/health"),
        ("POST", "/_ministack/config"),
        ("GET", "/_aws/sqs/messages"),
        ("POST", "/_ministack/reset"),
    ],
)
def test_what_ministack_answers_to_anybody_needs_a_signature(
    guarded: Emulator, unguarded: Emulator, method: str, path: str
) -> None:
    before = function_names(guarded)

    assert Call(f"{guarded.endpoint_url}{path}", method, b"{}").send().status == 403
    assert Call(f"{unguarded.endpoint_url}{path}", method, b"{}").send().status != 403

    assert function_names(guarded) == before
    # The reset removes the role, which other tests need.
    create_role(unguarded)


def test_no_answer_allows_another_origin(guarded: Emulator, unguarded: Emulator) -> None:
    def allowed(call: Call) -> tuple[int, str | None]:
        answer = call.send()
        return answer.status, answer.headers.get("Access-Control-Allow-Origin")

    for emulator, signed, preflight in ((unguarded, (200, "*"), (200, "*")), (guarded, (200, None), (403, None))):
        url = f"{emulator.endpoint_url}{FUNCTIONS}"
        asked = {"Origin": "http://a.example", "Access-Control-Request-Method": "POST"}
        assert allowed(Call(url, "GET").sign(emulator.root)) == signed
        assert allowed(Call(url, "OPTIONS", headers=asked)) == preflight
        # Some clients of a page send no Origin.
        assert allowed(Call(url, "OPTIONS")) == preflight


class TestFunctionUrl:
    @pytest.fixture(scope="class")
    @staticmethod
    def served(guarded: Emulator, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
        marker = tmp_path_factory.mktemp("url") / "invoked"
        assert creating(guarded, "hook", marker).sign(guarded.root).send().status == 201
        client = guarded.client("lambda")
        url = client.create_function_url_config(FunctionName="hook", AuthType="NONE")["FunctionUrl"]
        client.add_permission(
            FunctionName="hook",
            StatementId="public",
            Action="lambda:InvokeFunctionUrl",
            Principal="*",
            FunctionUrlAuthType="NONE",
        )
        return f"{guarded.endpoint_url}/_aws/lambda-url/{url.removeprefix('https://').split('.', 1)[0]}/", marker

    def test_it_needs_no_signature(self, served: tuple[str, Path]) -> None:
        url, marker = served
        marker.unlink(missing_ok=True)

        assert Call(url, body=b"{}").send().status == 200
        assert marker.exists()

    @pytest.mark.parametrize(
        "headers", [{"Origin": "null"}, {"Host": "attacker.example"}, {"Sec-Fetch-Site": "cross-site"}]
    )
    def test_but_it_is_called_by_no_page(self, served: tuple[str, Path], headers: dict[str, str]) -> None:
        url, marker = served
        marker.unlink(missing_ok=True)

        assert Call(url, body=b"{}", headers=headers).send().status == 403
        assert not marker.exists()

    @pytest.mark.parametrize("path", ["", "/", "//", "/../..", "x/%2e%2e/%2e%2e"])
    def test_what_is_no_function_url_needs_one(self, guarded: Emulator, marker: Path, path: str) -> None:
        listing = {"X-Amz-Target": "AmazonSQS.ListQueues", "Content-Type": "application/x-amz-json-1.0"}
        call = presigned(Call(f"{guarded.endpoint_url}/_aws/lambda-url{path}", headers=listing), "test")

        answer = call.send()

        assert answer.status in (403, 404)
        assert "QueueUrls" not in answer.body

    def test_it_leads_to_no_other_service(self, guarded: Emulator, served: tuple[str, Path]) -> None:
        url, _ = served
        headers = {"X-Amz-Target": "AmazonSQS.CreateQueue", "Content-Type": "application/x-amz-json-1.0"}
        query = f"{url}?Action=CreateQueue&QueueName=q"

        for call in (Call(url, body=b'{"QueueName": "q"}', headers=headers), Call(query), Call(query, "GET")):
            assert call.send().status == 200
            assert presigned(call, "test").send().status in (200, 403)

        assert guarded.client("sqs").list_queues().get("QueueUrls", []) == []


class TestFunctions:
    @pytest.fixture(scope="class")
    @staticmethod
    def environment(guarded: Emulator) -> dict[str, str]:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("code.py", "import os\ndef handler(event, context):\n    return dict(os.environ)\n")
        client: Any = guarded.client("lambda")
        request = function_with("environment", Path("unused"))
        client.create_function(**{**request, "Code": {"ZipFile": packed.getvalue()}})
        answer: dict[str, str] = json.load(client.invoke(FunctionName="environment")["Payload"])
        return answer

    def test_a_function_knows_neither_the_root_users_secret_nor_our_packages(
        self, guarded: Emulator, environment: dict[str, str]
    ) -> None:
        assert guarded.root.secret_access_key not in "".join(environment.values())
        assert "relaunch" not in environment.get("PYTHONPATH", "")

    def test_it_is_its_role_and_may_do_what_that_may(self, guarded: Emulator, environment: dict[str, str]) -> None:
        def client(service: str) -> Any:
            names = ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")
            session = boto3.Session(*(environment[f"AWS_{name}"] for name in names), region_name=REGION)
            return session.client(service, endpoint_url=environment["AWS_ENDPOINT_URL"])

        assert client("sts").get_caller_identity()["Arn"].endswith(":assumed-role/attacker/environment")
        with pytest.raises(ClientError, match=r"AccessDenied.*not authorized to perform"):
            client("dynamodb").list_tables()

    def test_its_secret_does_not_follow_from_its_arns(self, guarded: Emulator, environment: dict[str, str]) -> None:
        arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:environment"
        role = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
        digest = hashlib.sha256(f"{arn}:{role}".encode()).hexdigest()
        derived = hashlib.sha256(f"secret:{digest}".encode()).hexdigest()
        call = Call(f"{guarded.endpoint_url}/", body=b"Action=GetCallerIdentity&Version=2011-06-15")

        assert environment["AWS_ACCESS_KEY_ID"] == function_access_key(arn, role)
        own = [
            Credentials(environment["AWS_ACCESS_KEY_ID"], secret)
            for secret in (environment["AWS_SECRET_ACCESS_KEY"], derived)
        ]
        assert [call.sign(each, "sts", environment["AWS_SESSION_TOKEN"]).send().status for each in own] == [200, 403]
