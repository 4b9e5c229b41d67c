"""Attacks on `relaunch dashboard`: other pages and programs that ask it, and values of jobs that would be its HTML."""

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from html.parser import HTMLParser
from itertools import product
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlencode

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Attempt as TaskAttempt
from relaunch.core.jobs.attempt import Placement, PlacementState
from relaunch.core.jobs.job import Job, TimelineEntry
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.jobs.trigger_facts import TriggerFacts
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.revisions.revision import Revision
from relaunch.ports import Dependencies
from relaunch_cli.dashboard.application import Dashboard
from relaunch_cli.dashboard.guard import FORM_FIELD, Guard
from relaunch_cli.dashboard.http_messages import Request
from relaunch_cli.job_logs import LogDestination, Tail
from relaunch_cli.log_positions import LogEvent
from relaunch_local.attack.attempts import Attempt, attempt
from relaunch_local.attack.stack import DEFINITION, AttackedStack
from relaunch_local.in_memory.jobs import InMemoryJobs

if TYPE_CHECKING:
    from relaunch_cli.aws.connected import Connection

_AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
_PORT = 8765
_OWN = f"http://127.0.0.1:{_PORT}"
_OPEN_JOB = "resnet-0pen0pen0pen"
_HOSTS = (
    *(f"127.0.0.1:{_PORT}", f"localhost:{_PORT}", "127.0.0.1", f"127.0.0.1:{_PORT + 1}", f"attacker.example:{_PORT}"),
    *(f"127.0.0.1.attacker.example:{_PORT}", f"localhost.:{_PORT}", f"0.0.0.0:{_PORT}", f"[::1]:{_PORT}", ""),
)
_PAGES: tuple[Mapping[str, str], ...] = (
    {},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": "same-origin", "origin": _OWN},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site"},
    {"origin": "null"},
    {"origin": f"http://127.0.0.1:{_PORT + 1}"},
    {"origin": "https://attacker.example"},
)
_OF_ITSELF = _PAGES[:3]
_TARGETS = (
    "/",
    f"/jobs/{_OPEN_JOB}",
    f"/jobs/{_OPEN_JOB}/log",
    f"/definitions/{DEFINITION.name}/submit",
    "/assets/page.js",
)
_FORMS = (f"/jobs/{_OPEN_JOB}/cancel", f"/definitions/{DEFINITION.name}/submit", f"/jobs/{_OPEN_JOB}/retry")

_PARTS = (
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "'\"><svg/onload=alert(1)>",
        "</title><script>",
        "-->",
    ),
    *(
        "javascript:alert(1)",
        "data:text/html,<script>",
        "//attacker.example/",
        'https://a" onclick="x',
        "{{7*7}}",
        "{% x %}",
    ),
    *(
        "&lt;b&gt;",
        "&#x3c;b>",
        "</textarea>",
        "<!--",
        "]]>",
        "\u202e",
        "\u2066",
        "\u2028",
        "\x00",
        "\x1b[31m",
        "\r\n\r\n",
    ),
    *("\ud800", "a", " ", "'", '"', "=", "`", "\\", "é", "%3Cscript%3E", "x" * 100_000),
)
_TAGS = frozenset(
    (
        *("html", "head", "meta", "title", "link", "script", "body", "header", "nav", "main", "section", "footer"),
        *("a", "p", "h1", "h2", "h3", "div", "span", "small", "ul", "li", "dl", "dt", "dd", "code", "time", "noscript"),
        *(
            "form",
            "label",
            "input",
            "select",
            "option",
            "button",
            "progress",
            "details",
            "summary",
            "figure",
            "figcaption",
        ),
        *(
            "table",
            "caption",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "svg",
            "g",
            "line",
            "path",
            "polyline",
            "rect",
            "circle",
        ),
        *("text", "desc", "defs", "pattern", "strong"),
    )
)
_UNSAFE = frozenset("\x00\x1b\u202e\u2066\u2028\r\ud800")


