"""budgets."""

from datetime import timedelta

import pytest

from fakes.builders import make_job
from fakes.cli_session import flat
from relaunch.core.jobs.budgets import BudgetChange
from relaunch.core.jobs.cost import CostEntry, CostKey
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.charges import DayCost

MONTH = "2026-03"
RESNET = CostKey("resnet", "acme/vision", "github", "g5.xlarge", "spot")
BERT = CostKey("bert", "", "arn:aws:iam::111122223333:user/ada", "", "")
ADA = "caller/arn:aws:iam::111122223333:user/ada"


@pytest.fixture
def _paid(session):
    pay(session)


def pay(session):
    """Save what two definitions cost today, yesterday, a month ago and longer ago than is asked for."""
    today = session.clock.now().date()
    job = make_job()
    session.deps.jobs.create_job(job, [])
    days = {0: 1.0, 1: 2.0, 31: 4.0, 733: 512.0}
    costs = (
        CostEntry(RESNET, tuple(DayCost(today - timedelta(days=ago), usd, usd, 1.0) for ago, usd in days.items())),
        CostEntry(BERT, (DayCost(today, 8.0, 8.0, 1.0),)),
    )
    session.deps.jobs.save_job(Decision(session.deps.jobs.load_job(job.job_id), costs=costs))


def rows(result):
    return [line.split() for line in result.stdout.splitlines()[1:]]


def use(session, scope, usd):
    """Save a job that has reserved of a budget."""
    job = session.deps.jobs.load_job(session.submit(f"{scope} {usd}"))
    session.deps.jobs.save_job(Decision(job, budgets=(BudgetChange(scope, MONTH, usd),)))


def test_without_a_budget_it_says_how_to_set_one(relaunch):
    assert "`relaunch budgets set stack --monthly USD`" in relaunch("budgets").stderr
    assert relaunch("budgets", "--json").document == {"month": MONTH, "budgets": []}


@pytest.mark.parametrize(
    ("scope", "of_month", "in_all"),
    [
        ("stack", 11.0, 15.0),
        ("definition/resnet", 3.0, 7.0),
        ("repository/acme/vision", 3.0, 7.0),
        ("caller/arn:aws:iam::111122223333:user/ada", 8.0, 8.0),
    ],
)
@pytest.mark.usefixtures("_paid")
def test_a_new_budget_knows_what_was_spent_before(relaunch, session, scope, of_month, in_all):
    result = relaunch("budgets", "set", scope, "--monthly", "100", "--total", "1000.50")

    assert rows(result) == [
        [scope, MONTH, "$100.00", f"${of_month:.2f}", "$0.00", f"${100 - of_month:.2f}", f"{of_month:.0f}%"],
        [scope, "in", "all", "$1,000.50", f"${in_all:.2f}", "$0.00", f"${1000.5 - in_all:.2f}", "1%"],
    ]
    (budget,) = session.deps.budgets.load_budgets()
    assert (budget.scope, budget.reserved_in[MONTH], budget.reserved_usd) == (scope, of_month, in_all)
    assert "jobs that run reserve of it" in result.stderr
    assert "used up" not in result.stderr


@pytest.mark.usefixtures("_paid")
def test_the_list_and_its_json_have_the_budgets_with_a_limit(relaunch, session):
    relaunch("budgets", "set", "stack", "--monthly", "8")
    relaunch("budgets", "set", "definition/resnet", "--total", "0")
    relaunch("budgets", "set", "caller/github", "--total", "5")
    relaunch("budgets", "remove", "caller/github", "--yes")

    assert rows(relaunch("budgets")) == [
        ["definition/resnet", "in", "all", "$0.00", "$7.00", "$0.00", "-$7.00", "-"],
        ["stack", MONTH, "$8.00", "$11.00", "$0.00", "-$3.00", "138%"],
    ]
    assert relaunch("budgets", "--json").document == {
        "month": MONTH,
        "budgets": [
            {
                "scope": "definition/resnet",
                "monthly": None,
                "total": {"limit_usd": 0.0, "reserved_usd": 7.0, "spent_usd": 7.0, "left_usd": -7.0, "percent": None},
            },
            {
                "scope": "stack",
                "monthly": {
                    "limit_usd": 8.0,
                    "reserved_usd": 11.0,
                    "spent_usd": 11.0,
                    "left_usd": -3.0,
                    "percent": 137.5,
                },
                "total": None,
            },
        ],
    }
    assert relaunch("budgets", columns=30).stdout.splitlines()[0].split() == ["BUDGET", "PERIOD", "LIMIT", "LEFT"]


