import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from fakes.builders import make_job
from relaunch.core.jobs.state import JobState
from relaunch.ports import JobHistory
from relaunch_local.demo.news import show_news
from relaunch_local.demo.recorder import Recorder
from relaunch_local.demo.screen import Screen
from relaunch_local.demo.session import Session, UnmetExpectationError


def make_session(history: JobHistory | None = None, timeout_seconds: float = 0.0) -> Session:
    connection: Any = SimpleNamespace(deps=SimpleNamespace(jobs=SimpleNamespace(load_history=lambda _job_id: history)))
    local: Any = None
    outside: Any = None
    screen = Screen(Console(file=io.StringIO()))
    return Session(local, connection, screen, Recorder(list), timeout_seconds, outside)


def test_it_says_once_that_statuses_follow_what_they_are_about() -> None:
    session = make_session()
    statuses: list[dict[str, str]] = []
    endpoint = SimpleNamespace(taken=[])
    session.outside = SimpleNamespace(read_statuses=lambda: statuses, endpoint=endpoint)  # type: ignore[assignment]
    for state in ("", "pending", "success"):
        statuses += [{"state": state, "context": "relaunch/demo", "description": "queued"}] if state else []
        show_news(session)

    shown: Any = session.screen.console.file
    assert shown.getvalue().count("statuses and notices follow within seconds") == 1
    assert shown.getvalue().index("follow within seconds") < shown.getvalue().index("pending")


class TestExpect:
    def test_what_comes_is_returned(self) -> None:
        looks = iter([None, "value"])

        assert make_session(timeout_seconds=5).expect("something", lambda: next(looks)) == "value"

    def test_what_does_not_come_in_time_is_named(self) -> None:
        with pytest.raises(UnmetExpectationError, match=r"^not within 0 s: a unicorn$"):
            make_session().expect("a unicorn", lambda: None)

    def test_a_job_that_is_over_gives_no_more_hope(self) -> None:
        job = make_job("demo-1", state=JobState.FAILED, reason="exit code 1")
        session = make_session(JobHistory(job, (), (), ()), timeout_seconds=60)

        with pytest.raises(UnmetExpectationError, match=r"demo-1 is FAILED \(exit code 1\) before this: it runs"):
            session.expect_job("demo-1", "it runs", lambda _history: None)

    def test_a_job_that_is_not_there_yet_may_come(self) -> None:
        with pytest.raises(UnmetExpectationError, match="not within"):
            make_session().expect_job("demo-1", "it runs", lambda _history: None)

    def test_what_must_be_true_by_now_is_insisted_on(self) -> None:
        session = make_session()
        session.require(is_true=True, what="two and two are four")

        with pytest.raises(UnmetExpectationError, match="two and two are five"):
            session.require(is_true=False, what="two and two are five")
