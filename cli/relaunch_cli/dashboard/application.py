"""Answers the requests of the dashboard."""

import json
import traceback
import uuid
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import quote, urlencode

from relaunch_cli import exit_codes
from relaunch_cli.aws.connected import Connection
from relaunch_cli.dashboard import actions
from relaunch_cli.dashboard.guard import FORM_FIELD, Guard, RefusedError
from relaunch_cli.dashboard.http_messages import Request, Response
from relaunch_cli.dashboard.job_lists import JobLists
from relaunch_cli.dashboard.job_reader import JobReader
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.dashboard.pages.job import job_values
from relaunch_cli.dashboard.pages.jobs import job_link, jobs_values, read_filter
from relaunch_cli.dashboard.rendering import ASSETS, read_asset, render, render_file
from relaunch_cli.dashboard.stack_pages import StackPages
from relaunch_cli.errors import CommandError, explain_error
from relaunch_cli.lookup import load_definition, load_job
from relaunch_cli.terminal import echo, log_lines
from relaunch_cli.views.json_output.json_time import json_time

_STATUSES: Mapping[int, int] = {
    exit_codes.NOT_FOUND: 404,
    exit_codes.USAGE: 400,
    exit_codes.REFUSED: 502,
    exit_codes.UNAVAILABLE: 503,
}
_DEFINITION_SECONDS = 60.0
POLL_SECONDS = 5
"""How often a page asks whether anything has changed, while it is looked at."""


