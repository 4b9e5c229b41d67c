"""The logs of a job's attempts, as CloudWatch Logs answers: empty pages, and tokens that are always new."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.log_service import FakeLogService
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.runs import JobRuns, Run, RunContainer, RunDefinition, RunJob, RunRevision, RunStop
from relaunch.core.jobs.state import JobState
from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs
from relaunch_cli.job_logs import MOST_EMPTY_PAGES, JobLogs, follow_logs

ARN = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer:7"
DAY = timedelta(days=1)
GONE = "the log of attempt 1 is kept no longer: /ecs/trainer keeps events for 30 days"
CUT = "not read whole: pages in a row had no line, as where lines are far apart, or kept no longer"


class Training:
    """A job whose attempts write into a log group; it runs until `end` is called."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.service = FakeLogService(self.clock)
        self.runs: list[Run] = []
        self.logs = self.reader()

    def reader(self, **fields) -> JobLogs:
        return JobLogs(CloudWatchLogs(self.service), "main", **fields)

    def start(self, *messages: str) -> None:
        number = len(self.runs) + 1
        self.runs.append(Run(number, (f"arn:aws:ecs:us-east-1:1:task/c/{number}",), None))
        self.write(*messages)

    @property
    def stream(self) -> str:
        return f"train/main/{len(self.runs)}"

    def write(self, *messages: str) -> None:
        if messages:
            self.service.write(self.stream, *messages)

    def end(self) -> None:
        self.runs[-1] = self.runs[-1]._replace(stop=RunStop(self.clock.now()))

    @property
    def history(self) -> JobRuns:
        is_over = bool(self.runs) and self.runs[-1].stop is not None
        job = RunJob(
            "resnet-1f2e3d4c",
            JobState.SUCCEEDED if is_over else JobState.RUNNING,
            RunDefinition(Target.ECS, "main"),
            RunRevision(ARN, (RunContainer("main"),)),
            self.runs[-1].stop.at if is_over else None,
        )
        return JobRuns(job, tuple(self.runs))

    def read(self) -> list[str]:
        return [each.message for each in self.logs.read(self.history, self.clock.now())]

    def tail(self, count: int) -> list[str]:
        return [each.message for each in self.logs.tail(self.history, count, self.clock.now())]

    def notes(self, *, is_followed: bool = False) -> list[str]:
        return self.logs.notes(self.clock.now(), is_followed=is_followed)


@pytest.fixture
def training() -> Training:
    return Training()


@pytest.fixture
def expired(training: Training) -> Training:
    """Return a training of 40 days ago, whose log is kept for 30."""
    training.start("a")
    training.clock.advance(3_600)
    training.end()
    training.clock.advance(40 * DAY)
    return training


def test_reading_what_is_kept_no_longer_ends_and_says_so(expired: Training) -> None:
    assert expired.read() == []

    assert expired.notes() == [GONE]
    assert expired.service.pages_of(expired.stream) == MOST_EMPTY_PAGES


def test_a_log_that_is_kept_for_one_day_is_said_to_be_so(expired: Training) -> None:
    expired.service.retention_days = 1
    expired.read()

    assert expired.notes() == [GONE.replace("30 days", "1 day")]


def test_a_tail_of_what_is_kept_no_longer_ends_and_says_so(expired: Training) -> None:
    assert expired.tail(10) == []
    assert expired.notes() == [GONE]

    # The next look of the dashboard has nothing to read.
    expired.service.requests.clear()
    assert (expired.read(), expired.service.requests) == ([], [])


@pytest.mark.parametrize("way", ["read", "tail"])
def test_many_attempts_past_retention_cost_few_pages_each(training: Training, way: str) -> None:
    for _ in range(20):
        training.start("a")
        training.end()
    training.clock.advance(40 * DAY)

    assert (training.read() if way == "read" else training.tail(10)) == []

    assert len(training.service.requests) == MOST_EMPTY_PAGES + 19 * 5
    assert training.notes()[0].startswith("the log of attempts 1, 2, 3, ")
    assert training.service.described == 1


