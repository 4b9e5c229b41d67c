"""Tables of replays: what each policy costs over the optimum, and how sure that is."""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from policy.optimum import least_costs
from policy.replay import Job, Knowledge, Outcome, Run, start_ticks
from policy.series import Series
from relaunch.core.market.situation import Policy

Statistic = Callable[[Sequence["Sample"]], float]
Policies = Mapping[str, Callable[[], Policy]]
_RESAMPLES = 1000
_BLOCK_HOURS = 72.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One job under one kind of knowledge."""

    job: Job
    knowledge: Knowledge


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs from one start: the optimum, and the outcome of each policy.

    `block` is the name of the pools and the three days that starts share for the intervals.
    """

    block: tuple[str, int]
    start: int
    optimum: float
    outcomes: Mapping[str, Outcome]

    def without_decisions(self) -> "Sample":
        """Return the sample without what was decided, which is most of it."""
        return replace(self, outcomes={title: replace(each, decided=()) for title, each in self.outcomes.items()})


def replay(groups: Iterable[Sequence[Series]], cell: Cell, policies: Policies, count: int) -> list[Sample]:
    """Run a job from `count` starts of each group of pools, by each policy, made anew for each run."""
    samples = []
    for pools in groups:
        starts = start_ticks(pools[0], cell.job, count)
        name = "+".join(each.name for each in pools)
        best = least_costs(pools, starts, cell.job) if starts else []
        for start, optimum in zip(starts, best, strict=True):
            outcomes = {
                title: Run(pools, start, cell.job, make_policy(), cell.knowledge).to_end()
                for title, make_policy in policies.items()
            }
            block = int(start * pools[0].gap_hours // _BLOCK_HOURS)
            samples.append(Sample((name, block), start, optimum, outcomes))
    return samples


@dataclass(frozen=True, slots=True)
class Figure:
    """A policy in a cell: percent over the optimum with its 90 % interval, deadlines met, starts per job, and cost.

    `over` is of the sums, and `median` that of the single runs.
    """

    policy: str
    over: float
    median: float
    interval: tuple[float, float]
    met: float
    starts: float
    cost: float


def figures(samples: Sequence[Sample]) -> list[Figure]:
    """Return the figure of each policy; intervals are bootstrapped over blocks of three days of starts."""
    return [_figure(title, samples) for title in samples[0].outcomes]


def _figure(title: str, samples: Sequence[Sample]) -> Figure:
    outcomes = [sample.outcomes[title] for sample in samples]
    return Figure(
        title,
        _over(title, samples),
        100 * (median(each.outcomes[title].cost / each.optimum for each in samples) - 1),
        interval(samples, lambda drawn: _over(title, drawn)),
        sum(each.late <= 0 for each in outcomes) / len(outcomes),
        sum(each.starts for each in outcomes) / len(outcomes),
        sum(each.cost for each in outcomes) / len(outcomes),
    )


def difference(samples: Sequence[Sample], title: str, other: str) -> tuple[float, tuple[float, float]]:
    """Return how many points a policy is above another one, paired, with the 90 % interval."""

    def points(drawn: Sequence[Sample]) -> float:
        return _over(title, drawn) - _over(other, drawn)

    return points(samples), interval(samples, points)


def interval(samples: Sequence[Sample], statistic: Statistic) -> tuple[float, float]:
    """Return the 90 % interval of a statistic over resampled blocks."""
    blocks: dict[tuple[str, int], list[Sample]] = {}
    for sample in samples:
        blocks.setdefault(sample.block, []).append(sample)
    generator = random.Random(1)  # noqa: S311 - the same interval every time
    names = list(blocks)
    drawn = sorted(
        statistic([sample for name in generator.choices(names, k=len(names)) for sample in blocks[name]])
        for _ in range(_RESAMPLES)
    )
    return drawn[_RESAMPLES // 20], drawn[-_RESAMPLES // 20]


def _over(title: str, samples: Sequence[Sample]) -> float:
    return 100 * (sum(each.outcomes[title].cost for each in samples) / sum(each.optimum for each in samples) - 1)
