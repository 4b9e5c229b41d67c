"""What the page of a job reads, and what it does not read again."""

from collections import Counter
from dataclasses import replace

import pytest

from fakes.builders import make_container, make_revision
from fakes.dashboard_world import DashboardWorld
from fakes.log_service import FakeLogService
from fakes.stored_machines import make_machine
from relaunch.core.jobs.attempt import Rank
from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs
from relaunch_cli.dashboard import job_reader
from relaunch_cli.dashboard.job_reader import JobReader
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.errors import CommandError
from relaunch_cli.job_logs import MOST_EMPTY_PAGES


class Reading:
    """A reader of a world, and the calls that it made."""

    def __init__(self) -> None:
        self.world = DashboardWorld()
        self.calls: Counter[str] = Counter()
        deps = self.world.deps
        parts = ((self.world.jobs, ("load_job", "load_history", "load_runs")), (self.world.logs, ("read", "tail")))
        for store, names in (*parts, (deps.checkpoints, ("newest_saved",)), (deps.machines, ("load_machine",))):
            for name in names:
                setattr(store, name, self._counted(name, getattr(store, name)))
        self.reader = JobReader(self.world, Kept(self.world.now))

    def _counted(self, name, call):
        def counted(*arguments, **words):
            self.calls[name] += 1
            return call(*arguments, **words)

        return counted

    def load(self, job_id: str) -> Counter[str]:
        """Load a job; return the calls."""
        self.calls.clear()
        self.reader.load(job_id)
        return self.calls

    def lines(self, after: int = 0) -> list[str]:
        found, problem = self.reader.log_since(self.world.running, after)
        assert problem == ""
        return [line.message for _, line in found]


@pytest.fixture
def reading() -> Reading:
    return Reading()


def test_a_job_that_did_not_change_costs_one_read(reading: Reading) -> None:
    assert reading.load(reading.world.succeeded)["load_history"] == 1

    reading.world.clock.advance(600)
    assert reading.load(reading.world.succeeded) == {"load_job": 1}


def test_of_a_running_job_what_may_have_changed_is_read_again(reading: Reading) -> None:
    running = reading.world.running
    reading.load(running)
    assert reading.load(running) == {"load_job": 1}

    reading.world.clock.advance(5)
    assert reading.load(running) == {"load_job": 1, "tail": 1}
    reading.world.clock.advance(20)
    assert reading.load(running) == {"load_job": 1, "tail": 1, "newest_saved": 1}
    reading.world.note(running, 9_000)
    assert reading.load(running)["load_history"] == 1


def test_the_machines_of_all_ranks_of_an_attempt_are_read() -> None:
    world = DashboardWorld()
    history = world.jobs.load_history(world.running)
    (attempt, *_) = history.attempts
    gang = replace(attempt.placement, machine_id="m-1", instance_id="i-1", followers=(Rank("m-2", "i-2"),))
    world.jobs.load_history = lambda _job_id: replace(history, attempts=[replace(attempt, placement=gang)])
    machines = {each: make_machine(each) for each in ("m-1", "m-2")}
    world.deps.machines.load_machine = machines.get

    view = JobReader(world, Kept(world.now)).load(world.running)

    assert [each.machine_id for each in view.machines] == ["m-1", "m-2"]


def test_of_all_versions_of_a_job_one_is_kept(reading: Reading) -> None:
    for step in range(5):
        reading.world.note(reading.world.running, step)
        reading.load(reading.world.running)

    kept = [each for each in reading.reader._kept._reads if reading.world.running in each]
    assert sorted(name for name, *_ in kept) == ["history", "lines", "links", "saved"]


def test_the_console_has_the_task_of_a_job_on_aws_alone(reading: Reading, monkeypatch) -> None:
    view = reading.reader.load(reading.world.running)
    assert view.console_links.keys() == {"task", "log", "instance"}
    assert all(each.startswith("https://") for each in view.console_links.values())

    assert reading.reader.load("wait-budget").console_links == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", "http://127.0.0.1:1")
    assert JobReader(reading.world, Kept(reading.world.now)).load(reading.world.running).console_links == {}


def test_what_is_no_arn_of_a_task_has_no_link(reading: Reading) -> None:
    world = reading.world
    attempt = world.jobs.job(world.running).current_attempt
    world.change(world.running, attempt=replace(attempt, placement=replace(attempt.placement, task_id="<a>")))

    assert reading.reader.load(world.running).console_links == {}


