"""Webhook requests, including known pitfalls of other receivers."""

import base64
import json
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.webhook import SECRET, load_event, make_request, sign
from relaunch.adapters.github.signature import SecretRing
from relaunch.adapters.github.webhook_request import MAX_BODY_BYTES, MAX_MESSAGE_BYTES, Answer, Request, receive
from relaunch.adapters.github.webhook_secrets import read_scope
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.triggers.events import GithubEvent

AT = "2026-11-03T12:30:42Z"
PUSH: dict[str, Any] = load_event("github.push")
BODY = json.dumps(PUSH).encode()


def answer(event: dict[str, Any], secret: str | None = SECRET) -> tuple[Answer, list[dict[str, Any]]]:
    queue: list[str] = []
    ring = SecretRing(lambda stage: (secret, 0.0) if secret and stage == "AWSCURRENT" else None, lambda: 0.0, 0.0)
    answered = receive(Request(event), ring, queue.append, AT)
    assert all(len(message) <= MAX_MESSAGE_BYTES for message in queue)
    return answered, [json.loads(message) for message in queue]


def status_of(event: dict[str, Any]) -> int:
    answered, queue = answer(event)
    assert len(queue) == (answered.text == "queued")
    return answered.status


def test_a_signed_push_is_queued() -> None:
    answered, (message,) = answer(make_request(BODY))

    assert answered.to_response() == {
        "statusCode": 202,
        "headers": {"content-type": "application/json"},
        "body": '{"status": "queued"}',
    }
    assert {key: value for key, value in message.items() if key not in {"payload", "body_sha256"}} == {
        "source": "github",
        "format": 1,
        "event": "push",
        "delivery": "guid-1",
        "hook_id": "7",
        "received_at": AT,
    }
    assert message["payload"] == PUSH
    assert len(message["body_sha256"]) == 64


def test_the_sample_event_is_queued_as_the_sample_message() -> None:
    _, queue = answer(load_event("function-url.github-push"))

    assert queue == [json.loads(load_event("sqs.intake.github-push")["Records"][0]["body"])]


def test_a_signature_with_another_secret_is_refused_without_telling_the_right_one() -> None:
    answered, queue = answer(make_request(BODY, secret="guessed"))

    assert (answered.status, queue) == (401, [])
    assert sign(BODY).removeprefix("sha256=") not in json.dumps(answered.to_response())


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(None, id="missing"),
        *("", "sha256=", "sha256=zz", "sha256", "=", "sha256=" + "0" * 64, "sha512=00"),
        *("sha256=\xe9\xff" + "a" * 62, "sha256=" + "ü" * 64, "\udc80", "sha256=" + "٣" * 64),  # not ASCII
    ],
)
def test_a_missing_malformed_or_wrong_signature_is_refused(header: str | None) -> None:
    assert status_of(make_request(BODY, {"x-hub-signature-256": header})) == 401


def test_the_sha1_signature_counts_for_nothing() -> None:
    sha1 = "sha1=0d5dd0d6a6b5b9bb4ba1bdfcf2f0ae9b2b3a2e0c"

    assert status_of(make_request(BODY, {"x-hub-signature-256": None, "x-hub-signature": sha1})) == 401
    assert status_of(make_request(BODY, {"x-hub-signature": sha1})) == 202


def test_the_signature_is_over_the_raw_bytes_not_over_the_same_json_written_otherwise() -> None:
    spaced = json.dumps(PUSH, indent=3, sort_keys=True).encode()

    assert status_of(make_request(spaced)) == 202
    assert status_of(make_request(spaced, {"x-hub-signature-256": sign(BODY)})) == 401


def test_header_names_are_looked_up_whatever_their_case() -> None:
    request = make_request(BODY)
    for change in (str.upper, str.title, str.lower):
        headers = {change(name): value for name, value in request["headers"].items()}
        assert status_of({**request, "headers": headers}) == 202


def test_a_base64_body_is_decoded_before_it_is_verified() -> None:
    assert status_of(make_request(BODY, is_base64=True)) == 202


