"""Which jobs a list shows, and how many reads that costs."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job
from fakes.clock import FakeClock
from relaunch.core.jobs.state import JobState
from relaunch.ports import PermanentError
from relaunch_cli.dashboard.job_lists import PAGE, JobFilter, JobLists
from relaunch_cli.dashboard.kept import Kept
from relaunch_local.in_memory.jobs import InMemoryJobs

FAILED = frozenset({"FAILED"})


class Lists:
    """Jobs that were accepted a minute apart, the newest last; `reads` are the calls of the store."""

    def __init__(self, *states: JobState) -> None:
        self.clock = FakeClock()
        self.jobs = InMemoryJobs()
        self.reads: list[str] = []
        for number, state in enumerate(states):
            self.add(f"job-{number:04}", state, number)
        for name in ("list_jobs", "load_open", "load_job"):
            setattr(self.jobs, name, self._counted(name, getattr(self.jobs, name)))
        self.lists = JobLists(self.jobs, Kept(self.clock.now))

    def add(self, job_id: str, state: JobState, minute: int) -> None:
        ended = NOW if state is JobState.FAILED else None
        definition = make_definition(name=f"d{minute % 100}")
        accepted = NOW + timedelta(minutes=minute)
        self.jobs.create_job(
            make_job(
                job_id,
                state=state,
                ended_at=ended,
                accepted_at=accepted,
                definition=definition,
                wake_at=None if ended else NOW,
            ),
            (),
        )

    def _counted(self, name, call):
        def counted(*arguments):
            self.reads.append(name)
            return call(*arguments)

        return counted

    def load(self, **wanted) -> Sequence[str]:
        self.page = self.lists.load(JobFilter(**wanted))
        return [job.job_id for job in self.page.jobs]


def test_the_first_page_has_all_open_jobs_however_old() -> None:
    lists = Lists(JobState.WAITING, JobState.RUNNING, *[JobState.FAILED] * 3 * PAGE)

    found = lists.load()

    assert len(found) == PAGE + 2
    assert found[-2:] == ["job-0001", "job-0000"]
    assert lists.reads == ["list_jobs", "load_open", "load_job", "load_job"]
    following = lists.load(cursor=lists.page.cursor)
    assert len(following) == PAGE
    assert not set(following) & set(found)


def test_a_second_look_within_seconds_reads_nothing() -> None:
    lists = Lists(JobState.WAITING, *[JobState.FAILED] * 2 * PAGE)
    lists.load()
    lists.reads.clear()

    lists.load()
    assert lists.reads == []
    lists.clock.advance(5)
    lists.load()
    # The old open job may be 15 seconds old.
    assert lists.reads == ["list_jobs", "load_open"]


def test_more_open_jobs_than_are_read_one_by_one_are_counted() -> None:
    lists = Lists(*[JobState.WAITING] * 120, *[JobState.FAILED] * PAGE)

    assert len(lists.load()) == 2 * PAGE
    assert lists.page.left_open == 70
    assert lists.reads.count("load_job") == 50


@pytest.mark.parametrize(
    ("wanted", "reads"),
    [
        ({"states": frozenset({"WAITING"})}, 1),  # no page of ended jobs
        ({"states": FAILED, "definition": "none"}, 6),  # as far as one look goes
        ({"states": FAILED, "definition": "d7"}, 6),
        ({"after": NOW + timedelta(minutes=390)}, 1),
        ({"after": NOW + timedelta(minutes=310)}, 1),
    ],
)
def test_a_filter_reads_no_more_pages_than_it_may(wanted, reads: int) -> None:
    lists = Lists(*[JobState.FAILED] * 400)

    lists.load(**wanted)

    assert lists.reads.count("list_jobs") == reads


def test_what_matches_little_goes_on_where_the_look_ended() -> None:
    lists = Lists(*[JobState.FAILED] * 400)

    assert lists.load(states=FAILED, definition="d7") == ["job-0307", "job-0207", "job-0107"]
    assert lists.page.has_read == 6 * PAGE
    assert lists.load(states=FAILED, definition="d7", cursor=lists.page.cursor) == ["job-0007"]
    assert lists.page.cursor is None


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ({}, True),
        ({"states": frozenset({"WAITING"})}, True),
        ({"states": FAILED}, False),
        ({"definition": "d0"}, True),
        ({"definition": "d"}, False),
        ({"repository": "ACME/vision"}, True),
        ({"repository": "acme/text"}, False),
        ({"after": NOW}, True),
        ({"after": NOW + timedelta(seconds=1)}, False),
    ],
)
def test_a_filter(wanted, matches: bool) -> None:
    assert bool(Lists(JobState.WAITING).load(**wanted)) is matches


def test_an_open_job_that_ended_since_the_list_was_read_is_left_out() -> None:
    lists = Lists(JobState.WAITING, *[JobState.FAILED] * PAGE)
    record = lists.jobs._records["job-0000"]
    record.job = replace(record.job, state=JobState.CANCELLED, ended_at=NOW)

    assert "job-0000" not in lists.load()


def test_a_cursor_that_is_none_is_an_error_that_says_so() -> None:
    with pytest.raises(PermanentError, match="no cursor"):
        Lists(JobState.WAITING).load(cursor="'--")