class _Logs:
    """The log of every task: one line."""

    line = ""

    def destination(self, revision_arn: str, container: str) -> LogDestination:
        return LogDestination(revision_arn, container)

    def read(self, *_: object, **__: object) -> tuple[list[LogEvent], str | None]:
        return [], None

    def tail(self, *_: object, **__: object) -> Tail:
        return Tail([LogEvent(_AT, self.line)], None)

    def kept_for(self, _destination: LogDestination) -> timedelta | None:
        return None


@dataclass
class _Connected:
    """What the dashboard needs of a connection."""

    deps: Dependencies
    logs: _Logs
    caller: str = "arn:aws:iam::111122223333:user/ada"

    @property
    def jobs(self) -> Any:
        return self.deps.jobs

    @property
    def pod_logs(self) -> _Logs:
        return self.logs

    def now(self) -> datetime:
        return _AT


class _Attacked:
    """A dashboard with an open job."""

    def __init__(self) -> None:
        self.jobs = InMemoryJobs()
        self.logs = _Logs()
        self.guard = Guard(_PORT)
        deps = replace(AttackedStack().deps, jobs=self.jobs)
        connection = cast("Connection", _Connected(deps, self.logs))
        self._dashboard = Dashboard(connection, self.guard, "relaunch")
        self.jobs.create_job(_job(_OPEN_JOB, state=JobState.WAITING, wake_at=_AT), ())

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> tuple[int, str]:
        answer = self._dashboard.answer(Request(method, target, list(headers.items()), body))
        return answer.status, answer.body.decode()

    def cookies(self) -> Mapping[str, str]:
        name, _, token = self.guard.cookie.partition(";")[0].partition("=")
        other = f"{name.removesuffix(str(_PORT))}{_PORT + 1}"
        return {
            "no cookie": "",
            "a guessed token": f"{name}=guessed",
            "the token of another port": f"{other}={token}",
            "the name alone": name,
            "its own cookie": f"{name}={token}",
        }

    def state(self) -> tuple[int, str]:
        job = self.jobs.job(_OPEN_JOB)
        return len(self.jobs.load_open(100)), f"{job.state} {job.cancel_requested}"


def _job(job_id: str, **fields: Any) -> Job:
    revision = Revision("arn:aws:ecs:r:1:task-definition/t:1", "t", 1, ())
    return replace(Job(job_id, DEFINITION, TriggerFacts("direct", "direct:x", "x"), revision, _AT), **fields)


def _attempt(value: str) -> TaskAttempt:
    offering = OfferingKey("g5.xlarge", value, PurchaseOption.SPOT)
    placement = Placement(1, offering, value, 0.4, _AT, resume_uri=value, state=PlacementState.PLACED, task_id="t/1")
    return TaskAttempt(1, placement, task_status=value, instance_id=value, zone=value, started_at=_AT)


def other_pages(_dice: random.Random, _count: int) -> Iterator[Attempt]:
    """Ask for every page, and send every form, with every host, page and cookie; only its own get through."""
    attacked = _Attacked()
    for target, host, page, (what, cookie) in product(_TARGETS, _HOSTS, _PAGES, attacked.cookies().items()):
        is_own = host in _HOSTS[:2] and _is_of(page, host) and what == "its own cookie"
        headers = {"host": host, "cookie": cookie, **page}
        yield attempt(f"GET {target}, {headers}", partial(_read, attacked, target, headers, is_own=is_own))
    for target, host, page, (what, cookie) in product(_FORMS, _HOSTS, _PAGES, attacked.cookies().items()):
        for secret in ("", "guessed", attacked.guard.token):
            headers = {"host": host, "cookie": cookie, **page}
            yield attempt(f"POST {target} as {what}, {headers}", partial(_send, attacked, target, headers, secret))
    for host, page in product(_HOSTS, _PAGES):
        for token in ("", "guessed", attacked.guard.form_token, attacked.guard.token[:-1]):
            headers = {"host": host, **page}
            yield attempt(
                f"the token {token[:7]}, {headers}", partial(_read, attacked, f"/?token={token}", headers, is_own=False)
            )


def _is_of(page: Mapping[str, str], host: str) -> bool:
    return (
        page in _OF_ITSELF
        and page.get("origin", _OWN) in {_OWN, f"http://{host}"}
        and ("origin" not in page or page["origin"] == f"http://{host}")
    )


