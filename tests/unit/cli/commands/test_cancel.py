"""cancel."""

import pytest


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
