"""show."""

import io
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from fakes.builders import NOW, make_definition, make_offering, make_running_attempt, make_running_job
from relaunch.core.definitions.definition import InputRule
from relaunch.core.jobs.charges import Charges
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.explanation import explain
from relaunch.ports import JobHistory
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch_cli.views.jobs import render_job


def test_show_has_the_facts_and_a_line_per_attempt(relaunch, session):
    job_id = session.run_interrupted_job()
    session.clock.advance(3600)

    lines = relaunch("show", job_id).stdout.splitlines()
    document = relaunch("show", job_id, "--json").document

    assert lines[0].split() == ["Job", job_id]
    assert any(line.startswith("Ran         3h00m, 1 interruption, 0 failures, about $0.48") for line in lines)
    assert [attempt["purchase"] for attempt in document["attempts"]] == ["spot", "spot"]
    assert document["attempts"][0]["stop"]["kind"] == "interruption"
    assert document["run_seconds"] == pytest.approx(3 * 3600 + 40)
    assert document["state"] == "RUNNING"


def test_the_table_and_the_line_above_say_alike_how_long_a_program_ran_whose_task_stops():
    later = NOW + timedelta(seconds=21)
    attempt = make_running_attempt(program_ended_at=NOW + timedelta(seconds=12), task_status="DEACTIVATING")
    job = make_running_job(state=JobState.STOPPING, attempt=attempt)
    console = Console(file=io.StringIO(), width=100)

    with console.capture() as capture:
        shown = JobHistory(job, (attempt,), (), ())
        console.print(render_job(shown, explain(job, later), later, ()))

    assert "Ran         12s" in capture.get()
    assert capture.get().split()[-2:] == ["12s", "DEACTIVATING"]


@pytest.mark.parametrize(("usd", "shown"), [(0.0, "0 failures"), (0.004, "0 failures, less than $0.01")])
def test_what_cost_less_than_a_cent_is_said_to(usd: float, shown: str) -> None:
    job = make_running_job(state=JobState.SUCCEEDED, attempt=None)
    job = replace(job, totals=replace(job.totals, cost_usd=usd))
    console = Console(file=io.StringIO(), width=100)

    with console.capture() as capture:
        console.print(render_job(JobHistory(job, (), (), ()), explain(job, NOW), NOW, ()))

    assert next(line for line in capture.get().splitlines() if line.startswith("Ran")).endswith(shown)


def run_at(session, **prices):
    """Run a job for an hour on the only offering, at these prices, until it has ended; return its id."""
    session.deps.definitions.save_definition(make_definition())
    session.offerings.available = (make_offering("g5.xlarge", **prices),)
    job_id = session.submit()
    task = session.launch(job_id)
    session.run(task)
    session.finish(task)
    return job_id


def test_an_upper_limit_of_a_price_and_the_cost_at_it_are_shown_as_such(relaunch, session):
    job_id = run_at(session, price_usd_per_hour=None, on_demand_usd_per_hour=1.006)

    text, document = relaunch("show", job_id).stdout, relaunch("show", job_id, "--json").document

    assert "0 failures, up to $1.01" in text
    assert "<=1.0060" in text
    assert (document["cost_usd"], document["is_cost_limit"]) == (pytest.approx(1.006), True)
    attempt = document["attempts"][0]
    assert (attempt["price_usd_per_hour"], attempt["is_price_limit"]) == (1.006, True)
    assert "at up to $1.0060/h" in " ".join(relaunch("explain", job_id).stdout.split())
    assert "<=$1.01" in relaunch("ps", "--all").stdout
    row = relaunch("ps", "--all", "--json").document["jobs"][0]
    assert (row["cost_usd"], row["is_cost_limit"]) == (pytest.approx(1.006), True)


def test_a_cost_at_an_unknown_price_is_not_shown_as_nothing(relaunch, session):
    job_id = run_at(session, price_usd_per_hour=None, on_demand_usd_per_hour=None)

    text, document = relaunch("show", job_id).stdout, relaunch("show", job_id, "--json").document

    assert "0 failures, at an unknown cost" in text
    assert (document["cost_usd"], document["is_cost_limit"]) == (None, False)
    assert document["attempts"][0]["price_usd_per_hour"] is None
    assert relaunch("ps", "--all", columns=80).stdout.splitlines()[1].split()[-1] == "?"
    assert relaunch("ps", "--all", "--json").document["jobs"][0]["cost_usd"] is None


BY_ZONE = {"price_usd_per_hour": 0.9, "usd_per_hour_by_zone": {"us-east-1a": 0.5, "us-east-1b": 0.9}}
"""The tasks of a session are in us-east-1a."""


