"""cancel."""

import pytest

from relaunch.ports import PermanentError


@pytest.mark.parametrize(
    ("prepare", "text", "state"),
    [
        (lambda _stage, _job: None, "was WAITING and is CANCELLED now", "CANCELLED"),
        (lambda session, job: session.run(session.launch(job)), "was RUNNING: its task is being stopped", "STOPPING"),
    ],
)
def test_cancel_prints_the_state_before_and_after(relaunch, session, prepare, text, state):
    job_id = session.submit()
    prepare(session, job_id)

    result = relaunch("cancel", job_id, "--reason", "a typo")

    assert result.exit_code == 0
    assert text in result.stdout
    assert session.jobs.job(job_id).state == state
    assert relaunch("cancel", job_id, "--json").document["state_before"] == state


def test_cancelling_a_job_that_is_over_changes_nothing(relaunch, session):
    job_id = session.submit()
    relaunch("cancel", job_id)

    assert relaunch("cancel", job_id).stdout == f"{job_id} has already ended: CANCELLED\n"


def test_several_jobs_are_cancelled_at_once_and_each_only_once(relaunch, session):
    first, second, third = (session.submit(key) for key in "abc")

    result = relaunch("cancel", first, second, first)

    assert [line.split()[0] for line in result.stdout.splitlines()] == [first, second]
    assert {session.jobs.job(each).state for each in (first, second)} == {"CANCELLED"}
    assert session.jobs.job(third).state == "WAITING"


def test_the_documents_of_several_jobs_are_a_list(relaunch, session):
    jobs = [session.submit(key) for key in "ab"]

    documents = relaunch("cancel", *jobs, "--json").document["jobs"]

    assert [(each["job_id"], each["state_before"], each["state"]) for each in documents] == [
        (job_id, "WAITING", "CANCELLED") for job_id in jobs
    ]


def test_a_job_that_is_not_there_keeps_the_others_from_being_cancelled(relaunch, session):
    job_id = session.submit()

    result = relaunch("cancel", job_id, f"{job_id}x")

    assert (result.exit_code, result.stdout) == (3, "")
    assert f"did you mean {job_id}?" in result.stderr
    assert session.jobs.job(job_id).state == "WAITING"


def refuse(session, monkeypatch, *refused: str) -> None:
    save = session.jobs.save_job

    def save_job(decision):
        if decision.job.job_id in refused:
            raise PermanentError("AWS denies TransactWriteItems")
        return save(decision)

    monkeypatch.setattr(session.jobs, "save_job", save_job)


@pytest.mark.parametrize("as_json", [False, True])
def test_a_job_that_cannot_be_cancelled_does_not_keep_the_others_from_it(relaunch, session, monkeypatch, as_json):
    first, second, third = (session.submit(key) for key in "abc")
    refuse(session, monkeypatch, second)

    result = relaunch("cancel", first, second, third, *(["--json"] if as_json else []))

    assert result.exit_code == 5
    assert {session.jobs.job(each).state for each in (first, third)} == {"CANCELLED"}
    assert f"{second}: AWS denies TransactWriteItems" in result.stderr
    assert "1 of 3 jobs are not cancelled" in result.stderr
    if as_json:
        assert [each["job_id"] for each in result.document["jobs"]] == [first, third]


def test_the_error_of_the_only_job_is_the_error(relaunch, session, monkeypatch):
    job_id = session.submit()
    refuse(session, monkeypatch, job_id)

    result = relaunch("cancel", job_id)

    assert (result.exit_code, result.stdout) == (5, "")
    assert result.stderr == "relaunch: AWS denies TransactWriteItems\n"


@pytest.mark.parametrize(("options", "reason"), [((), ""), (("--reason", "a typo"), "a typo ")])
def test_the_job_says_who_cancelled_it(relaunch, session, options, reason):
    job_id = session.submit()

    relaunch("cancel", job_id, *options)

    by = "cancelled by arn:aws:iam::111122223333:user/ada"
    assert session.jobs.job(job_id).reason == (f"{reason}({by})" if reason else by)


def test_the_newest_job_is_not_cancelled_by_a_dash(relaunch, session):
    job_id = session.submit()

    assert relaunch("cancel", "-").exit_code == 2
    assert session.jobs.job(job_id).state == "WAITING"


def test_what_becomes_of_a_job_is_wrapped_at_words(relaunch, session):
    job_id = session.submit()
    session.run(session.launch(job_id))

    lines = relaunch("cancel", job_id, columns=60).stdout.splitlines()

    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith("the job is CANCELLED")
