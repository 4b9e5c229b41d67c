"""logs: all attempts in order, across relaunches."""

import json
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_container, make_definition, make_job, make_placement, make_revision
from fakes.cli_session import FakeLogs
from fakes.log_service import FakeLogService
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch_cli.aws.cloudwatch_logs import CloudWatchLogs


def stream_of(task_id: str) -> str:
    return f"train/main/{task_id.rsplit('/', 1)[-1]}"


def lines(*messages: str) -> list[tuple[datetime, str]]:
    return [(NOW + timedelta(seconds=index), message) for index, message in enumerate(messages)]


def interrupted(session) -> tuple[str, str, str]:
    job_id = session.submit()
    first = session.launch(job_id)
    session.run(first)
    session.interrupt(first)
    second = session.launch(job_id)
    session.run(second)
    session.logs.streams = {stream_of(first): lines("a1", "a2", "a3"), stream_of(second): lines("b1\n")}
    return job_id, first, second


def test_all_attempts_are_printed_in_order_over_all_pages(relaunch, session):
    job_id, _, _ = interrupted(session)

    result = relaunch("logs", job_id)

    assert result.stdout == "a1\na2\na3\nb1\n"
    assert result.stderr == "attempt 1\nattempt 2\n"


def test_one_attempt_alone(relaunch, session):
    job_id, _, _ = interrupted(session)

    assert relaunch("logs", job_id, "--attempt", "2").stdout == "b1\n"


def test_json_is_a_document_per_line(relaunch, session):
    job_id, _, _ = interrupted(session)

    found = [json.loads(line) for line in relaunch("logs", job_id, "--json").stdout.splitlines()]

    assert found[0] == {"attempt": 1, "at": NOW.isoformat(), "message": "a1"}
    assert len(found) == 4


def test_following_goes_on_over_a_relaunch_until_the_job_ends(relaunch, session):
    job_id = session.submit()
    first = session.launch(job_id)
    session.run(first)
    session.logs.streams[stream_of(first)] = lines("a1")
    second = []

    def relaunch_it() -> None:
        session.interrupt(first)
        session.logs.streams[stream_of(first)] += lines("a2, written on SIGTERM")
        second.append(session.launch(job_id))
        session.run(second[0])
        session.logs.streams[stream_of(second[0])] = lines("b1")

    def finish() -> None:
        session.finish(second[0])
        session.logs.streams[stream_of(second[0])] += lines("b2")

    def delivered_late() -> None:
        session.logs.streams[stream_of(second[0])] += lines("b3")

    session.on_pause = [relaunch_it, finish, delivered_late, *[lambda: None] * 20]

    result = relaunch("logs", job_id, "-f")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["a1", "a2, written on SIGTERM", "b1", "b2", "b3"]


def test_a_stream_that_is_complete_is_not_read_again(relaunch, session):
    job_id, first, _ = interrupted(session)
    session.clock.advance(60)
    session.on_pause = [lambda: None] * 3

    relaunch("logs", job_id, "-f")

    assert session.logs.reads.count(stream_of(first)) == 3
    assert len([name for name in session.logs.reads if name != stream_of(first)]) > 3


def test_a_job_that_wrote_nothing_yet_says_so(relaunch, session):
    result = relaunch("logs", session.submit())

    assert result.stdout == ""
    assert "no logs yet; the job is WAITING" in result.stderr


def test_a_job_that_is_over_and_wrote_nothing_will_write_nothing(relaunch, session):
    job_id = session.submit()
    relaunch("cancel", job_id)

    assert "no logs; the job is CANCELLED" in relaunch("logs", job_id).stderr


def test_a_container_that_there_is_not_is_not_found(relaunch, session):
    result = relaunch("logs", session.submit(), "--container", "mian")

    assert (result.exit_code, result.stdout) == (3, "")
    assert "the task has no container 'mian'" in result.stderr
    assert "did you mean main?" in result.stderr
    assert "log driver" not in result.stderr


def test_with_several_containers_one_must_be_named(relaunch, session):
    revision = make_revision(containers=(make_container(), make_container(name="sidecar")))
    job = make_job(definition=make_definition(container=None), revision=revision)
    session.jobs.create_job(job, ())

    assert relaunch("logs", job.job_id).exit_code == 2
    assert relaunch("logs", job.job_id, "--container", "main").exit_code == 0


def test_an_attempt_that_there_is_not_is_not_found(relaunch, session):
    job_id, _, _ = interrupted(session)

    result = relaunch("logs", job_id, "--attempt", "3")

    assert (result.exit_code, result.stdout) == (3, "")
    assert f"{job_id} has no attempt 3" in result.stderr
    assert "it has 2: `relaunch show" in result.stderr


def test_no_attempt_is_there_before_the_first(relaunch, session):
    assert "it has none yet" in relaunch("logs", session.submit(), "--attempt", "1").stderr


def test_an_attempt_that_may_come_is_followed_until_the_job_ends(relaunch, session):
    job_id = session.submit()
    task = session.launch(job_id)
    session.run(task)
    session.on_pause = [lambda: session.finish(task), *[lambda: None] * 20]

    result = relaunch("logs", job_id, "-f", "--attempt", "2")

    assert result.exit_code == 0
    assert relaunch("logs", job_id, "-f", "--attempt", "2").exit_code == 3


@pytest.mark.parametrize(
    ("count", "expected"),
    [("0", []), ("1", ["b1"]), ("2", ["a3", "b1"]), ("4", ["a1", "a2", "a3", "b1"]), ("9", ["a1", "a2", "a3", "b1"])],
)
def test_a_tail_is_the_newest_lines_over_all_attempts(relaunch, session, count, expected):
    job_id, _, _ = interrupted(session)

    assert relaunch("logs", job_id, "--tail", count).stdout.splitlines() == expected