@pytest.mark.usefixtures("_paid")
def test_the_costs_of_what_is_over_and_the_leases_of_what_runs_are_columns_of_their_own(relaunch, session):
    relaunch("budgets", "set", "stack", "--monthly", "100", "--total", "200")
    use(session, "stack", 5.0)
    use(session, ADA, 2.0)
    relaunch("budgets", "set", ADA, "--monthly", "10")

    assert rows(relaunch("budgets")) == [
        [ADA, MONTH, "$10.00", "$2.00", "$0.00", "$8.00", "20%"],
        ["stack", MONTH, "$100.00", "$11.00", "$5.00", "$84.00", "16%"],
        ["stack", "in", "all", "$200.00", "$15.00", "$5.00", "$180.00", "10%"],
    ], "what an earlier release did not count is no more than what is used"


def test_a_limit_that_is_not_given_stays_and_none_takes_it_away(relaunch, session):
    relaunch("budgets", "set", "stack", "--monthly", "50", "--total", "200")
    use(session, "stack", 60.0)
    lowered = relaunch("budgets", "set", "stack", "--total", "100")
    assert rows(lowered)[0][2:4] == ["$50.00", "$0.00"]
    assert "jobs that wait" not in lowered.stderr

    document = relaunch("budgets", "set", "stack", "--monthly", "none", "--json").document
    assert (document["monthly"], document["total"]["reserved_usd"]) == (None, 60.0)
    assert "has no limit any more" in relaunch("budgets", "set", "stack", "--total", "none").stdout
    # What jobs went on counting is not counted again.
    use(session, "stack", 1.0)
    pay(session)
    result = relaunch("budgets", "set", "stack", "--total", "70")
    assert rows(result) == [["stack", "in", "all", "$70.00", "$15.00", "$46.00", "$9.00", "87%"]]
    assert session.deps.budgets.load_budgets()[0].reserved_in == {MONTH: 61.0}
    assert result.stderr == ""


def test_what_follows_is_said(relaunch, session):
    relaunch("budgets", "set", "stack", "--monthly", "50")
    use(session, "stack", 40.0)
    lowered = flat(relaunch("budgets", "set", "stack", "--monthly", "40").stderr)
    raised = relaunch("budgets", "set", "stack", "--monthly", "41").stderr
    removed = relaunch("budgets", "remove", "stack", "--yes").stdout

    assert "it is used up: no job of it starts" in lowered
    assert "jobs that run go on with what they have reserved, an hour at most, then they save and wait" in lowered
    assert raised == "jobs that wait for it look again within ten minutes\n"
    assert "jobs that wait for it look again within ten minutes" in removed


@pytest.mark.usefixtures("_paid")
def test_a_new_budget_that_is_used_up_stops_what_runs(relaunch):
    said = flat(relaunch("budgets", "set", "definition/resnet", "--monthly", "1").stderr)

    assert "at their next look, within ten minutes; one that finds no room saves and waits" in said
    assert "it is used up" in said


@pytest.mark.usefixtures("_paid")
def test_a_scope_whose_jobs_have_cost_nothing_is_noted_with_the_nearest(relaunch):
    near = relaunch("budgets", "set", "repository/acme/visoin", "--monthly", "1").stderr
    far = relaunch("budgets", "set", "caller/b", "--monthly", "1").stderr

    assert "no job of repository/acme/visoin has cost anything yet: did you mean repository/acme/vision?" in near
    assert "`relaunch costs --by caller` lists those whose jobs have" in far


@pytest.mark.parametrize(
    ("options", "code", "error"),
    [
        (("set", "definitions/resnet", "--monthly", "1"), 2, "did you mean definition?"),
        (("set", "resnet", "--monthly", "1"), 2, "write stack, definition/NAME, repository/OWNER/NAME or caller/NAME"),
        (("set", "stack/all", "--monthly", "1"), 2, "'stack/all' is no scope of a budget"),
        (("set", "caller/", "--monthly", "1"), 2, "write caller/NAME"),
        (("set", "caller/a\x1b", "--monthly", "1"), 2, "a text of one line"),
        (("set", "repository/vision", "--monthly", "1"), 2, "write repository/OWNER/NAME"),
        (("set", "definition/a/b", "--monthly", "1"), 2, "a definition has a name without /"),
        (("set", "definition/resnt", "--monthly", "1"), 3, "did you mean resnet?"),
        (("set", "stack"), 2, "give --monthly or --total"),
        (("set", "stack", "--monthly", "-1"), 2, "--monthly: '-1' is no amount of USD"),
        (("set", "stack", "--total", "nan"), 2, "--total: 'nan' is no amount of USD"),
        (("set", "stack", "--total", "inf"), 2, "write a number from 0"),
        (("set", "stack", "--total", "1e30"), 2, "write a number from 0"),
        (("set", "stack", "--total", "$5"), 2, "like 250 or 99.50, or none for no limit"),
        (("set", "stack", "--monthly", "none"), 3, "there is no budget of 'stack'"),
        (("remove", "stak", "--yes"), 3, "did you mean stack?"),
        (("--json", "remove", "stack"), 2, "--json stands behind `remove`"),
    ],
)
def test_what_is_refused(relaunch, session, options, code, error):
    if "stak" in options:
        relaunch("budgets", "set", "stack", "--monthly", "1")
    before = session.deps.budgets.load_budgets()
    result = relaunch("budgets", *options)

    assert (result.exit_code, error in flat(result.stderr)) == (code, True), result.stderr
    assert session.deps.budgets.load_budgets() == before