def test_a_log_goes_on_where_it_was_read(reading: Reading) -> None:
    assert len(reading.lines()) == 4
    reading.world.log(reading.world.running, "new")
    assert reading.lines(4) == []  # read a moment ago

    reading.world.clock.advance(2)
    reading.calls.clear()
    assert reading.lines(4) == ["new"]
    assert (reading.calls["load_runs"], reading.calls["load_job"]) == (1, 0)


def test_of_a_long_log_the_newest_lines_are_kept(reading: Reading, monkeypatch) -> None:
    monkeypatch.setattr(reading.world.logs, "page_length", 500)
    reading.lines()
    reading.world.log(reading.world.running, *map(str, range(3_000)))
    reading.world.clock.advance(2)

    assert reading.lines() == [str(number) for number in range(2_000, 3_000)]


def test_a_number_of_a_log_that_was_dropped_brings_all_lines(reading: Reading, monkeypatch) -> None:
    monkeypatch.setattr(job_reader, "_MOST_LOGS", 1)
    reading.lines()
    reading.reader.log_since(reading.world.succeeded, 0)
    reading.world.clock.advance(2)

    assert len(reading.lines(900)) == 4


def test_a_log_whose_first_read_failed_begins_with_its_newest_lines(reading: Reading, monkeypatch) -> None:
    monkeypatch.setattr(job_reader, "_FIRST_LINES", 1)
    tail = reading.world.logs.tail

    def deny(*_: object, **__: object) -> None:
        raise reading.world.throttled()

    monkeypatch.setattr(reading.world.logs, "tail", deny)
    lines, problem = reading.reader.log_since(reading.world.running, 0)
    assert (lines, problem) == ([], "AWS throttles Query: Rate exceeded: try again in a minute")

    monkeypatch.setattr(reading.world.logs, "tail", tail)
    reading.world.clock.advance(2)
    assert reading.lines() == ["relaunch: step=7000 of=20000 loss=0.6333"]


def test_lines_before_an_error_are_not_lost(reading: Reading, monkeypatch) -> None:
    reading.lines()
    reading.world.log(reading.world.running, "a", "b", "c")
    reading.world.clock.advance(2)
    read = reading.world.logs.read

    def fail_second(*arguments, **words):
        if reading.calls["pages with lines"]:
            raise reading.world.throttled()
        page, following = read(*arguments, **words)
        reading.calls["pages with lines"] += bool(page)
        return page, following

    monkeypatch.setattr(reading.world.logs, "read", fail_second)
    reading.reader.log_since(reading.world.running, 4)
    monkeypatch.setattr(reading.world.logs, "read", read)
    reading.world.clock.advance(2)

    assert reading.lines(4) == ["a", "b", "c"]


def test_each_look_at_a_log_that_is_kept_no_longer_ends_and_says_so(reading: Reading) -> None:
    world = reading.world
    service = FakeLogService(world.clock)
    stream = f"train/main/{world.task(world.succeeded).rsplit('/', 1)[-1]}"
    service.write(stream, "a")
    world.logs = CloudWatchLogs(service)
    world.clock.advance(40 * 86_400)
    attempts = ", ".join(str(each.number) for each in world.jobs.load_runs(world.succeeded).attempts)
    kept = "/ecs/trainer keeps events for 30 days"

    for _ in range(3):
        lines, problem = reading.reader.log_since(world.succeeded, 0)
        assert (lines, problem) == ([], f"the log of attempts {attempts} is kept no longer: {kept}")
        world.clock.advance(2)
    assert service.pages_of(stream) == MOST_EMPTY_PAGES


def test_the_log_of_a_training_that_is_silent_for_days_goes_on(reading: Reading) -> None:
    world = reading.world
    service = FakeLogService(world.clock)
    world.logs = CloudWatchLogs(service)
    stream = f"train/main/{world.task(world.running).rsplit('/', 1)[-1]}"
    service.write(stream, "epoch 1")
    assert reading.lines() == ["epoch 1"]

    world.clock.advance(3 * 86_400)
    service.write(stream, "epoch 2")

    assert reading.lines() == ["epoch 1", "epoch 2"]


def test_a_log_of_several_containers_says_what_to_do(reading: Reading) -> None:
    world = reading.world
    job = world.jobs.job(world.running)
    containers = (make_container(), make_container(name="sidecar"))
    world.change(
        world.running, revision=make_revision(containers=containers), definition=replace(job.definition, container=None)
    )

    _, problem = reading.reader.log_since(world.running, 0)

    assert "several containers" in problem


def test_a_job_that_is_not_there_is_an_error(reading: Reading) -> None:
    with pytest.raises(CommandError, match="there is no job"):
        reading.reader.load("nothing")
    with pytest.raises(CommandError, match="there is no job"):
        reading.reader.log_since("nothing", 0)