def test_who_may_not_ask_how_long_logs_are_kept_is_not_told_that_they_are_gone(expired: Training) -> None:
    expired.service.may_describe = False

    assert expired.read() == []
    assert expired.notes() == [f"the log of attempt 1 was {CUT}"]


def test_a_log_that_is_kept_for_ever_is_not_said_to_be_gone(training: Training) -> None:
    training.start("a")
    training.end()
    training.service.gaps[training.stream] = 10_000
    training.service.retention_days = None
    training.clock.advance(40 * DAY)

    assert training.tail(3) == []
    assert training.notes() == [f"the log of attempt 1 was {CUT}"]


def test_a_task_without_a_line_is_not_said_to_have_lost_its_log(training: Training) -> None:
    training.start()
    training.end()
    training.clock.advance(DAY)

    assert (training.read(), training.notes()) == ([], [])


@pytest.mark.parametrize("way", ["read", "tail"])
def test_lines_behind_a_gap_are_read(training: Training, way: str) -> None:
    training.start("a", "b", "c")
    training.service.gaps[training.stream] = MOST_EMPTY_PAGES - 1
    training.end()
    training.clock.advance(60)

    assert (training.read() if way == "read" else training.tail(3)) == ["a", "b", "c"]
    assert training.notes() == []


def test_an_attempt_that_has_ended_is_asked_for_until_its_end(training: Training) -> None:
    training.start("a")
    training.read()
    assert "endTime" not in training.service.requests[-1]
    training.end()
    ended = training.clock.now()
    training.clock.advance(60)

    training.read()
    training.reader().tail(training.history, 1, training.clock.now())

    for request in training.service.requests[-2:]:
        assert request["endTime"] == int((ended + timedelta(hours=1)).timestamp() * 1000)


def test_an_attempt_that_had_ended_before_the_time_asked_for_is_not_read(training: Training) -> None:
    training.start("a")
    training.end()
    training.clock.advance(2 * DAY)
    for read in (lambda logs: list(logs.read(training.history, NOW)), lambda logs: logs.tail(training.history, 5, NOW)):
        logs = training.reader(since=training.clock.now() - DAY)

        assert read(logs) == []
        assert logs.notes(training.clock.now()) == []
    assert training.service.requests == []


def test_each_look_at_a_silent_task_asks_for_one_page_and_goes_on_behind_it(training: Training) -> None:
    training.start("a", "b", "c")
    training.service.gaps[training.stream] = MOST_EMPTY_PAGES + 3
    assert training.read() == []
    assert training.notes() == [f"the log of attempt 1 was {CUT}"]
    assert training.notes(is_followed=True) == []
    training.service.requests.clear()

    looks = [training.read() for _ in range(4)]

    assert looks == [[], [], [], ["a", "b", "c"]]
    # The first three find a page without lines; the fourth reads two with lines, and that there are no more.
    assert len(training.service.requests) == 3 + 3


def test_the_last_look_after_the_end_reads_over_gaps(training: Training) -> None:
    training.start("a")
    training.service.gaps[training.stream] = MOST_EMPTY_PAGES + 20
    assert training.read() == []
    training.end()
    assert training.read() == []
    training.clock.advance(60)

    assert training.read() == ["a"]
    assert training.notes() == []


def test_of_a_long_training_what_is_still_kept_is_read(training: Training) -> None:
    training.start("a")
    training.service.gaps[training.stream] = 0
    training.clock.advance(31 * DAY)
    training.service.gaps[training.stream] = MOST_EMPTY_PAGES + 10
    training.write("b", "c")
    request = training.service.get_log_events

    def skip_gap(**asked):
        # With a start there are fewer empty pages (GetLogEventsRequest).
        if "startTime" in asked:
            training.service.gaps[training.stream] = 0
        return request(**asked)

    training.service.get_log_events = skip_gap

    assert training.read() == ["b", "c"]
    assert training.notes() == []


