"""How often a training should save is said where its saves were measured, in explain and plan."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.cli_session import flat
from relaunch.core.jobs.reported import Reported
from relaunch.usecases.note_progress import note_progress_of

MINUTE = timedelta(minutes=1)


@pytest.fixture
def job_id(session):
    """Return the id of a job on spot that saves once in four hours, for 30 seconds each."""
    session.deps.definitions.save_definition(make_definition(total_steps=1000))
    job_id = session.run_interrupted_job()
    started_at = session.jobs.job(job_id).attempt.started_at
    session.deps.checkpoints.complete[job_id] = f"s3://acme-checkpoints/resnet/{job_id}/attempt-2/step-0000200/"
    session.deps.checkpoints.earlier = ((100, started_at + 240 * MINUTE),)
    session.deps.checkpoints.saved_at = started_at + 480 * MINUTE
    session.deps.checkpoints.reported = Reported(save_seconds=30.0)
    session.clock.set(started_at + 490 * MINUTE)
    return job_id


def test_explain_says_what_the_interval_costs_and_which_is_better(relaunch, job_id):
    shown = flat(relaunch("explain", job_id, columns=400).stdout)
    advice = relaunch("explain", job_id, "--json").document["explanation"]["advice"]

    assert "it saves every 4h, each save stops it for 30 s, and" in shown
    assert any("of a day that it runs; every" in each and each.endswith("(Young, Daly)") for each in advice)


def test_without_a_measured_save_nothing_is_said(relaunch, session, job_id):
    session.deps.checkpoints.reported = Reported()

    assert "it saves every" not in relaunch("explain", job_id, columns=400).stdout


def test_without_a_selection_of_its_offering_nothing_is_said(relaunch, session, job_id, monkeypatch):
    history = session.jobs.load_history
    monkeypatch.setattr(session.jobs, "load_history", lambda given: replace(history(given), selections=()))

    assert "it saves every" not in relaunch("explain", job_id, columns=400).stdout


def test_a_plan_goes_by_the_newest_job_of_its_definition(relaunch, session, job_id):
    before = relaunch("plan", "resnet", columns=400)
    note_progress_of([session.jobs.job(job_id)], session.clock.now(), session.deps, lambda _pages: True)
    after = relaunch("plan", "resnet", columns=400)

    assert "it saves every" not in before.stderr
    assert "resnet: at its latest measured job, it saves every 4h" in flat(after.stderr)
    assert any(
        "it saves every 4h" in each for each in relaunch("plan", "resnet", "--json").document["plans"][0]["notices"]
    )


def test_of_what_nothing_satisfies_no_jobs_are_read(relaunch, session, job_id):
    session.offerings.available = ()
    session.jobs.list_jobs = None

    assert "it saves every" not in relaunch("plan", "resnet").stderr
