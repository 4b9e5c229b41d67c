import importlib
import re

import pytest

from policy.comparison import compare
from policy.figures import Cell
from policy.replay import Job, Knowledge
from policy.series import Series
from relaunch.adapters.market_thresholds import FILE

GROUPS = [[Series(name, 1 / 6, tuple(int(each) > 0 for each in "1101001110" * 12)) for name in "ab"]]
CELLS = [Cell(Job(work=4.0, time=4.0 / share), Knowledge.TRIES) for share in (0.8, 0.5)]


@pytest.fixture(scope="module")
def plots():
    """What imports matplotlib: at once every worker would, for a test that one of them runs."""
    return importlib.import_module("policy.plots")


@pytest.fixture(scope="module")
def samples():
    return [compare(GROUPS, FILE, 3, cell) for cell in CELLS]


def texts(file) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", file.read_text())


def test_costs_are_drawn_by_slack_for_every_policy_with_units(plots, samples, tmp_path):
    plots.draw_costs(list(zip(CELLS, samples, strict=True)), tmp_path / "costs.svg")

    found = texts(tmp_path / "costs.svg")
    policies = {"on-demand", "retry-3", "greedy", "uniform-progress", "cheapest", "optimum"}
    assert policies | {"25", "0.8", "100", "0.5", "cost, % of on-demand", "slack, % of the work, and C/R below"} <= {
        *found
    }
    assert "4 h of work, overhead 0.2 h, on-demand 3.145 times spot" in found


def test_one_job_is_drawn_over_all_of_its_pools_with_what_it_cost(plots, samples, tmp_path):
    plots.draw_course(GROUPS, CELLS[0], samples[0], FILE, tmp_path / "job.svg")

    shown = sorted(samples[0], key=lambda each: each.outcomes["cheapest"].cost / each.optimum)[1]
    cost = 100 * shown.outcomes["cheapest"].cost / shown.outcomes["on-demand"].cost
    found = texts(tmp_path / "job.svg")
    assert {"spot in a", "spot in b", "work done, h", "hours since the start", "deadline", "safety net"} <= {*found}
    assert f"{cost:.0f} % of on-demand" in found


def test_the_same_plot_has_the_same_bytes(plots, samples, tmp_path):
    for name in ("first.svg", "second.svg"):
        plots.draw_course(GROUPS, CELLS[0], samples[0], FILE, tmp_path / name)

    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "second.svg").read_bytes()
