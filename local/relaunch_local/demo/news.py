"""Shows what others see of the jobs: GitHub on the commit, and an endpoint that notices are sent to."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.text import Text

from relaunch.adapters.notices.configuration import ReceiverConfiguration, write_configuration
from relaunch_local.demo.outside import Status
from relaunch_local.demo.session import Session
from relaunch_local.internet.github import GITHUB
from relaunch_local.internet.notice_endpoint import ENDPOINT

RECEIVER = "team"
STYLES = {"pending": "yellow", "success": "green", "failure": "red", "error": "red"}


def add_receiver(session: Session) -> None:
    """Add the endpoint to the stack's receivers, as `relaunch notices add` does."""
    url = f"https://{ENDPOINT}/relaunch"
    document = {"kind": "webhook", "url": url, "secret": session.outside.endpoint.secret}
    configuration = ReceiverConfiguration.model_validate(document)
    session.connection.notices.store.save(RECEIVER, write_configuration(configuration), is_new=True)
    session.screen.line(f"relaunch notices add {RECEIVER} --kind webhook: {url}")
    session.screen.note(f"that host and {GITHUB} are served here, by TLS")


def show_news(session: Session) -> None:
    """Show the statuses of the commit and the notices that came since the last time, a line each."""
    statuses = session.outside.read_statuses()
    if statuses and not session.shown_statuses:
        session.screen.note("statuses and notices follow within seconds: they may show what has gone on meanwhile")
    for status in statuses[session.shown_statuses :]:
        session.screen.line(_draw_status(status))
    notices = session.outside.endpoint.taken
    for notice in notices[session.shown_notices :]:
        session.screen.line(_draw_notice(notice))
    session.shown_statuses = len(statuses)
    session.shown_notices = len(notices)


def wait_for_end(session: Session, job_id: str, kind: str) -> None:
    """Wait until the end of a job is at the endpoint, and of the push at GitHub too; show both."""
    if kind == "push":
        session.expect("GitHub shows the end", partial(_end_status, session, job_id))
    session.expect("the endpoint gets the end", partial(_end_notice, session, job_id))
    show_news(session)


def _end_status(session: Session, job_id: str) -> Status | None:
    shown = session.outside.read_statuses()[-1:]
    return next((each for each in shown if each["state"] == "success" and job_id in each["description"]), None)


def _end_notice(session: Session, job_id: str) -> Mapping[str, Any] | None:
    ends = (each for each in session.outside.endpoint.taken if each["data"]["kind"] == "finished")
    return next((each for each in ends if each["data"]["event"]["job_id"] == job_id), None)


def _draw_status(status: Status) -> Text:
    shown = Text("GitHub ● ", style=STYLES[status["state"]])
    return Text.assemble(shown, f"{status['context']} {status['state']}: {status['description']}")


def _draw_notice(notice: Mapping[str, Any]) -> Text:
    data = notice["data"]
    reason = f": {data['reason']}" if data["reason"] else ""
    return Text.assemble(Text("notice ● ", style="magenta"), f"{data['title']}{reason}")
