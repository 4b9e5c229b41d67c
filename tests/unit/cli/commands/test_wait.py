"""wait: it ends with the job, and its exit code is that of the job."""

import pytest

from fakes.builders import make_definition
from relaunch.ports import TransientError
from relaunch.usecases.cancel_job import cancel_job


@pytest.fixture(autouse=True)
def _definition(session):
    session.deps.definitions.save_definition(make_definition(max_failures=0))


def steps(session, job_id: str, exit_code: int):
    """Let the job be launched, run and end, a step per look."""
    task = []
    return [
        lambda: task.append(session.launch(job_id)),
        lambda: session.run(task[0]),
        lambda: session.finish(task[0], exit_code),
    ]


@pytest.mark.parametrize(("exit_code", "expected", "state"), [(0, 0, "SUCCEEDED"), (1, 1, "FAILED")])
def test_the_exit_code_is_that_of_the_job(relaunch, session, exit_code, expected, state):
    job_id = session.submit()
    session.on_pause = steps(session, job_id, exit_code)

    result = relaunch("wait", job_id, "--json")

    assert result.exit_code == expected
    assert result.document["state"] == state
    assert [line.split()[1] for line in result.stderr.splitlines() if line[:2].isdigit()][-2:] == ["RUNNING", state]


def test_a_cancelled_job_ends_with_130_and_so_does_ctrl_c(relaunch, session):
    job_id = session.submit()

    interrupted = relaunch("wait", "-")
    session.on_pause = [lambda: cancel_job(job_id, "enough", session.deps)]
    cancelled = relaunch("wait", job_id)

    assert (interrupted.exit_code, cancelled.exit_code) == (130, 130)
    commands = f"  relaunch show {job_id}\n  relaunch cancel {job_id}\n"
    assert interrupted.stderr.endswith(f"the job goes on: it is WAITING\n{commands}")


def test_a_job_that_has_ended_is_not_waited_for(relaunch, session):
    job_id = session.submit()
    cancel_job(job_id, "enough", session.deps)

    result = relaunch("wait", job_id)

    assert (result.exit_code, result.stdout) == (130, "")
    assert session.on_pause == []


def test_a_job_that_is_not_there_is_not_found(relaunch):
    assert relaunch("wait", "resnet-0").exit_code == 3


def test_a_minute_without_an_answer_ends_no_wait_and_a_longer_time_does(relaunch, session, monkeypatch):
    job_id = session.submit()
    load = session.jobs.load_job
    failures = [TransientError("throttled")] * 29

    def load_job(asked: str):
        if failures:
            raise failures.pop()
        return load(asked)

    monkeypatch.setattr(session.jobs, "load_job", load_job)
    session.on_pause = [*[lambda: None] * 29, lambda: cancel_job(job_id, "enough", session.deps)]
    assert relaunch("wait", job_id).exit_code == 130

    failures[:] = [TransientError("throttled")] * 30
    session.on_pause = [lambda: None] * 30
    refused = relaunch("wait", job_id)

    assert refused.exit_code == 4
    assert "throttled" in refused.stderr


def test_each_entry_of_the_timeline_is_one_line_in_a_pipe_and_ids_are_whole_at_80_columns(relaunch, session):
    job_id = session.submit()
    session.on_pause = [lambda: cancel_job(job_id, "the reason is a long one " * 10, session.deps)]

    piped = relaunch("wait", job_id)
    interrupted = relaunch("wait", session.submit("other"), columns=80)

    entries = piped.stderr.splitlines()
    assert all(line[:2].isdigit() for line in entries)
    assert entries[-1].count("the reason is a long one") >= 9
    assert all(line == line.rstrip() for line in entries[:-1])
    commands = [line for line in interrupted.stderr.splitlines() if line.startswith("  relaunch ")]
    assert [line.split()[1] for line in commands] == ["show", "cancel"]
    assert max(map(len, commands)) <= 80
