"""The log of a task on Kubernetes is that of its pod, line by line from where it was read last."""

from datetime import UTC, datetime
from types import SimpleNamespace

from relaunch.adapters.kubernetes.api.errors import NotFoundError
from relaunch_cli.log_positions import LogEvent
from relaunch_cli.pod_logs import PodLogs

TASK = "train-x-1-1"
FIRST = "2026-03-14T09:26:53.100000000Z"
SECOND = "2026-03-14T09:26:53.200000001Z"


class FakePods:
    """Implements PodReader; like a server, it gives the lines of the whole second again."""

    def __init__(self, lines):
        self.lines, self.asked, self.is_gone = lines, [], False
        self.index = {}

    def list_pods(self, label_selector=""):
        self.asked.append(label_selector)
        yield [SimpleNamespace(metadata=SimpleNamespace(name="train-x-1-1-abcde", annotations=self.index))]

    def read_log(self, pod, container, *, since_time=None):
        if self.is_gone:
            raise NotFoundError(f"pod {pod}", 404, "NotFound")
        assert (pod, container) == ("train-x-1-1-abcde", "main")
        self.asked.append(since_time)
        yield from self.lines


def read(logs, token=None):
    destination = logs.destination("ack/train", "main")
    return logs.read(destination, destination.stream("main", TASK), token)


def test_lines_come_with_their_times_and_the_last_one_is_where_to_go_on():
    pods = FakePods([f"{FIRST} step 1\n", f"{SECOND} step 2"])
    logs = PodLogs(pods, "relaunch")

    events, token = read(logs)

    assert events[0] == LogEvent(datetime(2026, 3, 14, 9, 26, 53, 100000, UTC), "step 1")
    assert (len(events), token) == (2, SECOND)
    assert f"relaunch/task in ({TASK})" in pods.asked[0]


def test_what_was_read_is_not_read_again():
    pods = FakePods([f"{FIRST} step 1", f"{SECOND} step 2"])

    events, token = read(PodLogs(pods, "relaunch"), FIRST)

    assert ([event.message for event in events], token) == (["step 2"], SECOND)
    assert pods.asked[1] == datetime(2026, 3, 14, 9, 26, 53, 100000, UTC)


def test_a_pod_without_lines_and_one_that_is_gone_have_no_log():
    pods = FakePods([])
    empty = read(PodLogs(pods, "relaunch"))
    pods.is_gone = True

    assert [empty, read(PodLogs(pods, "relaunch"), FIRST)] == [([], None), ([], FIRST)]


def test_a_tail_is_the_newest_lines_and_is_read_on_from_there():
    pods = FakePods([f"{FIRST} step 1", f"{SECOND} step 2"])
    logs = PodLogs(pods, "relaunch")
    destination = logs.destination("ack/train", "main")
    stream = destination.stream("main", TASK)

    for count, expected in ((0, []), (1, ["step 2"]), (5, ["step 1", "step 2"])):
        events, token, _ = logs.tail(destination, stream, count)

        assert ([event.message for event in events], token) == (expected, SECOND)


def test_lines_before_a_time_are_left_out_though_the_server_counts_in_whole_seconds():
    pods = FakePods([f"{FIRST} step 1", f"{SECOND} step 2"])
    logs = PodLogs(pods, "relaunch")
    destination = logs.destination("ack/train", "main")
    since = datetime(2026, 3, 14, 9, 26, 53, 150000, UTC)

    events, _ = logs.read(destination, destination.stream("main", TASK), None, since)

    assert [event.message for event in events] == ["step 2"]
    assert pods.asked[1] == since


def test_of_a_job_of_several_nodes_the_log_is_that_of_one_rank():
    pods = FakePods([f"{FIRST} step 1"])
    pods.index = {"batch.kubernetes.io/job-completion-index": "2"}
    logs = PodLogs(pods, "relaunch")

    assert read(logs) == ([], None)
    assert [event.message for event in read(logs.of_rank(2))[0]] == ["step 1"]
