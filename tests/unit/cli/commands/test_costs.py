"""costs."""

import json
from datetime import timedelta

import pytest

from fakes.builders import make_job
from fakes.stored_machines import change, make_claim, make_machine
from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.charges import DayCost, first_holdings
from relaunch.core.machines.machine import MachineState

RESNET = CostKey("resnet", "acme/vision", "github", "g5.xlarge", "spot")
BERT = CostKey("bert", "", "s3", "", "")


@pytest.fixture
def paid(session):
    """Save what two definitions cost today, yesterday and a month ago."""
    today = session.clock.now().date()
    job = make_job()
    session.deps.jobs.create_job(job, [])
    earlier = DayCost(today - timedelta(days=31), 7.0, 7.0, 1.0)
    costs = (
        CostEntry(
            RESNET, (earlier, DayCost(today - timedelta(days=1), 1.0, 4.0, 2.0), DayCost(today, 0.004, 0.01, 0.1))
        ),
        CostEntry(BERT, (DayCost(today, 0.0, 0.0, 3.0, 3.0),)),
    )
    session.deps.jobs.save_job(Decision(session.deps.jobs.load_job(job.job_id), costs=costs))
    return job


def lines(result):
    return [line.split() for line in result.stdout.splitlines()]


def test_costs_of_this_month_by_definition(relaunch, session, paid):
    today = session.clock.now().date()
    result = relaunch("costs")
    assert lines(result) == [
        ["DEFINITION", "HOURS", "COST", "ON", "DEMAND", "SAVED"],
        ["resnet", "2.10", "$1.00", "$4.01", "75%"],
        ["bert", "3.00", "-", "-", "-"],
        ["total", "5.10", "$1.00", "$4.01", "75%"],
    ]
    assert f"{today.replace(day=1)} to {today} (UTC); 3.00 hours of an unknown price count as 0" in result.stderr


def test_other_days_and_groups(relaunch, session, paid):
    today = session.clock.now().date()
    since = today - timedelta(days=31)
    result = relaunch("costs", "--since", str(since), "--by", "month", "--by", "repository")
    assert [line[:3] for line in lines(result)[1:-1]] == [
        [f"{since:%Y-%m}", "acme/vision", "1.00"],
        [f"{today:%Y-%m}", "no", "repository"],
        [f"{today:%Y-%m}", "acme/vision", "2.10"],
    ]
    of_month = relaunch("costs", "--since", f"{since:%Y-%m}", "--until", f"{since:%Y-%m}")
    assert lines(of_month)[-1][:3] == ["total", "1.00", "$7.00"]
    nothing = relaunch("costs", "--since", "2024-09", "--until", "2024-10-03")
    assert "no costs from 2024-09-01 to 2024-10-03" in nothing.stderr
    assert f"from {today.replace(day=1)} to {today} (UTC)"[5:] in relaunch("costs", "--until", "9999-12").stderr


def test_what_a_machine_has_cost_that_is_not_over_is_part_of_the_costs(relaunch, session, paid):
    now = session.clock.now()
    claim = make_claim(paid.job_id)
    machine = make_machine(
        state=MachineState.READY,
        claims=(claim,),
        holdings=first_holdings(claim, now - timedelta(minutes=30)),
        paid_since=now - timedelta(minutes=30),
        usd_per_hour=8.0,
        wake_at=now,
    )
    session.deps.machines.save_machine(change(machine))
    result = relaunch("costs")
    assert lines(result)[1][:3] == ["resnet", "2.60", "$5.00"]
    assert "$4.00 of it by what is not over" in result.stderr


def test_json_and_csv(relaunch, session, paid):
    document = json.loads(relaunch("costs", "--json", "--by", "caller").stdout)
    today = session.clock.now().date()
    assert (document["since"], document["until"], document["by"]) == (f"{today:%Y-%m}-01", f"{today}", ["caller"])
    github, s3 = document["costs"]
    assert github == {
        "caller": "github",
        "usd": 1.004,
        "on_demand_usd": 4.01,
        "hours": 2.1,
        "unpriced_hours": 0.0,
        "running_usd": 0.0,
    }
    assert s3["unpriced_hours"] == document["total"]["unpriced_hours"] == 3.0
    assert relaunch("costs", "--csv", "--by", "type").stdout.splitlines() == [
        "type,hours,unpriced_hours,usd,on_demand_usd,running_usd",
        "g5.xlarge,2.100000,0.000000,1.004000,4.010000,0.000000",
        ",3.000000,3.000000,0.000000,0.000000,0.000000",
    ]
    assert json.loads(relaunch("costs", "--json", "--since", "2024-09", "--until", "2024-09").stdout)["costs"] == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--by", "definitions"), "did you mean definition?"),
        (("--by", "weather"), "costs are grouped by definition, repository"),
        (("--since", "november"), "'november' is neither a day nor a month"),
        (("--since", "2026-13"), "'2026-13' is neither a day nor a month"),
        (("--since", "2026-11-02", "--until", "2026-11-01"), "2026-11-01 is before 2026-11-02"),
        (("--since", "0001-01"), "costs of 0001-01-01 are not kept"),
        (("--json", "--csv"), "--json and --csv cannot be given together"),
    ],
)
def test_what_cannot_be_shown(relaunch, options, error):
    result = relaunch("costs", *options)
    assert result.exit_code == 2
    assert error in result.stderr


def test_what_was_left_unread_is_said(relaunch, session, paid, monkeypatch):
    monkeypatch.setattr("relaunch_cli.running_costs.MOST", 0)
    now = session.clock.now()
    session.deps.machines.save_machine(change(make_machine(state=MachineState.READY, wake_at=now)))
    assert "the rest is missing" in relaunch("costs").stderr
    assert json.loads(relaunch("costs", "--json").stdout)["is_cut"] is True


def test_a_value_that_a_spreadsheet_would_compute_is_text(relaunch, session, paid):
    key = CostKey("=cmd\x1b", "", "s3", "g5.xlarge", "spot")
    today = session.clock.now().date()
    job = session.deps.jobs.load_job(paid.job_id)
    session.deps.jobs.save_job(Decision(job, costs=(CostEntry(key, (DayCost(today, 1.0, 1.0, 1.0),)),)))
    assert "'=cmd\N{REPLACEMENT CHARACTER},1.0" in relaunch("costs", "--csv").stdout
