"""retry: one more job, from the checkpoint of another one."""

import pytest

from fakes.builders import make_definition
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job

URI = "s3://acme-checkpoints/resnet/"


@pytest.fixture
def failed(session) -> str:
    """A job that failed and left the checkpoint of step 300."""
    session.deps.definitions.save_definition(make_definition(max_failures=0, checkpoint_uri=URI))
    job_id = session.submit()
    task = session.launch(job_id)
    session.run(task)
    session.deps.checkpoints.complete[job_id] = f"{URI}{job_id}/attempt-1/step-0000300/"
    session.finish(task, 1)
    assert session.jobs.job(job_id).state is JobState.FAILED
    return job_id


def jobs_of(session) -> list[str]:
    return [summary.job_id for summary in session.jobs.list_jobs(10)[0]]


def test_a_retry_prints_the_id_alone_and_says_where_it_resumes(relaunch, session, failed):
    result = relaunch("retry", failed)

    (new,) = set(jobs_of(session)) - {failed}
    assert (result.exit_code, result.stdout) == (0, f"{new}\n")
    assert f"resumes from {URI}{failed}/attempt-1/step-0000300/" in result.stderr
    assert session.jobs.job(new).resume_from == (ResumePoint(failed, URI),)
    assert session.jobs.job(new).trigger.caller == session.caller
    session.launch(new)
    assert session.tasks.requests[-1].environment["RELAUNCH_RESUME_URI"] == f"{URI}{failed}/attempt-1/step-0000300/"


@pytest.mark.parametrize(
    ("start", "step", "attempt"),
    [
        ("300", 300, None),
        ("step-300", 300, None),
        ("step-0000300/", 300, None),
        ("attempt-1", None, 1),
        ("attempt-1/", None, 1),
        ("attempt-1/300", 300, 1),
        ("attempt-1/step-0000300/", 300, 1),
        (f"{URI}JOB/attempt-1/step-0000300/", 300, 1),
        (f"{URI}JOB/attempt-1/step-0000300", 300, 1),
    ],
)
def test_a_checkpoint_is_named_in_any_of_these_ways(relaunch, session, failed, start, step, attempt):
    document = relaunch("retry", failed, "--from", start.replace("JOB", failed), "--json").document

    assert session.jobs.job(document["job_id"]).resume_from == (ResumePoint(failed, URI, step, attempt),)


@pytest.mark.parametrize(
    "start", ["newest", "-1", "/", "attempt-x", f"{URI}other-job/attempt-1/step-0000300/", "s3://b/step-300/", "3e2"]
)
def test_what_names_no_checkpoint_of_the_job_is_refused(relaunch, session, failed, start):
    result = relaunch("retry", failed, f"--from={start}")

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"is no checkpoint of {failed}" in result.stderr
    assert f"a URI below {URI}{failed}/" in result.stderr
    assert jobs_of(session) == [failed]


def test_a_checkpoint_that_is_not_there_is_not_found_and_the_newest_is_named(relaunch, session, failed):
    result = relaunch("retry", failed, "--from", "200")
    session.deps.checkpoints.complete.clear()
    without = relaunch("retry", failed, "--from", "200")

    assert (result.exit_code, without.exit_code) == (3, 3)
    assert f"there is no complete checkpoint of step 200 below {URI}{failed}/" in result.stderr
    assert f"the newest is {URI}{failed}/attempt-1/step-0000300/" in result.stderr
    assert f"{failed} left no complete checkpoint at all" in without.stderr
    assert jobs_of(session) == [failed]


def test_without_any_checkpoint_it_starts_over_and_says_so(relaunch, session, failed):
    session.deps.checkpoints.complete.clear()

    result = relaunch("retry", failed)

    assert result.exit_code == 0
    assert f"starts from the beginning: there is no complete checkpoint below {URI}{failed}/" in result.stderr


@pytest.mark.parametrize("error", [PermanentError("AWS denies ListObjectsV2"), TransientError("no answer")])
def test_whoever_may_not_read_checkpoints_may_retry_all_the_same(relaunch, session, failed, error):
    session.deps.checkpoints.refusal = error

    result = relaunch("retry", failed, "--from", "300")

    assert result.exit_code == 0
    assert f"its checkpoint is looked for when it is launched: {error}" in result.stderr
    assert session.jobs.job(result.stdout.strip()).resume_from == (ResumePoint(failed, URI, 300),)


def test_a_job_that_has_not_ended_is_not_retried(relaunch, session):
    job_id = session.submit()

    result = relaunch("retry", job_id)
    cancel_job(job_id, "a typo", session.deps)
    cancelled = relaunch("retry", job_id)

    assert result.exit_code == 2
    assert f"job {job_id} is WAITING: wait until it has ended, or cancel it" in result.stderr
    assert cancelled.exit_code == 0


def test_every_call_is_a_job_of_its_own_unless_a_key_says_otherwise(relaunch, failed):
    first, second = (relaunch("retry", failed).stdout for _ in range(2))
    once, again = (relaunch("retry", failed, "--key", "a") for _ in range(2))
    other = relaunch("retry", failed, "--key", "a", "--from", "300")

    assert first != second
    assert once.stdout == again.stdout
    assert "is there already" in again.stderr
    assert "resumes from" not in again.stderr
    assert other.exit_code == 2
    assert "with other values of the checkpoint" in other.stderr


def test_a_job_that_is_not_there_and_a_definition_that_is_gone_are_not_found(relaunch, session, failed):
    session.deps.definitions.delete_definition("resnet")

    assert relaunch("retry", "resnet-0").exit_code == 3
    gone = relaunch("retry", failed)
    assert gone.exit_code == 3
    assert "there is no job definition 'resnet'; register it with `relaunch apply`" in gone.stderr


def test_waiting_ends_with_the_new_job(relaunch, session, failed):
    session.on_pause = [lambda: cancel_job(next(iter({*jobs_of(session)} - {failed})), "enough", session.deps)]

    assert relaunch("retry", failed, "--wait").exit_code == 130
