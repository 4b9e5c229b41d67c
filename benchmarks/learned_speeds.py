"""What is gained by learning: several jobs of a definition one after the other, in a world whose speeds are known.

The world is that of benchmarks.speeds. Before each job the spot prices are drawn around today's, and some of spot
is gone. A job teaches the speed of the model that it ran on, by a few percent wrong. A deadline is one to three times
the duration that the definition says; it could be kept if some on-demand machine is fast enough, it is promised as
`relaunch plan` promises it, and kept if the on-demand machine is fast enough that the job would be launched on. The
last column, what could be promised by the cheapest on-demand machine alone, is no part of the product. The best choice
is the cheapest that ends within `max_runtime`, 48 hours; a choice that does not is late, and has no cost to compare.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.tables import Cell, Table
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.lifecycle.paces import at_pace, is_promised, on_demand_paces, promised_pace
from relaunch.core.offerings.offering import Offering
from relaunch.core.selection.expected_cost import START_OVERHEAD, CostOf, cost_of
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.rates import ObservedRate, RateRecord, learned_rates, with_rate, work_of
from relaunch.core.selection.selection import Selection, select

JOBS = 8
_PRICES = 0.15
_GONE = 0.15
_NOISE = 0.03
_HOUR = timedelta(hours=1)
_MAX_RUNTIME = timedelta(hours=48)

BEFORE = "bounded by published peaks, nothing learned"
SLOW_END = "learned; what nobody measured only where its slow end pays"
LEARNED = "learned (the product)"
RULES = (BEFORE, SLOW_END, LEARNED)


@dataclass
class Learning:
    """The regrets in percent by rule and job, choices that end too late, and deadlines: possible, promised, kept."""

    regrets: dict[str, list[list[float]]] = field(default_factory=dict)
    deadlines: dict[str, list[int]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)

    def run(  # noqa: PLR0913, PLR0917 - all that the jobs depend on
        self,
        definition: JobDefinition,
        kept: Sequence[Offering],
        speeds: Mapping[str, float],
        truth: CostOf,
        seed: int,
        rules: Sequence[str] = RULES,
        world: str = "",
    ) -> None:
        """Run the jobs of a definition by each rule, whose names in the tables end with that of the world."""
        seconds = (definition.estimated_duration or _HOUR).total_seconds()
        saving = replace(definition, checkpoint_uri="s3://a/b/", total_steps=round(seconds), max_runtime=_MAX_RUNTIME)
        cheapest = {(each.instance_type.name, each.purchase): each for each in reversed(kept)}
        for rule in rules:
            dice = Random(seed)  # noqa: S311 - the same market for each rule
            records: dict[str, RateRecord] = {}
            for number in range(JOBS):
                market = _market(dice, list(cheapest.values()))
                self._job(saving, market, speeds, truth, rule, records, number, dice, world)

    def _job(  # noqa: PLR0913, PLR0917 - all that a job depends on
        self,
        definition: JobDefinition,
        market: Sequence[Offering],
        speeds: Mapping[str, float],
        truth: CostOf,
        rule: str,
        records: dict[str, RateRecord],
        number: int,
        dice: Random,
        world: str,
    ) -> None:
        now = datetime(2026, 11, 1, tzinfo=UTC) + number * timedelta(days=1)
        rates = {} if rule == BEFORE else learned_rates(records.values(), definition, now)
        limits = SelectionLimits(peaks=load_peaks(), rates=rates)
        selection = select(definition, None, market, {}, now, limits)
        by_slow_end = cost_of(selection.work)
        chosen = selection.chosen
        if rule in {BEFORE, SLOW_END}:
            chosen = min(selection.kept, key=lambda each: _usd(by_slow_end(each)))
        assert chosen is not None  # noqa: S101 - for the type checker: on-demand is never gone
        least = (definition.estimated_duration or _HOUR) / definition.max_runtime
        in_time = [each for each in selection.kept if speeds[each.instance_type.accelerator_model] >= least]
        best = min(_usd(truth(each)) for each in in_time or selection.kept)
        by_job = self.regrets.setdefault(rule + world, [[] for _ in range(JOBS)])
        self.late.setdefault(rule + world, 0)
        if chosen in in_time or not in_time:
            by_job[number].append(100 * (_usd(truth(chosen)) / best - 1))
        else:
            self.late[rule + world] += 1
        self._deadline(definition, selection, speeds, f"{rule}{world}, job {number + 1}", dice)
        model = chosen.instance_type.accelerator_model
        rate = speeds[model] * math.exp(dice.gauss(0, _NOISE))
        seen = ObservedRate(f"job-{number}", 1, 1, now, rate, work_of(definition))
        records[model] = with_rate(records.get(model, RateRecord(definition.name, model)), seen)

    def _deadline(
        self, definition: JobDefinition, selection: Selection, speeds: Mapping[str, float], key: str, dice: Random
    ) -> None:
        duration = definition.estimated_duration or _HOUR
        deadline = duration * dice.uniform(1, 3) + START_OVERHEAD
        on_demand = [each for each in selection.kept if each.purchase is PurchaseOption.ON_DEMAND]
        fastest = max(speeds[each.instance_type.accelerator_model] for each in on_demand)
        counts = self.deadlines.setdefault(key, [0, 0, 0, 0])
        limited = replace(definition, deadline=deadline)
        paces = on_demand_paces(selection)
        pace = promised_pace(limited, paces)
        assert pace is not None  # noqa: S101 - for the type checker: it was measured on a model
        launched = next(each for each in on_demand if pace.is_kept_on(each))
        true_time = duration / speeds[launched.instance_type.accelerator_model] + START_OVERHEAD
        promised = is_promised(at_pace(limited, pace))
        counts[0] += duration / fastest + START_OVERHEAD <= deadline
        counts[1] += promised
        counts[2] += promised and true_time <= deadline
        counts[3] += is_promised(at_pace(limited, paces[0]))

    def tables(self) -> list[Table]:
        """Return the tables of regrets and deadlines."""
        shown = (1, 2, 3, 5, JOBS)
        rows: list[tuple[Cell, ...]] = []
        for rule, by_job in self.regrets.items():
            every = [each for of_job in by_job for each in of_job]
            later = [each for of_job in by_job[1:] for each in of_job]
            means = [sum(by_job[number - 1]) / len(by_job[number - 1]) for number in shown]
            mean = sum(every) / len(every)
            rows.append((rule, *means, mean, sum(later) / len(later), max(every), max(by_job[-1]), self.late[rule]))
        columns = (
            "speeds",
            *(f"job {each}, mean %" for each in shown),
            "all, mean %",
            "from the second on",
            "worst %",
            f"worst of job {JOBS}",
            f"later than {_MAX_RUNTIME // _HOUR} h",
        )
        regrets = Table(f"Cost over that of the best choice, {JOBS} jobs one after the other", columns, rows, ())
        counted = [
            (key, could, promised, 100 * promised / could, kept, promised - kept, 100 * cheapest / could)
            for key, (could, promised, kept, cheapest) in self.deadlines.items()
            if key.endswith((", job 1", f", job {JOBS}"))
        ]
        names = (
            "speeds",
            "could be kept",
            "promised",
            "promised %",
            "kept of those",
            "missed",
            "by the cheapest alone %",
        )
        return [regrets, Table("Deadlines of one to three times the duration", names, counted, ())]


def _market(dice: Random, offerings: Sequence[Offering]) -> list[Offering]:
    found = []
    for each in offerings:
        price = each.price_usd_per_hour
        is_spot = each.purchase is PurchaseOption.SPOT
        factor = math.exp(dice.gauss(0, _PRICES)) if is_spot else 1.0
        if not (is_spot and dice.random() < _GONE):
            found.append(replace(each, price_usd_per_hour=None if price is None else price * factor))
    return found


def _usd(cost: float | None) -> float:
    return math.inf if cost is None else cost