@pytest.mark.parametrize("text", ["%%%", "YQ", "Zm9v\n", "é"])
def test_a_broken_base64_body_is_refused(text: str) -> None:
    assert status_of({**make_request(BODY), "body": text, "isBase64Encoded": True}) == 401


@pytest.mark.parametrize("is_base64", [False, True])
def test_a_form_is_verified_as_it_was_sent_and_its_payload_is_queued(is_base64: bool) -> None:
    form = urlencode({"payload": json.dumps({**PUSH, "note": "a+b & é%"}, ensure_ascii=False)}).encode()

    answered, (message,) = answer(
        make_request(form, {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}, is_base64=is_base64)
    )

    assert answered.status == 202
    assert message["payload"] == {**PUSH, "note": "a+b & é%"}


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param("text/plain", b"{}", id="text"),
        pytest.param(None, b"{}", id="no-content-type"),
        pytest.param("application/json", b"", id="no-body"),
        pytest.param("application/json", b"{", id="no-json"),
        pytest.param("application/json", b"[]", id="no-object"),
        pytest.param("application/json", b'"text"', id="json-text"),
        pytest.param("application/json", b"[" * 100_000, id="endlessly-nested"),
        pytest.param("application/json", b"payload=%7B%7D", id="form-called-json"),
        pytest.param("application/x-www-form-urlencoded", b"{}", id="json-called-form"),
        pytest.param("application/x-www-form-urlencoded", b"payload=%7B", id="form-with-broken-json"),
        pytest.param("application/x-www-form-urlencoded", b"payload=[]", id="form-without-an-object"),
        pytest.param("application/x-www-form-urlencoded", "payload=é".encode(), id="form-not-ascii"),
        pytest.param("application/x-www-form-urlencoded", b"a=1&" * 100 + b"payload=%7B%7D", id="form-of-many-fields"),
    ],
)
def test_a_signed_body_of_another_kind_is_unsupported(content_type: str | None, body: bytes) -> None:
    assert status_of(make_request(body, {"content-type": content_type})) == 415


def test_a_ping_is_answered_and_not_queued() -> None:
    answered, queue = answer(make_request(b'{"zen":"Keep it logically awesome."}', event="ping"))

    assert (answered.status, answered.text, queue) == (200, "pong", [])


def test_a_forged_ping_is_refused() -> None:
    assert status_of(make_request(b"{}", event="ping", secret="guessed")) == 401


@pytest.mark.parametrize("event", ["star", "pull_request", "check_run", "", "PUSH", "push\n"])
def test_an_unwanted_event_is_no_failure(event: str) -> None:
    answered, queue = answer(make_request(b"{}", event=event))

    assert (answered.status, answered.text, queue) == (202, "ignored", [])


@pytest.mark.parametrize("is_base64", [False, True])
def test_a_huge_body_is_refused_before_anything_is_computed(is_base64: bool) -> None:
    def read(_stage: str) -> tuple[str, float]:
        raise AssertionError("the body was read")

    request = {**make_request(b"{}"), "body": "x" * (MAX_BODY_BYTES + 1), "isBase64Encoded": is_base64}

    assert receive(Request(request), SecretRing(read, float, 0.0), print, AT).status == 413


def big_push(commit_count: int, path_length: int = 60, letter: str = "a") -> dict[str, Any]:
    commits = [
        {**PUSH["commits"][0], "message": "m" * 300, "added": [f"{number:06d}/{letter * path_length}"], "modified": []}
        for number in range(commit_count)
    ]
    return {**PUSH, "commits": commits}


def parse(message: dict[str, Any]) -> GithubEvent:
    (event,) = parse_intake_message(message)
    assert isinstance(event, GithubEvent)
    return event


@pytest.mark.parametrize("commit_count", [1_200, 2_047])
def test_a_push_too_large_for_the_queue_is_reduced_to_what_is_used(commit_count: int) -> None:
    payload = big_push(commit_count)
    body = json.dumps(payload).encode()
    assert len(body) > 900_000

    answered, (message,) = answer(make_request(body))

    assert answered.text == "queued"
    assert "pusher" not in message["payload"]
    event = parse(message)
    assert event == parse({**message, "payload": payload})
    assert event.paths is not None
    assert len(event.paths) == commit_count


