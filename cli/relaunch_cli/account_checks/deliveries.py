"""Deliveries of GitHub that the webhook could not answer: whether anything asks for them again."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.definitions.definition import GithubTrigger, JobDefinition
from relaunch.ports.deliveries import SweepReport

NAME = "failed deliveries"
_PAGE = "docs/webhook-secrets.md#failed-deliveries"
# A pass comes every half hour, and Lambda tries one for at most as long.
_OVERDUE = timedelta(hours=2)


def watches_github(definitions: Sequence[JobDefinition]) -> bool:
    """Return whether a trigger waits for events of GitHub."""
    return any(isinstance(trigger, GithubTrigger) for each in definitions for trigger in each.triggers)


def without_token() -> Check:
    """Return the check of a stack without a token: whoever wants that redelivers by hand."""
    return is_ok(
        NAME,
        "no token is stored: what the webhook could not answer is lost after three days, unless somebody redelivers it "
        f"from the webhook's page at GitHub; with a token Relaunch asks for it ({_PAGE})",
    )


def check_deliveries(report: SweepReport | None, now: datetime) -> Iterator[Check]:
    """Check the last pass of a stack with a token; None if there was none."""
    if report is None:
        yield unknown(NAME, "there was no pass yet: one comes every half hour", "try again in an hour")
        return
    if now - report.at > _OVERDUE:
        text = f"the last pass was at {report.at:%Y-%m-%d %H:%M} UTC; one comes every half hour"
        yield problem(NAME, text, "relaunch dead-letters list --queue refresh-offerings, and refresh_offerings's log")
        return
    for text in report.problems:
        yield problem(NAME, text, f"{_PAGE} says what the token needs")
    for repository in report.unswept:
        text = f"no webhook of {repository} or its organization was found that delivers to the stack"
        yield unknown(NAME, text, f"deliveries of a GitHub App are redelivered by hand ({_PAGE})")
    if report.interruption:
        yield unknown(NAME, f"the last pass ended early: {report.interruption}", "the next one goes on in half an hour")
    elif not report.problems:
        yield is_ok(NAME, f"the pass at {report.at:%Y-%m-%d %H:%M} UTC asked for {report.redelivered} again")
