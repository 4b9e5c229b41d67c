"""/costs."""

from datetime import timedelta
from unittest.mock import patch

import pytest

from fakes.builders import make_job
from fakes.dashboard_pages import HOSTILE, Pages, text_of
from fakes.stored_machines import change, make_claim, make_machine
from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.charges import DayCost, first_holdings
from relaunch.core.machines.machine import MachineState

RESNET = CostKey("resnet", "acme/vision", "github", "g5.xlarge", "spot")


@pytest.fixture
def today(session):
    session.clock.advance(timedelta(days=14 - session.clock.now().day))
    return session.clock.now().date()


def pay(session, *entries):
    """Save what was paid."""
    session.deps.jobs.create_job(make_job(), [])
    session.deps.jobs.save_job(Decision(session.deps.jobs.load_job(make_job().job_id), costs=entries))


@pytest.fixture
def paid(session, today):
    earlier = DayCost(today - timedelta(days=40), 7.0, 7.0, 1.0)
    days = (earlier, DayCost(today - timedelta(days=2), 1.0, 4.0, 2.0), DayCost(today, 0.5, 0.5, 0.1))
    unknown = CostEntry(CostKey("bert", "", "s3", "", ""), (DayCost(today, 0.0, 0.0, 3.0, 3.0),))
    pay(session, CostEntry(RESNET, days), unknown)


def test_this_month_by_definition_with_total_and_saving(session, paid, today):
    text = Pages(session).text("/costs")

    assert f"{today.replace(day=1)} to {today} $1.50 5.10 hours of machines, 3.00 of them of an unknown price" in text
    assert "On demand $4.50 67% of it was saved" in text
    assert "By definition Definition Share Hours Paid On demand Saved Not over resnet 2.10 $1.50 $4.50 67% -" in text
    assert "bert 3.00 - - - -" in text


def test_days_are_bars_of_what_was_paid_within_what_it_was_on_demand(session, paid, today):
    html = Pages(session).html("/costs")
    bars = html.partition('<svg class="chart"')[2].partition("</svg>")[0]

    assert bars.count('<rect class="paid"') == today.day
    assert [each for each in range(1, 15) if f">{today:%b} {each}</text>" in bars] == [1, 4, 7, 10, 13]
    two_days_ago = today - timedelta(days=2)
    drawn = bars.partition(f"<title>{two_days_ago:%b} {two_days_ago.day}: $1.00, on demand $4.00</title>")[2]
    # Of the 82 % that are for bars the highest takes all, and what was paid a quarter.
    assert 'y="6.000%"' in drawn.splitlines()[1]
    assert 'height="82.000%"' in drawn.splitlines()[1]
    assert 'y="67.500%"' in drawn.splitlines()[2]
    assert 'height="20.500%"' in drawn.splitlines()[2]
    table = text_of(html).partition("As a table Day Hours Paid On demand ")[2]
    assert table.startswith(f"{two_days_ago:%b} {two_days_ago.day} 2.00 $1.00 $4.00 {today:%b} {today.day} 3.10 $0.50")


@pytest.mark.parametrize(
    ("by", "rows"), [("repository", "no repository 3.00"), ("caller", "github 2.10"), ("type", "unknown 3.00")]
)
def test_other_groups(session, paid, by, rows):
    assert rows in Pages(session).text(f"/costs?by={by}")


def test_a_long_time_is_drawn_by_month(session, paid, today):
    since = today - timedelta(days=370)
    text = Pages(session).text(f"/costs?since={since:%Y-%m}&by=repository")

    assert "By month" in text
    assert "acme/vision 3.10 $8.50" in text
    assert f"{today:%b %Y} 5.10 $1.50" in text
    assert '<a href="/?repository=acme%2Fvision">' in Pages(session).html("/costs?by=repository")


def test_what_runs_is_part_of_the_sum_and_is_read_once_a_minute(session, paid):
    now = session.clock.now()
    begun = now - timedelta(minutes=30)
    claim = make_claim(make_job().job_id)
    machine = make_machine(
        state=MachineState.READY,
        claims=(claim,),
        holdings=first_holdings(claim, begun),
        paid_since=begun,
        usd_per_hour=8.0,
        wake_at=now,
    )
    session.deps.machines.save_machine(change(machine))
    pages = Pages(session)
    store = session.deps.machines
    with patch.object(store, "load_machine", wraps=store.load_machine) as load:
        assert "Not over yet $4.00" in pages.text("/costs")
        session.clock.advance(59)
        text = pages.text("/costs?by=type")
        assert load.call_count == 1
    assert f"Read at {now:%H:%M:%S}" in text
    assert "at most once in 60 seconds" in text
    earlier = f"{now - timedelta(days=40):%Y-%m}"
    assert "Not over yet nothing" in pages.text(f"/costs?since={earlier}&until={earlier}")


def test_budgets_show_what_is_used_and_left(session, today):
    month = f"{today:%Y-%m}"
    session.deps.budgets.set_budget(Budget("stack"), 200.0, None, {month: 150.0})
    session.deps.budgets.set_budget(Budget("definition/resnet"), 50.0, 0.0, {month: 60.0})
    session.deps.budgets.set_budget(Budget("caller/ada"), None, None, {})

    html = Pages(session).html("/costs")

    text = text_of(html)
    assert f"stack {month} 75 % $150.00 $200.00 $50.00" in text
    assert f"definition/resnet {month} 120 % $60.00 $50.00 -$10.00 used up: no job of it starts" in text
    assert "definition/resnet in all $60.00 $0.00" in text
    assert "caller/ada" not in text
    assert '<progress max="100" value="100.0" aria-label="Used of definition/resnet' in html


def test_nothing_was_paid(session):
    text = Pages(session).text("/costs")

    assert "No costs: no machine was paid for a job in these days" in text
    assert "No budget has a limit" in text


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("by=definitions", "did you mean definition?"),
        ("since=november", "'november' is neither a day nor a month"),
        ("since=2026-11-02&until=2026-11-01", "give a day that is not before --since"),
        ("since=0001-01", "are not kept"),
    ],
)
def test_what_cannot_be_shown_is_said_as_by_the_command(session, query, words):
    session.clock.advance(timedelta(days=365))
    response = Pages(session).answer(f"/costs?{query}")

    assert response.status == 400
    assert words in text_of(response.body.decode())


def test_what_others_named_is_text(session, today):
    key = CostKey(HOSTILE, HOSTILE, HOSTILE, HOSTILE, "spot")
    pay(session, CostEntry(key, (DayCost(today, 1.0, 2.0, 1.0),)))
    session.deps.budgets.set_budget(Budget(f"definition/{HOSTILE}"), 5.0, None, {})

    for by in ("definition", "repository", "caller", "type"):
        html = Pages(session).html(f"/costs?by={by}&since={today}")
        assert "<script>alert" not in html
        assert "\x1b" not in html
        assert html.count("&lt;script&gt;alert(1)") >= 2