def test_a_body_that_grows_when_it_is_written_down_is_reduced_too() -> None:
    payload = big_push(400, path_length=600, letter="é")
    body = json.dumps(payload, ensure_ascii=False).encode()
    assert len(body) < MAX_MESSAGE_BYTES < len(json.dumps(payload))

    answered, (message,) = answer(make_request(body))

    assert answered.text == "queued"
    assert parse(message).paths is None


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(big_push(2_048), id="as-many-commits-as-github-tells"),
        pytest.param(big_push(2_000, path_length=900), id="too-many-paths"),
        pytest.param({**big_push(2_000), "commits": [{"message": "m" * 1_000_000}]}, id="commit-without-lists"),
        pytest.param({**big_push(2_000), "commits": ["m" * 1_000_000]}, id="commit-that-is-none"),
    ],
)
def test_paths_that_cannot_all_be_told_are_unknown_after_a_reduction(payload: dict[str, Any]) -> None:
    answered, (message,) = answer(make_request(json.dumps(payload).encode()))

    assert answered.text == "queued"
    assert (parse(message).paths, parse(message).has_commits) == (None, True)


def test_an_empty_push_stays_empty_when_it_is_reduced() -> None:
    payload = {**PUSH, "commits": [], "filler": "x" * 1_000_000}

    _, (message,) = answer(make_request(json.dumps(payload).encode()))

    assert not parse(message).has_commits


def test_a_body_whose_used_fields_alone_are_too_large_is_refused() -> None:
    dispatch = {**load_event("github.repository_dispatch"), "client_payload": {"text": "x" * 1_000_000}}

    answered, queue = answer(make_request(json.dumps(dispatch).encode(), event="repository_dispatch"))

    assert (answered.status, queue) == (413, [])


def test_half_a_surrogate_pair_is_queued_as_it_came() -> None:
    _, (message,) = answer(make_request(b'{"ref":"\\ud800","note":"\\uffff\\u0000"}'))

    assert message["payload"] == {"ref": "\ud800", "note": "\uffff\0"}


@pytest.mark.parametrize(
    "event", [{}, {"headers": None, "body": None}, {"headers": [], "body": 7}, {"headers": {"x": None}, "body": ""}]
)
def test_a_request_without_the_usual_parts_is_refused(event: dict[str, Any]) -> None:
    assert status_of(event) == 401


HEADER_NAMES = st.sampled_from(
    ["x-hub-signature-256", "X-Hub-Signature-256", "x-hub-signature", "content-type", "x-github-event"]
)


@given(
    body=st.one_of(st.text(max_size=100), st.binary(max_size=100).map(lambda raw: base64.b64encode(raw).decode())),
    headers=st.dictionaries(HEADER_NAMES | st.text(max_size=10), st.text(max_size=80), max_size=6),
    is_base64=st.booleans(),
)
def test_whatever_comes_unsigned_is_refused_and_never_raises(
    body: str, headers: dict[str, str], is_base64: bool
) -> None:
    assert status_of({"headers": headers, "body": body, "isBase64Encoded": is_base64}) == 401


@given(
    body=st.binary(max_size=200) | st.text(max_size=50).map(lambda text: f"payload={quote_plus(text)}".encode()),
    content_type=st.sampled_from(["application/json", "application/x-www-form-urlencoded", "a/b", ""]),
    event=st.sampled_from(["push", "ping", "release", "star", ""]),
)
def test_whatever_comes_signed_is_answered_and_never_raises(body: bytes, content_type: str, event: str) -> None:
    request = make_request(body, {"content-type": content_type}, event=event, is_base64=True)

    assert status_of(request) in {200, 202, 415}


