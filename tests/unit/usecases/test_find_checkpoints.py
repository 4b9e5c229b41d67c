"""Which checkpoint a retry resumes from."""

import pytest

from fakes.sources import FakeCheckpoints
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.ports import PermanentError
from relaunch.usecases.find_checkpoints import MissingCheckpointError, find_resume_uri

FIRST, SECOND = ResumePoint("a-2", "s3://b/"), ResumePoint("a-1", "s3://b/")
SAVED = "s3://b/a-1/attempt-2/step-0000300/"


def test_the_first_point_that_has_one_counts():
    checkpoints = FakeCheckpoints({"a-1": SAVED})

    assert find_resume_uri((FIRST, SECOND), checkpoints) == SAVED
    checkpoints.complete["a-2"] = "s3://b/a-2/attempt-1/step-0000400/"
    assert find_resume_uri((FIRST, SECOND), checkpoints) == checkpoints.complete["a-2"]


def test_to_have_none_is_no_error_unless_one_was_chosen():
    assert find_resume_uri((), FakeCheckpoints()) is None
    assert find_resume_uri((FIRST, SECOND), FakeCheckpoints()) is None
    with pytest.raises(MissingCheckpointError, match="there is no complete checkpoint of step 7 below s3://b/a-1/"):
        find_resume_uri((ResumePoint("a-1", "s3://b/", 7),), FakeCheckpoints({"a-1": SAVED}))


def test_what_cannot_be_used_is_reported_and_named_where_a_certain_one_was_asked_for():
    checkpoints = FakeCheckpoints({"a-1": SAVED})
    checkpoints.unusable = ("attempt-9/step-6 cannot be used: it is empty",)
    reasons: list[str] = []

    assert find_resume_uri((SECOND,), checkpoints, reasons.append) == SAVED
    assert reasons == list(checkpoints.unusable)
    with pytest.raises(
        MissingCheckpointError, match=r"below s3://b/a-1/; attempt-9/step-6 cannot be used: it is empty"
    ):
        find_resume_uri((ResumePoint("a-1", "s3://b/", 7),), checkpoints)


@pytest.mark.parametrize(("step", "attempt"), [(300, None), (None, 2), (300, 2)])
def test_the_chosen_one_is_found(step, attempt):
    assert find_resume_uri((ResumePoint("a-1", "s3://b/", step, attempt),), FakeCheckpoints({"a-1": SAVED})) == SAVED


def test_what_cannot_be_read_is_no_missing_checkpoint():
    checkpoints = FakeCheckpoints()
    checkpoints.refusal = PermanentError("AccessDenied")

    with pytest.raises(PermanentError, match="AccessDenied") as raised:
        find_resume_uri((FIRST,), checkpoints)

    assert not isinstance(raised.value, MissingCheckpointError)
