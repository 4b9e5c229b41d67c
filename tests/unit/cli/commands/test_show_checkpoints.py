"""What a job has saved, in show and explain."""

import io
from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from rich.console import Console

from fakes.builders import NOW, make_definition, make_running_job
from fakes.cli_session import flat
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.reported import Reported
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch.ports import PermanentError
from relaunch.usecases.note_progress import note_progress_of
from relaunch_cli.errors import CommandError
from relaunch_cli.job_training import load_lines
from relaunch_cli.views.job_list import render_jobs

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
BELOW = "s3://acme-checkpoints/resnet/"


@pytest.fixture
def job_id(session):
    session.deps.definitions.save_definition(make_definition(total_steps=1000))
    return session.run_interrupted_job()


def test_how_far_a_job_has_saved_is_shown_with_its_loss_and_where_its_result_is(relaunch, session, job_id):
    uri = f"{BELOW}{job_id}/attempt-2/step-0000300/"
    session.deps.checkpoints.complete[job_id] = uri
    session.deps.checkpoints.reported = Reported(loss=0.03125)
    said = "step 300 of 1,000, loss 0.03125, by attempt 2 at 09:26:53 UTC"

    texts = [flat(relaunch(command, job_id).stdout) for command in ("show", "explain")]
    documents = [relaunch(command, job_id, "--json").document["checkpoints"] for command in ("show", "explain")]
    session.finish(session.jobs.job(job_id).attempt.placement.task_id)
    ended = relaunch("show", job_id).stdout

    assert all(f"Saved {said}" in text and f"Checkpoint {uri}" in text for text in texts)
    newest = {"uri": uri, "step": 300, "attempt": 2, "saved_at": NOW.isoformat(), "loss": 0.03125}
    newest |= {"metrics": {}, "save_seconds": None, "written_at": None}
    expected = {"uri": f"{BELOW}{job_id}/", "total_steps": 1000, "newest": newest, "problem": None, "unusable": []}
    assert documents == [expected, expected]
    assert f"Result      {uri}" in ended


def test_a_newer_checkpoint_that_cannot_be_used_is_named(relaunch, session, job_id):
    session.deps.checkpoints.complete[job_id] = f"{BELOW}{job_id}/attempt-1/step-0000200/"
    session.deps.checkpoints.unusable = ("attempt-2/step-0000300 cannot be used: its manifest is empty",)

    assert "ago); attempt-2/step-0000300 cannot be used" in flat(relaunch("show", job_id).stdout)


def test_nothing_that_is_saved_is_said_to_be_so(relaunch, session, job_id):
    shown = flat(relaunch("show", job_id).stdout)
    relaunch("cancel", job_id)

    assert f"Saved nothing yet Saves to {BELOW}{job_id}/" in shown
    assert relaunch("show", job_id, "--json").document["checkpoints"]["newest"] is None


def test_whoever_may_not_read_checkpoints_is_shown_what_the_record_of_the_job_has(relaunch, session):
    session.deps.checkpoints.complete = SavedByAll()
    job_id = session.run_interrupted_job()
    session.deps.checkpoints.refusal = PermanentError("AWS denies ListObjectsV2")

    shown = flat(relaunch("show", job_id).stdout)
    document = relaunch("show", job_id, "--json").document

    assert "Saved unknown: AWS denies ListObjectsV2; its attempt 2 began at step 200" in shown
    assert document["checkpoints"]["problem"] == "AWS denies ListObjectsV2"


class SavedByAll(dict[str, str]):
    """Each job has saved its step 200."""

    def get(self, job_id, _default=None):
        return f"{BELOW}{job_id}/attempt-1/step-0000200/"


@pytest.fixture
def training_id(session, job_id):
    """Return the id of a job whose attempt 2 has saved two steps, ten minutes apart, and printed others since."""
    started_at = session.jobs.job(job_id).attempt.started_at
    session.deps.checkpoints.complete[job_id] = f"{BELOW}{job_id}/attempt-2/step-0000200/"
    session.deps.checkpoints.earlier = ((100, started_at + 10 * MINUTE),)
    session.deps.checkpoints.saved_at = started_at + 20 * MINUTE
    session.deps.checkpoints.reported = Reported(loss=0.5)
    session.clock.set(started_at + 30 * MINUTE)
    now = session.clock.now()
    lines = [
        (now - 5 * MINUTE, "relaunch: step=250 of=1000 loss=0.25 lr=1e-05"),
        (now - 4 * MINUTE, "relaunch: step=240 of=1000 loss=9"),
        (now - 3 * MINUTE, "relaunch: step=9999 of=1000 loss=9"),
        (now - 2 * MINUTE, "Epoch 3"),
        (now - MINUTE, "relaunch: step=290 of=1000 loss=0.125 lr=1e-05"),
    ]
    task_id = session.jobs.job(job_id).attempt.task_id.rsplit("/", 1)[-1]
    session.logs.streams[f"train/main/{task_id}"] = lines
    return job_id


