"""Every page, and what becomes of what goes wrong."""

import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from fakes.dashboard_world import BIDI, HOSTILE, DashboardWorld, own
from relaunch.ports import TransientError
from relaunch_cli.dashboard.application import Dashboard
from relaunch_cli.dashboard.guard import FORM_FIELD, Guard
from relaunch_cli.dashboard.http_messages import Response

PORT = 8000
GUARD = Guard(PORT, "t0ken", "f0rm")


class Pages:
    def __init__(self, world: DashboardWorld) -> None:
        self.world = world
        self.dashboard = Dashboard(world, GUARD, "relaunch")

    def get(self, target: str, **headers: str) -> Response:
        return self.dashboard.answer(own(PORT, GUARD, target=target, **headers))

    def text(self, target: str, **headers: str) -> str:
        return self.get(target, **headers).body.decode()

    def post(self, target: str, **fields: str) -> Response:
        body = urlencode({FORM_FIELD: "f0rm", "key": "k", **fields}).encode()
        return self.dashboard.answer(own(PORT, GUARD, "POST", target, body))


@pytest.fixture(scope="module")
def world() -> DashboardWorld:
    return DashboardWorld()


@pytest.fixture
def pages(world: DashboardWorld) -> Pages:
    return Pages(world)


def fail(error: Exception, monkeypatch: pytest.MonkeyPatch, world: DashboardWorld) -> None:
    def raise_it(*_: object) -> None:
        raise error

    for name in ("list_jobs", "load_job"):
        monkeypatch.setattr(world.jobs, name, raise_it)


