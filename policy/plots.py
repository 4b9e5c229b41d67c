"""Plots of replays, as SVG: what policies cost by the slack of a job, and one job drawn over its series.

The colours are those of Okabe and Ito, which the colour-blind tell apart; text and lines are to be read on white and on
black, so there is no background.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import groupby
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as DrawnPath

from policy.comparison import compared_policies
from policy.figures import Cell, Sample, interval
from policy.replay import Activity, Job, Moment, Run, ticks_of
from policy.series import Series

SHARES = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
"""C/R of the jobs in the plot of costs: the share of the time that the work takes."""
SHOWN_SHARE = 0.8
"""C/R of the job in the plot of one job."""

_GREY = "#808080"
_STYLES = {
    "on-demand": (_GREY, "--", ""),
    "retry-3": ("#E69F00", "-", "v"),
    "greedy": ("#CC79A7", "-", "s"),
    "uniform-progress": ("#0072B2", "-", "^"),
    "cheapest": ("#D55E00", "-", "o"),
    "optimum": ("#009E73", "-.", ""),
}
# With how opaque it is.
_COLOURS = {
    Activity.SPOT: ("#009E73", 1.0),
    Activity.ON_DEMAND: ("#D55E00", 1.0),
    Activity.STARTING: ("#E69F00", 1.0),
    Activity.WAITING: (_GREY, 0.2),
}
_DRAWN = ("greedy", "uniform-progress", "cheapest")


def draw_costs(cells: Sequence[tuple[Cell, Sequence[Sample]]], file: Path) -> None:
    """Draw what each policy costs by slack, in percent of on-demand, with its 90 % interval."""
    with _settings():
        drawing = Drawing(figsize=(8.0, 4.6), layout="constrained")
        axes = drawing.subplots()
        slack = [100 * (cell.job.time / cell.job.work - 1) for cell, _ in cells]
        for title, (colour, line, marker) in _STYLES.items():
            share = partial(_share_of_on_demand, title)
            low, high = zip(*(interval(samples, share) for _, samples in cells), strict=True)
            shares = [share(samples) for _, samples in cells]
            axes.plot(slack, shares, color=colour, linestyle=line, marker=marker, markersize=5, label=title)
            axes.fill_between(slack, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.set_xscale("log")
        axes.set_xticks(
            slack,
            [f"{each:.0f}\n{cell.job.work / cell.job.time:g}" for each, (cell, _) in zip(slack, cells, strict=True)],
        )
        axes.minorticks_off()
        axes.set_xlabel("slack, % of the work, and C/R below")
        axes.set_ylabel("cost, % of on-demand")
        axes.set_ylim(20, 102)
        axes.grid(visible=True, color=_GREY, alpha=0.2)
        job = cells[0][0].job
        axes.set_title(
            f"{job.work:g} h of work, overhead {job.overhead:g} h, on-demand {job.price_ratio:g} times spot", size=10
        )
        drawing.legend(*axes.get_legend_handles_labels(), loc="outside right upper")
        _save(drawing, file)


def _share_of_on_demand(title: str, samples: Sequence[Sample]) -> float:
    costs = [each.optimum if title == "optimum" else each.outcomes[title].cost for each in samples]
    return 100 * sum(costs) / sum(each.outcomes["on-demand"].cost for each in samples)


def draw_course(
    groups: Sequence[Sequence[Series]], cell: Cell, samples: Sequence[Sample], thresholds: Path, file: Path
) -> None:
    """Draw one job over its series: the one for which `cheapest` is over the optimum by the median."""
    shown = sorted(samples, key=lambda each: each.outcomes["cheapest"].cost / each.optimum)[len(samples) // 2]
    pools = next(group for group in groups if "+".join(each.name for each in group) == shown.block[0])
    courses = {}
    policies = compared_policies(thresholds)
    for title in _DRAWN:
        run = Run(pools, shown.start, cell.job, policies[title](), cell.knowledge)
        courses[f"{title}\n{100 * run.to_end().cost / shown.outcomes['on-demand'].cost:.0f} % of on-demand"] = (
            run.course
        )
    with _settings():
        drawing = Drawing(figsize=(8.0, 5.2), layout="constrained")
        above, below = drawing.subplots(2, height_ratios=(3, 2), sharex=True)
        _draw_progress(above, courses, cell.job, pools[0].gap_hours)
        _draw_rows(below, pools, shown.start, courses, cell.job)
        _save(drawing, file)


def _draw_progress(axes: Axes, courses: dict[str, list[Moment]], job: Job, gap: float) -> None:
    for (title, course), drawn in zip(courses.items(), _DRAWN, strict=True):
        hours = [gap * tick for tick in range(len(course) + 1)]
        axes.plot(hours, [0.0, *(each.done for each in course)], color=_STYLES[drawn][0], label=title.split("\n")[0])
    start = job.time - job.work - 2 * job.overhead
    axes.plot([start, start + job.work], [0, job.work], color=_GREY, linestyle=":", label="safety net")
    axes.axvline(job.time, color=_GREY, linestyle="--", label="deadline")
    axes.set_ylabel("work done, h")
    axes.grid(visible=True, color=_GREY, alpha=0.2)
    axes.legend(loc="upper left")


def _draw_rows(axes: Axes, pools: Sequence[Series], start: int, courses: dict[str, list[Moment]], job: Job) -> None:
    gap = pools[0].gap_hours
    titles = [*(f"spot in {each.name}" for each in pools), *courses]
    for row, pool in enumerate(pools):
        available = pool.available[start : start + ticks_of(job, pool)]
        _draw_row(axes, row, [Activity.SPOT if each else Activity.WAITING for each in available], gap)
    for row, course in enumerate(courses.values(), start=len(pools)):
        _draw_row(axes, row, [each.activity for each in course], gap)
    axes.set_yticks(range(len(titles)), titles)
    axes.set_xlim(0, 1.03 * job.time)
    axes.set_ylim(len(titles) - 0.5, -0.5)
    axes.axvline(job.time, color=_GREY, linestyle="--")
    axes.set_xlabel("hours since the start")
    shown = [Patch(color=colour, alpha=alpha, linewidth=0) for colour, alpha in _COLOURS.values()]
    titles = ["on spot, or spot available", "on-demand", "starting", "waiting, or no spot"]
    axes.legend(shown, titles, loc="upper center", bbox_to_anchor=(0.4, -0.3), ncols=4, fontsize="small")


def _draw_row(axes: Axes, row: int, activities: Sequence[Activity], gap: float) -> None:
    boxes: dict[Activity, list[list[tuple[float, float]]]] = {activity: [] for activity in Activity}
    begin = 0
    low = row - 0.35
    high = row + 0.35
    for activity, ticks in groupby(activities):
        end = begin + len(list(ticks))
        left = begin * gap
        right = end * gap
        boxes[activity].append([(left, low), (right, low), (right, high), (left, high)])
        begin = end
    for activity, drawn in boxes.items():
        if drawn:
            colour, alpha = _COLOURS[activity]
            path = DrawnPath.make_compound_path_from_polys(np.array(drawn))
            axes.add_patch(PathPatch(path, facecolor=colour, alpha=alpha, linewidth=0))


def _settings() -> AbstractContextManager[None]:
    return matplotlib.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "relaunch",  # the same plot has the same bytes
            "font.family": "sans-serif",
            "font.size": 10,
            "text.color": _GREY,
            "axes.labelcolor": _GREY,
            "axes.edgecolor": _GREY,
            "xtick.color": _GREY,
            "ytick.color": _GREY,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
        }
    )


def _save(drawing: Drawing, file: Path) -> None:
    drawing.savefig(file, transparent=True, metadata={"Date": None, "Creator": None})