def test_no_more_than_so_many_budgets_have_a_limit(relaunch, session, monkeypatch):
    monkeypatch.setattr("relaunch_cli.commands.budgets.MOST", 1)
    relaunch("budgets", "set", "stack", "--monthly", "1")

    refused = relaunch("budgets", "set", "definition/resnet", "--monthly", "1")
    assert (refused.exit_code, "there may be no more" in refused.stderr) == (2, True)
    assert relaunch("budgets", "set", "stack", "--monthly", "2").exit_code == 0
    relaunch("budgets", "remove", "stack", "--yes")
    assert relaunch("budgets", "set", "definition/resnet", "--monthly", "1").exit_code == 0
    assert relaunch("budgets", "set", "stack", "--monthly", "1").exit_code == 2


def test_a_definition_that_was_deleted_keeps_a_budget_that_can_be_changed(relaunch, session):
    relaunch("budgets", "set", "definition/resnet", "--monthly", "1")
    session.deps.definitions.delete_definition("resnet")

    assert relaunch("budgets", "set", "definition/resnet", "--monthly", "2").exit_code == 0
    assert relaunch("budgets", "remove", "definition/resnet", "--yes").exit_code == 0


@pytest.mark.parametrize(("answer", "code", "is_removed"), [("y\n", 0, True), ("n\n", 130, False), ("", 2, False)])
def test_a_budget_is_removed_once_that_is_confirmed(relaunch, session, answer, code, is_removed):
    relaunch("budgets", "set", "stack", "--monthly", "1", "--total", "2")

    assert relaunch("budgets", "remove", "stack", answer=answer).exit_code == code
    assert (relaunch("budgets", "--json").document["budgets"] == []) is is_removed


def test_ctrl_c_at_the_question_has_the_exit_code_of_ctrl_c(relaunch, monkeypatch):
    monkeypatch.setattr("relaunch_cli.confirmation.can_ask", lambda: True)
    relaunch("budgets", "set", "stack", "--monthly", "1")

    result = relaunch("budgets", "remove", "stack", answer="")

    assert result.exit_code == 130
    assert "not confirmed: nothing was removed" in result.stderr
    assert "--yes" not in result.stderr


def test_what_is_removed_is_in_the_json(relaunch):
    relaunch("budgets", "set", "stack", "--total", "2")

    assert relaunch("budgets", "remove", "stack", "--yes", "--json").document["removed"]["total"]["limit_usd"] == 2.0


@pytest.mark.parametrize("command", [("set", "stack", "--monthly", "9"), ("remove", "stack", "--yes")])
def test_what_somebody_else_sets_meanwhile_is_kept_and_said(relaunch, session, monkeypatch, command):
    relaunch("budgets", "set", "stack", "--monthly", "5")
    budgets = session.deps.budgets
    write = budgets.set_budget

    def set_after_another(before, *limits):
        write(before, 7.0, 70.0, {})
        return write(before, *limits)

    monkeypatch.setattr(budgets, "set_budget", set_after_another)
    result = relaunch("budgets", *command)

    assert result.exit_code == 2
    assert "meanwhile: it is $7.00 a month and $70.00 in all, and was not changed" in flat(result.stderr)
    assert [(each.monthly_usd, each.total_usd) for each in budgets.load_budgets()] == [(7.0, 70.0)]


def test_a_write_whose_answer_was_lost_and_that_was_repeated_is_not_somebody_elses(relaunch, session, monkeypatch):
    write = session.deps.budgets.set_budget
    monkeypatch.setattr(session.deps.budgets, "set_budget", lambda *given: write(*given) and write(*given))

    assert rows(relaunch("budgets", "set", "stack", "--monthly", "5"))[0][:3] == ["stack", MONTH, "$5.00"]
