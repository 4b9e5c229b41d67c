"""What a job has saved, in show and explain."""

import pytest

from fakes.builders import NOW, make_definition
from fakes.cli_session import flat
from relaunch.core.jobs.reported import Reported
from relaunch.ports import PermanentError

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


def test_a_definition_without_checkpoints_says_nothing_of_them(relaunch, session):
    session.deps.definitions.save_definition(make_definition(checkpoint_uri=None))
    job_id = session.submit()

    assert "Saved       unknown: its definition has no `checkpoint`" in relaunch("show", job_id).stdout
    assert relaunch("show", job_id, "--json").document["checkpoints"] is None
