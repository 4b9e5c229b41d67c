"""Notices with which people try a receiver out, `relaunch notices test`: events as real ones are, which say so."""

import json
import random
from datetime import datetime, timedelta

from relaunch.adapters.messages.job_change import write_detail
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.samples import sample_notice
from relaunch.core.notices.text import write_text
from relaunch_local.simulation.checks.job_events import published_schema
from relaunch_local.simulation.checks.record import Check

# Of a machine, by docs/events.md: what tells EC2's purchase options apart.
_PURCHASES = frozenset({"spot", "on-demand", "reserved"})


def ask_for_test(check: Check, dice: random.Random, now: datetime) -> None:
    """Check a test notice of each kind, and that of a second test a while later."""
    for number, kind in enumerate(NoticeKind, 1):
        try:
            notice = sample_notice(kind, number, now)
            problem = _problem_of(notice, now)
            later = sample_notice(kind, number, now + timedelta(seconds=dice.randint(1, 600)))
            is_new = later.event.id != notice.event.id
        except Exception as error:  # noqa: BLE001 - whatever it is, the receiver gets nothing
            problem = repr(error)
            is_new = True
        check("a receiver that is tried out gets an event as real ones are", not problem, f"{kind}: {problem}")
        check("a receiver that is tried out twice gets two events", is_new, str(kind))


def _problem_of(notice: Notice, now: datetime) -> str:
    """Return what a receiver could not make sense of; empty if it can."""
    detail = json.loads(write_detail(notice.event))
    problems = [each.message for each in published_schema().iter_errors(detail)]
    if problems:
        return problems[0]
    if detail["machine"]["purchase"] not in _PURCHASES:
        return f"no purchase option: {detail['machine']['purchase']}"
    if not (detail.get("attempt") == 1 and notice.is_test and notice.first_at and notice.first_at <= now):
        return f"no first attempt, or no test: {detail}"
    if notice.all_interruptions != len(notice.interruptions) or not notice.interruptions:
        return f"{notice.all_interruptions} interruptions: {notice.interruptions}"
    return "" if "test" in write_text(notice).plain.lower() else "it does not say that it is a test"