def _read(attacked: _Attacked, target: str, headers: Mapping[str, str], *, is_own: bool) -> str | None:
    status, body = attacked.ask("GET", target, headers)
    if is_own:
        return None if status == 200 else f"its own page was answered {status}"
    said = [
        each for each in (_OPEN_JOB, DEFINITION.name, attacked.guard.token, attacked.guard.form_token) if each in body
    ]
    return None if status == 403 and not said else f"was answered {status} with {said}"


def _send(attacked: _Attacked, target: str, headers: Mapping[str, str], secret: str) -> str | None:
    before = attacked.state()
    body = urlencode({FORM_FIELD: secret, "key": "k", "input-epochs": "3"}).encode()
    status, _ = attacked.ask("POST", target, headers, body)
    return None if status == 403 and attacked.state() == before else f"was answered {status}, and is {attacked.state()}"


def hostile_values(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Show jobs whose every value is chosen by an attacker: none of it is HTML, leads anywhere or hides anything."""
    attacked = _Attacked()
    for number in range(min(count, 150)):
        value = "".join(dice.choices(_PARTS, k=dice.randint(1, 6)))
        yield attempt(f"{number}: {value[:60]!a}", partial(_show, attacked, f"hostile-{number}", value))


def _show(attacked: _Attacked, job_id: str, value: str) -> str | None:
    final = len(value) % 2 == 0
    name = value.encode(errors="replace").decode()
    job = _job(
        job_id,
        definition=replace(
            DEFINITION,
            name=name,
            container="main",
            links={value: value, "a": f"https://{value}", "b": f"javascript:{value}"},
        ),
        trigger=TriggerFacts("s3", f"s3:{value}", value, {}, value, value),
        inputs={value: value},
        reason=value,
        image=(value, value),
        attempt=_attempt(value),
        state=JobState.FAILED if final else JobState.WAITING,
        waiting=None if final else Waiting(WaitReason.REFUSED, _AT, value),
        ended_at=_AT if final else None,
        wake_at=None if final else _AT,
    )
    attacked.jobs.create_job(job, (TimelineEntry(_AT, job.state, "accepted", value),))
    attacked.logs.line = value
    cookie = attacked.cookies()["its own cookie"]
    headers = {"host": f"127.0.0.1:{_PORT}", "cookie": cookie, "sec-fetch-site": "same-origin"}
    given = quote(value.encode(errors="replace")[:20_000])
    targets = (
        f"/jobs/{job_id}",
        f"/?definition={given}&note={given}",
        f"/jobs/{job_id}/{'retry' if final else 'cancel'}",
    )
    for target in (*targets, f"/{given}", f"/?state={given}", f"/jobs/{given}", f"/definitions/{given}/submit"):
        status, body = attacked.ask("GET", target, headers)
        found = "is a bug" if status == 500 else _find_foreign(body)
        if found:
            return f"{target[:60]}: {found}"
    _, log = attacked.ask("GET", f"/jobs/{job_id}/log", headers)
    attacked.jobs._records.pop(job_id)  # noqa: SLF001 - a list of hundreds would say the same again
    lines = [each["text"] for each in json.loads(log)["lines"]]
    unsafe = _UNSAFE & set("".join(lines))
    return f"the log has {len(lines)} lines, and {unsafe}" if unsafe or not lines else None


def _find_foreign(body: str) -> str | None:
    """Return what a page has that is none of its templates', None if there is nothing."""
    page = _Page()
    page.feed(body)
    page.close()
    unsafe = _UNSAFE & set(body)
    return page.foreign or (f"it has {unsafe}" if unsafe else None)


class _Page(HTMLParser):
    foreign: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in _TAGS or (tag == "script" and given != {"src": "/assets/page.js", "defer": ""}):
            self.foreign = f"<{tag} {given}>"
        for name, value in given.items():
            if name.startswith("on") or name in {"style", "srcdoc", "formaction"}:
                self.foreign = f"<{tag} {name}>"
            if name in {"href", "src", "action"} and not _is_safe(value):
                self.foreign = f"{name} {value[:80]}"


def _is_safe(link: str) -> bool:
    return link.startswith(("https://", "#")) or (link.startswith("/") and not link.startswith(("//", "/\\")))