def test_a_tail_reads_no_attempt_that_is_older_than_its_lines(relaunch, session):
    job_id, _, second = interrupted(session)

    relaunch("logs", job_id, "--tail", "1")

    assert session.logs.reads == [stream_of(second)]


@pytest.mark.parametrize(("count", "expected"), [("0", ["b2", "b3"]), ("1", ["b1", "b2", "b3"])])
def test_a_tail_is_followed_by_what_comes_then(relaunch, session, count, expected):
    job_id, _, second = interrupted(session)

    def write(*messages: str) -> None:
        session.logs.streams[stream_of(second)] += lines(*messages)

    session.on_pause = [
        lambda: write("b2"),
        lambda: session.finish(second),
        lambda: write("b3"),
        *[lambda: None] * 20,
    ]

    result = relaunch("logs", job_id, "-f", "--tail", count)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == expected


def test_a_tail_of_one_attempt_is_that_attempts(relaunch, session):
    job_id, _, _ = interrupted(session)

    assert relaunch("logs", job_id, "--attempt", "1", "--tail", "2").stdout.splitlines() == ["a2", "a3"]


def test_lines_before_a_time_are_left_out_and_that_is_told(relaunch, session):
    job_id, _, second = interrupted(session)
    now = session.clock.now()
    session.logs.streams[stream_of(second)] = [(now - timedelta(minutes=age), f"{age} ago") for age in (90, 20, 5)]

    assert relaunch("logs", job_id, "--since", "10m").stdout == "5 ago\n"
    assert relaunch("logs", job_id, "--since", "1h").stdout == "20 ago\n5 ago\n"
    assert relaunch("logs", job_id, "--since", "1h", "--tail", "1").stdout == "5 ago\n"
    nothing = relaunch("logs", job_id, "--since", "1m")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == "no logs since then; the job is RUNNING\n"


@pytest.mark.parametrize(("since", "text"), [("10", "10 has no unit: write 10h or 10m"), ("soon", "is not a duration")])
def test_what_is_no_time_is_refused(relaunch, session, since, text):
    result = relaunch("logs", session.submit(), "--since", since)

    assert result.exit_code == 2
    assert f"--since: {'`' * (since == 'soon')}{since}" in result.stderr
    assert text in result.stderr


def test_of_pods_the_log_is_that_of_a_rank_of_the_one_task(relaunch, session):
    definition = make_definition(target=Target.ACK, kubernetes=KubernetesWorkload("trainer"), nodes=3)
    attempt = make_attempt(placement=make_placement(task_id="llama-1-1"))
    session.jobs.create_job(make_job(definition=definition, attempt=attempt), ())
    stream = "train/main/llama-1-1"
    session.pod_logs.streams = {stream: lines("first")}
    session.pod_logs.ranks[2] = FakeLogs({stream: lines("third")})

    shown = [relaunch("logs", "resnet-1f2e3d4c", *rank).stdout for rank in ((), ("--rank", "2"))]

    assert shown == ["first\n", "third\n"]


@pytest.mark.parametrize(
    ("nodes", "rank", "hint"), [(3, "3", "it has 3, counted from 0"), (1, "1", "it has one, 0: leave --rank out")]
)
def test_a_node_that_a_job_does_not_have_is_refused(relaunch, session, nodes, rank, hint):
    job = make_job(definition=make_definition(nodes=nodes), attempt=make_attempt())
    session.jobs.create_job(job, ())

    result = relaunch("logs", job.job_id, "--rank", rank)

    assert (result.exit_code, result.stdout) == (3, "")
    assert f"{job.job_id} has no node {rank}" in result.stderr
    assert hint in result.stderr


@pytest.mark.parametrize("options", [(), ("--tail", "5"), ("-f",), ("--json",)])
def test_a_log_that_is_kept_no_longer_is_said_to_be_so(relaunch, session, options):
    job_id, first, second = interrupted(session)
    session.finish(second)
    service = FakeLogService(session.clock)
    service.streams = {stream_of(first): lines("a1"), stream_of(second): lines("b1")}
    session.clock.advance(timedelta(days=40))
    session.logs = CloudWatchLogs(service)
    session.on_pause = [lambda: None] * 20

    result = relaunch("logs", job_id, *options)

    assert (result.exit_code, result.stdout) == (0, "")
    kept = "the log of attempts 1, 2 is kept no longer: /ecs/trainer keeps events for 30 days\n"
    assert result.stderr == ("" if "--json" in options else "no logs; the job is SUCCEEDED\n") + kept


def test_what_was_not_read_of_an_attempt_that_began_while_it_was_followed_is_told(relaunch, session):
    job_id = session.submit()
    service = FakeLogService(session.clock)
    session.logs = CloudWatchLogs(service)

    def run() -> None:
        task = session.launch(job_id)
        session.run(task)
        service.write(stream_of(task), "far behind")
        service.gaps[stream_of(task)] = 1_000
        session.finish(task)

    session.on_pause = [run, *[lambda: None] * 20]

    assert "the log of attempt 1 was not read whole" in relaunch("logs", job_id, "-f").stderr


def test_a_training_that_prints_nothing_for_a_day_is_followed(relaunch, session):
    job_id = session.submit()
    task = session.launch(job_id)
    session.run(task)
    service = FakeLogService(session.clock)
    session.logs = CloudWatchLogs(service)
    service.write(stream_of(task), "a")

    def go_on() -> None:
        service.write(stream_of(task), "b")
        session.finish(task)

    day = [lambda: session.clock.advance(3_600)] * 30
    session.on_pause = [*day, go_on, *[lambda: None] * 20]

    result = relaunch("logs", job_id, "-f")

    assert (result.exit_code, result.stdout) == (0, "a\nb\n")
