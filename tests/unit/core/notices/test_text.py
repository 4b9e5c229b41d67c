"""The words of notices."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from fakes.notices import make_event, make_machine
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.change_events import EventCost, EventProgress
from relaunch.core.notices.notice import Interruption, Notice
from relaunch.core.notices.text import write_text, write_usd


def notice(kind: NoticeKind | None, state: JobState = JobState.RUNNING, **members: Any) -> Notice:
    return Notice(kind=kind, event=make_event(3, state=state, **members), reason="why\n it is")


def interruptions(count: int) -> tuple[Interruption, ...]:
    return tuple(Interruption(each, NOW + timedelta(minutes=each)) for each in range(count))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (notice(NoticeKind.STARTED), "has started"),
        (notice(NoticeKind.STARTED, attempt=2), "runs again"),
        (
            replace(notice(NoticeKind.STARTED, attempt=3), interruptions=interruptions(2)),
            "runs again, interrupted 2 times since 2026-03-14 09:26 UTC",
        ),
        (notice(NoticeKind.INTERRUPTED), "was interrupted"),
        (
            replace(notice(NoticeKind.INTERRUPTED), interruptions=interruptions(2)),
            "was interrupted 2 times since 2026-03-14 09:26 UTC",
        ),
        (notice(NoticeKind.WAITS_TOO_LONG, JobState.WAITING), "has waited since 2026-03-14 09:29 UTC"),
        (notice(NoticeKind.FINISHED, JobState.SUCCEEDED), "has finished"),
        (notice(NoticeKind.FINISHED, JobState.CANCELLED), "was cancelled"),
        (notice(NoticeKind.FAILED, JobState.FAILED), "has failed"),
        (notice(NoticeKind.FAILED, JobState.TIMED_OUT), "ran out of time"),
        (notice(NoticeKind.BUDGET), "is over its budget"),
        (notice(NoticeKind.STALE_CHECKPOINT), "has saved nothing for long"),
        (notice(None), "is RUNNING"),
    ],
)
def test_the_title_says_what_happened(said: Notice, words: str) -> None:
    assert write_text(said).title == f"resnet-1f2e3d4c {words}"


def test_all_that_is_known_is_there_in_one_text() -> None:
    said = replace(
        notice(
            NoticeKind.FAILED,
            JobState.FAILED,
            attempt=2,
            machine=make_machine(instance_id="i-0a1b"),
            progress=EventProgress(step=1200, total_steps=2000, saved_step=1900, saved_at=NOW),
            cost=EventCost(usd=1.236, basis=CostBasis.LIMIT),
            checkpoints="s3://models/resnet-1f2e3d4c/",
        ),
        page_url="https://jobs.example.com/resnet-1f2e3d4c",
        all_interruptions=1,
        first_at=NOW - timedelta(hours=2),
    )

    assert write_text(said).plain == (
        "resnet-1f2e3d4c has failed\n"
        "why it is\n"
        "What to do: see why, by the job and its logs, and start it again by a retry.\n"
        "Definition: resnet\n"
        "Started by: push\n"
        "Attempt: 2\n"
        "Machine: g5.xlarge, spot, us-east-1a, i-0a1b\n"
        "Resumed from: step 1200 of 2000\n"
        "Saved: step 1900 of 2000, at 2026-03-14 09:26 UTC\n"
        "Interruptions: 1\n"
        "Cost so far: at most 1.24 USD\n"
        "Time so far: 2h3m\n"
        "Checkpoints and results: s3://models/resnet-1f2e3d4c/\n"
        "At: 2026-03-14 09:29 UTC\n"
        "https://jobs.example.com/resnet-1f2e3d4c\n"
        "relaunch explain resnet-1f2e3d4c\n"
        "relaunch logs resnet-1f2e3d4c\n"
        "relaunch retry resnet-1f2e3d4c"
    )


def test_a_training_that_hangs_is_named_with_what_to_do() -> None:
    progress = EventProgress(step=0, saved_step=120, saved_at=NOW, stalled_since=NOW)
    text = write_text(notice(NoticeKind.STALE_CHECKPOINT, progress=progress))

    assert text.advice.startswith("What to do: see what it does, by its logs; it runs and is paid for")
    assert text.commands == ("relaunch explain resnet-1f2e3d4c", "relaunch logs resnet-1f2e3d4c")
    assert dict(text.facts)["Saved"] == "step 120, at 2026-03-14 09:26 UTC"
    assert "Resumed from" not in dict(text.facts)


def test_what_is_not_known_is_left_out() -> None:
    text = write_text(replace(notice(NoticeKind.STARTED, progress=EventProgress(step=7)), reason="", first_at=NOW))

    assert dict(text.facts) == {
        "Definition": "resnet",
        "Started by": "push",
        "Resumed from": "step 7",
        "Cost so far": "0.25 USD",
        "Time so far": "3m",
        "At": "2026-03-14 09:29 UTC",
    }
    assert text.lines[0] == "Definition: resnet"
    assert text.commands == ("relaunch explain resnet-1f2e3d4c",)


@pytest.mark.parametrize(
    ("seconds", "state", "shown"),
    [(59, JobState.RUNNING, {}), (60, JobState.SUCCEEDED, {"Time so far": "1m"})],
)
def test_of_a_short_time_and_of_results_that_do_not_exist_nothing_is_said(
    seconds: float, state: JobState, shown: dict[str, str]
) -> None:
    members = {"state": state, "progress": EventProgress(step=0, saved_step=7)}
    event = make_event(3, **members, checkpoints="s3://models/" if state is JobState.RUNNING else None)
    said = Notice(kind=None, event=event, first_at=event.time - timedelta(seconds=seconds))

    facts = dict(write_text(said).facts)

    assert {
        name: value for name, value in facts.items() if name not in ("Definition", "Started by", "Cost so far", "At")
    } == shown


@pytest.mark.parametrize(
    ("usd", "cost"),
    [(0.0, "unknown, for nothing of it has a known price"), (0.25, "0.25 USD, and what has no known price")],
)
def test_a_cost_without_a_price_says_so_and_a_test_too(usd: float, cost: str) -> None:
    said = replace(notice(NoticeKind.STARTED, cost=EventCost(usd=usd, basis=CostBasis.UNKNOWN)), is_test=True)

    text = write_text(said)
    assert dict(text.facts)["Cost so far"] == cost
    assert text.title.startswith("Test: ")


def test_the_longest_text_is_one_that_every_service_takes() -> None:
    said = replace(notice(NoticeKind.FAILED, JobState.FAILED, machine=make_machine()), reason="x" * 5_000)

    assert len(write_text(said).plain) < 1_500


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (notice(NoticeKind.STARTED), ""),
        (
            notice(NoticeKind.INTERRUPTED),
            "Nothing to do: it is started again, from its beginning, for its definition has no checkpoint.",
        ),
        (
            notice(NoticeKind.INTERRUPTED, checkpoints="s3://models/"),
            "Nothing to do: it is started again, from its newest checkpoint if it has saved one.",
        ),
        (
            notice(NoticeKind.WAITS_TOO_LONG, JobState.WAITING),
            "It goes on waiting by itself; relaunch explain says what for.",
        ),
        (notice(NoticeKind.FINISHED, JobState.SUCCEEDED), ""),
    ],
)
def test_it_says_what_comes_next(said: Notice, words: str) -> None:
    assert write_text(said).advice == words


@pytest.mark.parametrize(
    ("usd", "shown"), [(0.0, "0.00 USD"), (0.002, "less than 0.01 USD"), (0.005, "0.01 USD"), (1.236, "1.24 USD")]
)
def test_what_costs_something_is_not_shown_as_nothing(usd: float, shown: str) -> None:
    assert write_usd(usd) == shown