def test_a_task_that_writes_faster_than_it_is_read_does_not_keep_a_read(training: Training) -> None:
    training.start("a", "b")
    request = training.service.get_log_events

    def write_more(**asked):
        training.clock.advance(30)
        training.write("more", "and more")
        return request(**asked)

    training.service.get_log_events = write_more
    began = training.clock.now()

    lines = list(training.logs.read(training.history, began))

    assert 3 < len(lines) < 12
    assert training.read()


def test_nothing_is_to_be_said_before_anything_was_read(training: Training) -> None:
    assert training.notes() == []


def test_following_ends_with_the_job_though_tokens_are_always_new(expired: Training) -> None:
    lines = follow_logs(expired.logs, lambda: expired.history, expired.clock.now, expired.clock.advance)

    assert list(lines) == []


@pytest.mark.parametrize("hours", [11, 13, 25, 700])
def test_a_silent_task_is_read_on_however_long_it_was_silent(training: Training, hours: int) -> None:
    training.start("a", "b", "b")
    training.service.retention_days = None
    assert training.read() == ["a", "b", "b"]

    for _ in range(3):
        training.clock.advance(hours * 3_600)
        assert training.read() == []
    training.write("c")

    assert training.read() == ["c"]
    assert training.read() == []
    assert training.service.refused_tokens == 0


@pytest.mark.parametrize("refusal", ["expired", "refused at once"])
def test_of_events_of_one_millisecond_none_is_lost_and_none_comes_twice(training: Training, refusal: str) -> None:
    training.start("a", "b", "b")
    training.read()
    training.write("b", "c")
    training.clock.advance(1 if refusal == "refused at once" else 13 * 3_600)
    training.service.forget_tokens()
    training.write("d")

    assert training.read() == ["b", "c", "d"]


@pytest.mark.parametrize(("count", "newest"), [(0, []), (1, ["b"]), (5, ["a", "b"])])
def test_a_tail_is_followed_after_its_token_has_expired(training: Training, count: int, newest: list[str]) -> None:
    training.start("a")
    training.clock.advance(1)
    training.write("b")
    assert training.tail(count) == newest

    training.clock.advance(30 * 3_600)
    assert training.read() == []
    training.write("c")
    assert training.read() == ["c"]


def test_a_task_that_wrote_nothing_for_a_day_is_read_from_its_first_line(training: Training) -> None:
    training.start()
    training.service.streams[training.stream] = []
    assert training.read() == []
    training.clock.advance(30 * 3_600)
    training.write("a")

    assert training.read() == ["a"]


def test_a_token_that_is_refused_after_lines_of_the_future_ends_the_attempt(training: Training) -> None:
    training.start("a")
    training.read()
    began = training.clock.now()
    training.runs[-1] = training.runs[-1]._replace(stop=RunStop(began - timedelta(hours=2)))
    training.service.forget_tokens()

    assert (training.read(), training.notes()) == ([], [])


def test_a_service_that_takes_no_token_does_not_keep_a_read(training: Training) -> None:
    training.start()
    for message in "abc":
        training.write(message)
        training.clock.advance(1)
    request = training.service.get_log_events

    def forget(**asked):
        training.service.forget_tokens()
        return request(**asked)

    training.service.get_log_events = forget

    assert training.read() == ["a", "b", "c"]


def test_another_refusal_is_told(training: Training) -> None:
    training.start("a")
    training.service.get_log_events = Mock(side_effect=training.service.refusal)

    with pytest.raises(training.service.exceptions.InvalidParameterException):
        training.read()


def test_what_a_tail_did_not_reach_is_not_printed_after_its_token_has_expired(training: Training) -> None:
    training.start("long ago")
    training.service.gaps[training.stream] = 1_000
    training.clock.advance(3_600)
    assert training.tail(5) == []
    training.service.gaps.clear()

    training.clock.advance(13 * 3_600)
    assert training.read() == []
    training.write("c")

    assert training.read() == ["c"]