def test_how_far_and_how_fast_a_training_is_and_what_is_at_risk(relaunch, session, training_id):
    texts = [flat(relaunch(command, training_id, columns=160).stdout) for command in ("show", "explain")]
    documents = [relaunch(command, training_id, "--json").document["training"] for command in ("show", "explain")]

    for text in texts:
        assert "Progress step 290 of 1,000 (29%), loss 0.125, lr 1e-05, at" in text
        assert "Rate 6 seconds a step, by the newest 2 lines of its log" in text
        assert "(in 1h10m)" in text
        assert "At risk 10m00s of work, $0.03, which no checkpoint has" in text
        assert "Stalled" not in text
    assert documents[0] == documents[1]
    assert documents[0]["steps_per_second"] == pytest.approx(40 / 240)
    assert documents[0]["at_risk"] == {"seconds": 600.0, "usd": pytest.approx(0.0267, abs=0.001)}
    assert [each["step"] for each in documents[0]["series"]] == [100, 200, 250, 290]
    assert documents[0]["checkpoint_age_seconds"] == 600.0


@pytest.mark.parametrize(
    "error",
    [
        CommandError("container main does not log to CloudWatch Logs"),
        ClientError({"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}, "GetLogEvents"),
        ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetLogEvents"),
        EndpointConnectionError(endpoint_url="https://logs"),
    ],
)
def test_a_log_that_cannot_be_read_disturbs_nothing(relaunch, session, training_id, monkeypatch, error):
    monkeypatch.setattr(session.logs, "tail", Mock(side_effect=error))

    shown = relaunch("show", training_id, columns=160)

    assert shown.exit_code == 0
    assert "Progress step 200 of 1,000 (20%), loss 0.5, at" in flat(shown.stdout)
    assert "Rate 6 seconds a step, by the newest 2 checkpoints" in flat(shown.stdout)


def test_a_pod_has_its_log_in_its_cluster(session, training_id):
    history = session.jobs.load_history(training_id)
    on_ack = replace(history.job, definition=replace(history.job.definition, target=Target.ACK))
    session.pod_logs.streams, session.logs.streams = session.logs.streams, {}

    assert [each.step for each in load_lines(replace(history, job=on_ack), session)] == [250, 290]
    assert load_lines(history, session) == ()


def test_a_bug_is_no_log_that_cannot_be_read(session, training_id, monkeypatch):
    monkeypatch.setattr(session.logs, "tail", Mock(side_effect=ZeroDivisionError))

    with pytest.raises(ZeroDivisionError):
        load_lines(session.jobs.load_history(training_id), session)


def test_a_training_that_hangs_is_said_to_and_lists_say_it_as_reconcile_noted_it(relaunch, session, training_id):
    running = relaunch("ps", columns=200).stdout
    noting(session, training_id)
    soon = relaunch("ps", columns=200)
    narrow = relaunch("ps", columns=80).stdout
    session.clock.advance(3 * 3600)
    noting(session, training_id)
    late = relaunch("ps", columns=200)

    assert "PROGRESS" not in running
    assert "200/1000 · 1h10m left" in soon.stdout
    assert "200/1000 · 1h10m left" in narrow
    assert "200/1000 · saves nothing for 3h10m" in late.stdout
    assert relaunch("ps", "--json").document["jobs"][0]["progress"]["step"] == 200
    for command in ("show", "explain"):
        assert "nothing newer than step 200 was saved since" in flat(relaunch(command, training_id).stdout)
        assert relaunch(command, training_id, "--json").document["training"]["stalled_since"]
    session.finish(session.jobs.job(training_id).attempt.placement.task_id)
    assert relaunch("ps", "--all", columns=200).stdout.splitlines()[1].split()[6] == "-"


def noting(session, job_id):
    minute = session.clock.now()
    assert note_progress_of([session.jobs.job(job_id)], minute, session.deps, lambda _pages: True) == 1


@pytest.mark.parametrize(
    ("noted", "state", "shown"),
    [
        (NotedProgress(120, NOW, 1), JobState.RUNNING, "step 120"),
        (NotedProgress(120, NOW, 1, total_steps=200), JobState.WAITING, "120/200"),
        (NotedProgress(120, NOW, 1, total_steps=200), JobState.RUNNING, "120/200"),
        (
            NotedProgress(120, NOW, 1, total_steps=200, finishes_at=NOW + 490 * SECOND),
            JobState.RUNNING,
            "120/200 · 9m left",
        ),
        (NotedProgress(120, NOW, 1, total_steps=200, finishes_at=NOW), JobState.RUNNING, "120/200 · due"),
    ],
)
def test_a_list_says_in_few_words_how_far_a_training_is(noted, state, shown):
    console = Console(file=io.StringIO(), width=160)
    summary = replace(summarize_job(make_running_job(noted_progress=noted)), state=state, running=None)

    console.print(render_jobs([summary], NOW))

    assert shown in console.file.getvalue()


def test_the_pages_of_a_job_elsewhere_are_shown(relaunch, session):
    session.deps.definitions.save_definition(make_definition(links={"W&B": "https://wandb.ai/acme/{job_id}/{attempt}"}))
    job_id = session.run_interrupted_job()
    link = f"https://wandb.ai/acme/{job_id}/2"

    assert all(f"W&B {link}" in flat(relaunch(command, job_id).stdout) for command in ("show", "explain"))
    assert relaunch("show", job_id, "--json").document["links"] == {"W&B": link}
    assert relaunch("definitions", "--json").document["definitions"][0]["links"] == {
        "W&B": "https://wandb.ai/acme/{job_id}/{attempt}"
    }


def test_a_definition_without_checkpoints_says_nothing_of_them(relaunch, session):
    session.deps.definitions.save_definition(make_definition(checkpoint_uri=None))
    job_id = session.submit()

    assert "Saved       unknown: its definition has no `checkpoint`" in relaunch("show", job_id).stdout
    assert relaunch("show", job_id, "--json").document["checkpoints"] is None
