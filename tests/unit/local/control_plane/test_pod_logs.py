import pytest

from relaunch_local.control_plane.pod_logs import PodLogs

POD = {"metadata": {"namespace": "training", "name": "a"}, "spec": {"containers": [{"name": "main"}]}}
PATH = "/containerLogs/training/a/main"


@pytest.fixture
def logs() -> PodLogs:
    logs = PodLogs()
    logs.add(POD)
    for second in range(3):
        logs.write("training", "a", "main", f"2026-11-02T09:00:0{second}.5Z", f"step {second}")
    return logs


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("", "step 0\nstep 1\nstep 2\n"),
        ("?tailLines=1", "step 2\n"),
        ("?tailLines=0", ""),
        ("?sinceTime=2026-11-02T09:00:01Z", "step 1\nstep 2\n"),
        ("?timestamps=true&tailLines=1", "2026-11-02T09:00:02.5Z step 2\n"),
        ("?limitBytes=4", "step"),
    ],
)
def test_lines_are_answered_as_they_are_asked_for(logs: PodLogs, query: str, body: str) -> None:
    assert logs.answer(PATH + query, b"").body == body


def test_a_container_that_has_not_started_waits(logs: PodLogs) -> None:
    logs.forget("training", "a")

    answered = logs.answer(PATH, b"")

    assert answered.status == 400
    assert 'container "main" in pod "a" is waiting to start' in answered.body


def test_nothing_else_is_answered(logs: PodLogs) -> None:
    assert logs.answer("/exec/training/a/main", b"").status == 404