class Dashboard:
    """Answers requests with the credentials of whoever runs the command."""

    def __init__(self, connection: Connection, guard: Guard, stack: str, poll_seconds: float = POLL_SECONDS) -> None:
        self._connection = connection
        self._guard = guard
        self._common = {"stack": stack, "poll_seconds": poll_seconds}
        self._kept = Kept(connection.now)
        self._stack = StackPages(connection, self._kept)
        self._bugs: set[tuple[type[Exception], str, int | None]] = set()

    # Connecting takes a second, which nobody waits for who does not look.
    @cached_property
    def _lists(self) -> JobLists:
        return JobLists(self._connection.deps.jobs, self._kept)

    @cached_property
    def _jobs(self) -> JobReader:
        return JobReader(self._connection, self._kept)

    def answer(self, request: Request) -> Response:
        """Return the answer to a request; what goes wrong is a page too, and never a traceback."""
        try:
            if self._guard.is_entry(request):
                # A cookie that is SameSite=Strict is not sent after a redirect from elsewhere: the page itself goes on.
                job_id = request.parameter("job")
                body = render("entry.html", {"link": job_link(quote(job_id, safe="")) if job_id else "/"}).encode()
                return Response(200, body, headers={"Set-Cookie": self._guard.cookie})
            self._guard.check(request)
            return self._route(request)
        except RefusedError as refusal:
            # Whoever was not let in learns nothing of the stack, and sees nothing that an address says.
            return Response(403, render("refused.html", {"why": str(refusal)}).encode())
        except Exception as error:  # noqa: BLE001 - a page that fails ends no command
            return self._problem(error, request)

    def _problem(self, error: Exception, request: Request) -> Response:
        explained = explain_error(error)
        if explained is None:
            self._print_bug(error)
            explained = CommandError(
                "a bug of Relaunch", "its traceback is in the terminal of `relaunch dashboard`", 70
            )
        hint = explained.hint
        if request.method == "POST" and explained.message.startswith("AWS denies"):
            hint = (
                "you may look, and forms need more: whoever has the role OperatorRole may send them (docs/security.md)"
            )
        values = {"title": "That did not work", "message": explained.message, "hint": hint}
        return self._page(_STATUSES.get(explained.exit_code, 500), "problem.html", values, request)

    def _print_bug(self, error: Exception) -> None:
        """Print the traceback of a bug, once: an open page asks again and again."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        known = (type(error), last.filename, last.lineno)
        if known not in self._bugs:
            self._bugs.add(known)
            for line in "".join(traceback.format_exception(error)).splitlines():
                echo(line, err=True, is_whole=True)

    def _route(self, request: Request) -> Response:
        if request.method == "POST":
            return self._post(request)
        found = self._stack.page(request)
        return self._get(request) if found is None else self._page(200, *found, request)

    def _get(self, request: Request) -> Response:  # noqa: PLR0911 - a page each
        match request.path:
            case ():
                return self._list_jobs(request)
            case "jobs", job_id:
                return self._show_job(request, job_id)
            case "jobs", job_id, part:
                return self._get_of_job(request, job_id, part)
            case ("definitions",):
                return self._list_definitions(request)
            case "definitions", name, "submit":
                definition = load_definition(self._connection.deps, name)
                return self._form("submit.html", {"page": "definitions", "definition": definition}, request)
            case "assets", name if name in ASSETS:
                return Response(200, read_asset(name), ASSETS[name])
            case _:
                return self._not_found(request)

    def _get_of_job(self, request: Request, job_id: str, part: str) -> Response:
        match part:
            case "export":
                name, page = self.export_job(job_id)
                disposition = f'attachment; filename="{name}.html"'
                return Response(200, page.encode(), headers={"Content-Disposition": disposition})
            case "log":
                return self._show_log(request, job_id)
            case "cancel" | "retry":
                return self._ask(request, job_id, part)
            case _:
                return self._not_found(request)

    def _post(self, request: Request) -> Response:
        match request.path:
            case "jobs", job_id, "cancel":
                return self._done(job_id, actions.cancel(job_id, request.field("reason"), self._connection))
            case "jobs", job_id, "retry":
                retried = actions.retry(job_id, request.field("key"), self._connection)
                return self._done(retried, f"it goes on where {job_id} ended")
            case "definitions", name, "submit":
                fields = {
                    key: values[0] for key, values in request.form.items() if key.startswith(actions.INPUT_PREFIX)
                }
                given = {key.removeprefix(actions.INPUT_PREFIX): value for key, value in fields.items()}
                return self._done(actions.submit(name, given, request.field("key"), self._connection), "submitted")
            case _:
                return self._not_found(request)

    def _not_found(self, request: Request) -> Response:
        values = {"title": "There is no such page", "message": f"/{'/'.join(request.path)}", "hint": ""}
        return self._page(404, "problem.html", values, request)

    def _page(self, status: int, template: str, values: Mapping[str, object], request: Request) -> Response:
        # What came of a form; another page or program that opens an address puts no words into ours.
        note = request.parameter("note") if request.header("sec-fetch-site") == "same-origin" else ""
        common = {"now": self._connection.now(), "note": note, "page": "", **self._common}
        return Response(status, render(template, {**common, **values}).encode())

    def _form(self, template: str, values: Mapping[str, object], request: Request) -> Response:
        """Return a page with a form that does its work once, however often it is sent."""
        secrets = {"form_field": FORM_FIELD, "form_token": self._guard.form_token, "key": uuid.uuid4().hex}
        return self._page(200, template, {**values, **secrets}, request)

    def _list_jobs(self, request: Request) -> Response:
        now = self._connection.now()
        wanted = read_filter(request, now)
        return self._page(
            200, "jobs.html", {"page": "jobs", **jobs_values(request, self._lists.load(wanted), wanted, now)}, request
        )

    def _show_job(self, request: Request, job_id: str) -> Response:
        view = self._jobs.load(job_id)
        if view.job.job_id != job_id:
            # The beginning of an ID is looked for in lists, once.
            return Response(303, headers={"Location": job_link(quote(view.job.job_id, safe=""))})
        return self._page(
            200, "job.html", {"page": "jobs", "now": view.now, "is_export": False, **job_values(view)}, request
        )

    def export_job(self, given: str) -> tuple[str, str]:
        """Return the ID of a job, and its page as one file that loads nothing.

        Raises:
            CommandError: there is no such job, or there are several.
        """
        view = self._jobs.load(given)
        values = {"now": view.now, "is_export": True, **job_values(view)}
        return view.job.job_id, render_file("job_body.html", values, view.job.job_id)

    def _show_log(self, request: Request, job_id: str) -> Response:
        after = request.parameter("after")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 12 else 0
        found, problem = self._jobs.log_since(job_id, number)
        lines = [
            {"number": number, "attempt": line.attempt_number, "at": json_time(line.at), "text": text}
            for number, line in found
            for text in log_lines(line.message)
        ]
        body = json.dumps({"lines": lines, "problem": problem}).encode()
        return Response(200, body, "application/json")

    def _ask(self, request: Request, job_id: str, action: str) -> Response:
        values = {"page": "jobs", "action": action, "job": load_job(self._connection.deps, job_id)}
        return self._form("ask.html", values, request)

    def _list_definitions(self, request: Request) -> Response:
        load = self._connection.deps.definitions.list_registered
        registered = self._kept.get("definitions", _DEFINITION_SECONDS, load)
        return self._page(200, "definitions.html", {"page": "definitions", "registered": registered}, request)

    def _done(self, job_id: str, note: str) -> Response:
        self._kept.forget()
        return Response(303, headers={"Location": f"{job_link(quote(job_id, safe=''))}?{urlencode({'note': note})}"})