def client_error(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": f"<b>{code}</b>"}}, "Query")


@pytest.mark.parametrize(
    ("target", "status", "text"),
    [
        ("/", 200, "machines cost $"),
        ("/?state=open", 200, "launching-5e07"),
        ("/?state=failed&state=cancelled", 200, "cancelled-9d1c"),
        ("/?definition=none", 200, "No job is open that matches"),
        ("/?state=gone", 400, "the states are WAITING"),
        ("/?since=soon", 400, "give one like 30m, 12h or 7d"),
        ("/?since=" + "9" * 500 + "d", 400, "since"),
        ("/?cursor=%27--", 502, "is no cursor of a list of jobs"),
        ("/jobs/failed-1f2e", 200, "exit code 1 three times"),
        ("/jobs/failed", 303, ""),
        ("/jobs/", 404, "There is no such page"),
        ("/jobs/nothing", 404, "there is no job"),
        ("/jobs/nothing/log", 404, "there is no job"),
        ("/jobs/nothing/cancel", 404, "there is no job"),
        ("/jobs/failed-1f2e/retry", 200, "Retry the job"),
        ("/jobs/failed-1f2e/delete", 404, "There is no such page"),
        ("/definitions", 200, "bert"),
        ("/definitions/bert/submit", 200, 'name="input-epochs"'),
        ("/definitions/brt/submit", 404, "did you mean bert?"),
        ("/assets/style.css", 200, ":root"),
        ("/assets/icon.svg", 200, "<svg"),
        ("/assets/..%2Fapplication.py", 404, "There is no such page"),
        ("/" + quote(HOSTILE + BIDI, safe=""), 404, "There is no such page"),
        ("//[/", 404, "There is no such page"),
        ("http://[", 404, "There is no such page"),
    ],
)
def test_a_page(pages: Pages, target: str, status: int, text: str) -> None:
    answer = pages.get(target)

    assert answer.status == status
    assert text in answer.body.decode()
    assert b"<img src=x" not in answer.body
    assert "\u202e" not in answer.body.decode()


def test_the_beginning_of_an_id_leads_to_the_job(pages: Pages) -> None:
    assert pages.get("/jobs/failed").headers["Location"] == "/jobs/failed-1f2e"


def test_a_page_follows_what_is_opened_with_the_token_and_no_other(pages: Pages) -> None:
    entry = pages.get("/?token=t0ken", cookie="", sec_fetch_site="cross-site")

    assert entry.headers == {"Set-Cookie": GUARD.cookie}
    assert b'content="0; url=/"' in entry.body
    refused = pages.get("/?token=other&note=Call+us", cookie="")
    assert (refused.status, refused.headers) == (403, {})


@pytest.mark.parametrize("headers", [{"cookie": ""}, {"sec_fetch_site": "cross-site"}, {"host": "attacker.example"}])
def test_who_is_not_let_in_learns_nothing(pages: Pages, headers: dict[str, str]) -> None:
    answers = [
        pages.get(f"{path}?note=Call+us", **headers)
        for path in ("/", "/jobs/failed-1f2e", "/nothing", "/assets/page.js")
    ]

    assert {each.status for each in answers} == {403}
    assert len({each.body for each in answers}) == 1
    assert b"Call us" not in answers[0].body
    assert b"relaunch</span>" not in answers[0].body


def test_an_address_puts_no_words_into_the_page_unless_a_form_led_to_it(pages: Pages) -> None:
    assert "Call us" in pages.text("/?note=Call+us")
    assert "Call us" not in pages.text("/?note=Call+us", sec_fetch_site="none")


def test_values_of_jobs_are_text(pages: Pages, world: DashboardWorld) -> None:
    page = pages.text(f"/jobs/{world.hostile}")

    assert "&lt;script&gt;" in page
    assert "<script>document" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert not {"\u202e", "\u2066", "\x1b"} & set(page)
    assert "x" * 20_000 in page


def test_the_log_is_json_after_a_line(pages: Pages, world: DashboardWorld) -> None:
    answer = pages.get(f"/jobs/{world.running}/log?after=1")

    assert answer.content_type == "application/json"
    lines = json.loads(answer.body)["lines"]
    assert lines[0]["text"].startswith("relaunch: step=4000")
    assert HOSTILE in lines[1]["text"]
    for after in ("", "x", "-1", "²", "9" * 40):
        assert len(json.loads(pages.get(f"/jobs/{world.running}/log?after={quote(after)}").body)["lines"]) == 4


def test_forms_do_what_they_say_and_lead_to_the_job(pages: Pages) -> None:
    submitted = pages.post("/definitions/bert/submit", **{"input-epochs": "3", "input-seed": ""})
    assert submitted.status == 303
    job_id = submitted.headers["Location"].removeprefix("/jobs/").removesuffix("?note=submitted")
    assert pages.world.jobs.job(job_id).inputs == {"epochs": "3", "seed": ""}

    cancelled = pages.post(f"/jobs/{job_id}/cancel", reason=HOSTILE)
    assert cancelled.headers["Location"] == f"/jobs/{job_id}?note=it+is+CANCELLED"
    retried = pages.post(f"/jobs/{job_id}/retry")
    assert (retried.status, pages.post(f"/jobs/{job_id}/retry").headers) == (303, retried.headers)
    assert pages.post("/jobs/nothing").status == 404
    assert pages.post("/definitions/bert/submit", key="", **{"input-epochs": "3"}).status == 400


def test_a_form_without_its_secret_does_nothing(pages: Pages) -> None:
    assert pages.post("/jobs/wait-budget/cancel", **{FORM_FIELD: "other"}).status == 403
    assert pages.world.jobs.job("wait-budget").state == "WAITING"


def test_what_a_form_changed_is_seen_at_once(pages: Pages) -> None:
    assert "wait-capacity" in pages.text("/?state=waiting")
    pages.post("/jobs/wait-capacity/cancel")

    assert "wait-capacity" not in pages.text("/?state=waiting")


@pytest.mark.parametrize(
    "answered",
    [
        (client_error("ThrottlingException"), 503, ["AWS throttles Query", "try again in a minute"]),
        (client_error("AccessDeniedException"), 502, ["AWS denies Query", "ask for permission to call Query"]),
        (client_error("ExpiredTokenException"), 502, ["does not accept the credentials", "aws sso login"]),
        (client_error("ResourceNotFoundException"), 404, ["check the stack, the region and the account"]),
        (NoCredentialsError(), 502, ["no AWS credentials"]),
        (TransientError("DynamoDB is away"), 503, ["DynamoDB is away", "try again"]),
    ],
)
@pytest.mark.parametrize("target", ["/", "/jobs/failed-1f2e", "/jobs/failed-1f2e/log"])
def test_an_error_of_aws_is_a_page_that_says_what_to_do(
    pages: Pages, monkeypatch, capfd, target: str, answered: tuple[Exception, int, list[str]]
) -> None:
    error, status, texts = answered
    fail(error, monkeypatch, pages.world)
    answer = pages.get(target)

    assert answer.status == status
    assert all(text in answer.body.decode() for text in texts)
    assert b"<b>" not in answer.body
    assert b"Traceback" not in answer.body
    assert capfd.readouterr().err == ""


def test_a_bug_is_a_page_without_a_word_of_it_and_is_printed_once(pages: Pages, monkeypatch, capfd) -> None:
    fail(ZeroDivisionError("s3cret"), monkeypatch, pages.world)
    answers = [pages.get("/") for _ in range(3)]

    assert {each.status for each in answers} == {500}
    assert b"a bug of Relaunch" in answers[0].body
    assert b"s3cret" not in answers[0].body
    printed = capfd.readouterr().err
    assert printed.splitlines()[0] == "Traceback (most recent call last):"
    assert printed.splitlines()[-1] == "ZeroDivisionError: s3cret"
    assert printed.count("Traceback") == 1
    monkeypatch.undo()
    assert pages.get("/").status == 200


def test_pages_are_asked_for_in_several_threads(pages: Pages, world: DashboardWorld) -> None:
    targets = [
        "/",
        f"/jobs/{world.running}",
        f"/jobs/{world.running}/log",
        f"/jobs/{world.succeeded}",
        "/definitions",
    ] * 8
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(pages.get, targets))

    assert {each.status for each in answers} == {200}
    logs = {each.body for target, each in zip(targets, answers, strict=True) if target.endswith("/log")}
    assert len(logs) == 1