def test_every_answer_has_the_cost_in_the_zone_of_the_task_not_in_the_dearest(relaunch, session):
    session.deps.definitions.save_definition(make_definition())
    session.offerings.available = (make_offering("g5.xlarge", **BY_ZONE),)
    job_id = session.submit()
    task = session.launch(job_id)
    session.run(task)
    session.clock.advance(2 * 3600)

    usd = [relaunch(name, job_id, "--json").document["cost_usd"] for name in ("show", "explain")]
    usd += [job["cost_usd"] for job in relaunch("ps", "--json").document["jobs"]]
    texts = {
        name: relaunch(name, *arguments).stdout for name, *arguments in (("ps",), ("show", job_id), ("explain", job_id))
    }

    assert usd == [pytest.approx(1.0)] * 3
    assert all("$1.00" in text for text in texts.values())
    assert "about $1.00" in texts["explain"]
    assert " 0.5000 " in texts["show"]
    assert "at $0.5000 to $0.9000/h, by zone" in " ".join(texts["explain"].split())
    session.finish(task)
    ended = relaunch("show", job_id, "--json").document
    assert ended["cost_usd"] == relaunch("ps", "--all", "--json").document["jobs"][0]["cost_usd"] == pytest.approx(1.5)
    assert (ended["attempts"][0]["price_usd_per_hour"], ended["is_cost_limit"]) == (0.5, False)


def test_a_reason_is_whole_and_once_in_show_and_short_in_ps(relaunch, session):
    session.offerings.available = tuple(make_offering(f"g{number}.xlarge", zone="us-east-1a") for number in range(5, 9))
    session.deps.definitions.save_definition(make_definition(max_price_usd_per_hour=0.01))
    job_id = session.submit()
    launch_attempt(job_id, session.deps)
    reason = relaunch("show", job_id, "--json").document["reason"]

    shown = relaunch("show", job_id).stdout
    (line,) = relaunch("ps").stdout.splitlines()[1:]

    assert len(reason) > 100
    assert (shown.count(reason), "Reason" in shown) == (1, False)
    assert line.endswith(f"{reason[:99]}…")
    relaunch("cancel", job_id, "--reason", "a typo")
    assert "Reason      a typo (cancelled by" in relaunch("show", job_id).stdout


def test_inputs_of_a_job_are_shown(relaunch, session):
    session.deps.definitions.save_definition(make_definition(inputs={"rate": InputRule("[0-9.]+", "0.1")}))

    assert "rate=0.1" in relaunch("show", session.submit()).stdout


def test_the_owner_of_the_definition_is_shown_as_it_is_now(relaunch, session):
    job_id = session.submit()
    owned, document = relaunch("show", job_id).stdout, relaunch("show", job_id, "--json").document
    session.deps.definitions.delete_definition("resnet")
    removed = relaunch("show", job_id).stdout

    assert "Owner       relaunch.yaml, applied by arn:aws:iam::111122223333:user/ada" in owned
    assert document["definition_owner"] == {
        "repository": None,
        "file": "relaunch.yaml",
        "caller": "arn:aws:iam::111122223333:user/ada",
    }
    assert "Owner" not in removed
    assert relaunch("show", job_id, "--json").document["definition_owner"] is None


def test_what_machines_of_the_stack_cost_is_shown_with_the_part_without_training_and_the_saving(relaunch, session):
    job_id = run_at(session, price_usd_per_hour=0.5)
    job = session.deps.jobs.load_job(job_id)
    charges = Charges(machines_usd=3.0, on_demand_usd=4.0, own_tasks_usd=0.2, trained_usd=1.0)
    session.deps.jobs.save_job(Decision(replace(job, charges=charges)))

    text = " ".join(relaunch("show", job_id).stdout.split())
    rows = [relaunch("show", job_id, "--json").document, relaunch("ps", "--all", "--json").document["jobs"][0]]

    assert "Machines $3.00, of which $2.00 without training (boot, pull, save, idle); 25% less than $4.00" in text
    assert "on demand for the same time" in text
    assert "Elsewhere $0.30, the running time of tasks on machines that are not the stack's" in text
    for row in rows:
        assert row["cost_usd"] == pytest.approx(3.3)
        assert (row["machines_usd"], row["machines_idle_usd"], row["machines_on_demand_usd"]) == (3.0, 2.0, 4.0)
    unknown = replace(charges, on_demand_usd=0.0)
    session.deps.jobs.save_job(Decision(replace(session.deps.jobs.load_job(job_id), charges=unknown)))
    assert "on demand" not in relaunch("show", job_id).stdout