@given(st.binary(min_size=1, max_size=50), st.integers(min_value=0, max_value=399))
def test_no_change_of_a_single_bit_is_accepted(body: bytes, bit: int) -> None:
    changed = bytearray(body)
    changed[bit // 8 % len(body)] ^= 1 << bit % 8

    assert status_of(make_request(bytes(changed), {"x-hub-signature-256": sign(body)}, is_base64=True)) == 401


# --- scopes

SCOPES = json.dumps({"scopes": {"/": {"secret": "d"}, "acme": {"secret": "a"}, "acme/vision": {"secret": "v"}}})
SECRETS = {"/": "d", "/acme": "a", "/acme/vision": "v", "/ACME/Vision/": "v"}


@pytest.mark.parametrize("path", SECRETS)
@pytest.mark.parametrize(
    ("repository", "signers"),
    [
        ("acme/vision", {"/acme/vision", "/ACME/Vision/"}),
        ("Acme/Vision", {"/acme/vision", "/ACME/Vision/"}),
        ("acme/speech", {"/acme"}),
        ("other/vision", {"/"}),
    ],
)
def test_a_repository_is_signed_for_by_its_most_specific_secret_only(
    path: str, repository: str, signers: set[str]
) -> None:
    body = json.dumps({**PUSH, "repository": {"full_name": repository}}).encode()

    answered, queue = answer({**make_request(body, secret=SECRETS[path]), "rawPath": path}, SCOPES)

    assert (answered.status, len(queue)) == ((202, 1) if path in signers else (403, 0))
    if path not in signers:
        (signer,) = {read_scope(each) for each in signers}
        assert answered.detail.endswith(f"does not sign for {repository.lower()}, the secret of {signer} does")
        assert str(signer) not in answered.text


@pytest.mark.parametrize("path", ["/", "/acme", "/acme/vision", "/acme/unknown", "/unknown"])
def test_the_path_alone_opens_nothing(path: str) -> None:
    for secret in {"d", "a", "v", SECRET} - {SECRETS.get(path, "")}:
        assert answer({**make_request(BODY, secret=secret), "rawPath": path}, SCOPES)[0].status == 401


@pytest.mark.parametrize("path", ["/a/b/c", "/favicon.ico", "/acme/%76ision", 7])
def test_a_path_that_names_no_scope_is_not_found(path: Any) -> None:
    assert answer({**make_request(BODY), "rawPath": path})[0].status == (202 if path == 7 else 404)


def test_a_plain_secret_is_that_of_the_default_scope() -> None:
    assert answer({**make_request(BODY), "rawPath": "/"})[0].status == 202
    assert answer({**make_request(BODY), "rawPath": "/acme/vision"})[0].status == 401


def test_a_repository_that_no_secret_signs_for_is_refused() -> None:
    scopes = json.dumps({"scopes": {"acme/speech": {"secret": "s"}}})

    answered, queue = answer({**make_request(BODY, secret="s"), "rawPath": "/acme/speech"}, scopes)

    assert (answered.status, queue) == (403, [])
    assert answered.detail == "the secret of acme/speech does not sign for acme/vision, no secret does: add one"


@pytest.mark.parametrize(
    ("payload", "status"),
    [
        pytest.param({"zen": "Keep it logically awesome."}, 200, id="app"),
        pytest.param({"organization": {"login": "acme"}}, 200, id="organization"),
        pytest.param({"repository": {"full_name": "acme/vision"}}, 403, id="repository-with-a-secret-of-its-own"),
        pytest.param({"repository": {"full_name": "mallory/x"}}, 403, id="other-owner"),
    ],
)
def test_a_ping_tells_at_once_whether_the_secret_fits(payload: Any, status: int) -> None:
    request = make_request(json.dumps(payload).encode(), event="ping", secret="a")

    assert answer({**request, "rawPath": "/acme"}, SCOPES)[0].status == status


def test_a_payload_that_names_nothing_is_signed_with_the_default_secret() -> None:
    for path, secret, status in (("/", "d", 202), ("/acme", "a", 403)):
        request = make_request(b"{}", event="package", secret=secret)
        assert answer({**request, "rawPath": path}, SCOPES)[0].status == status
