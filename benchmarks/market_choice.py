"""The processor time of a decision of the market policy, in situations drawn between the points of its thresholds."""

import random
import time

from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.published import uniform_progress
from relaunch.core.market.situation import Place, Policy, Pool, Situation

_SITUATIONS = 200
_POOLS = (1, 2, 4, 9)


def measure(session: Session) -> list[Table]:
    """Measure the policy `cheapest` in this process, beside Uniform Progress."""
    policy = cheapest(load_thresholds())
    generator = random.Random(1)  # noqa: S311 - the same situations every time
    rows = []
    for place in (Place.IDLE, Place.ON_DEMAND):
        for pools in _POOLS:
            situations = [_draw(generator, place, pools) for _ in range(_SITUATIONS)]
            ours = [_median_ms(policy, situation, session.rounds) for situation in situations]
            peer = [_median_ms(uniform_progress, situation, session.rounds) for situation in situations]
            rows.append((place.value, pools, median(ours), max(ours), median(peer), median(ours) / median(peer)))
    columns = ("place", "pools", "cheapest ms", "slowest ms", "uniform progress ms", "x uniform progress")
    title = f"A decision of the market policy; processor time, medians of {session.rounds} in {_SITUATIONS} situations"
    notes = (
        "slowest: the situation that takes the longest. No pool is known to have capacity: otherwise it is taken.",
    )
    return [Table(title, columns, rows, notes)]


def _draw(generator: random.Random, place: Place, pools: int) -> Situation:
    work_left = generator.uniform(1, 47)
    done = generator.uniform(0, 20)
    return Situation(
        place=place,
        work_done=done,
        work_left=work_left,
        elapsed=done + generator.uniform(0, 5),
        time_left=work_left * generator.uniform(1.02, 1.6),
        overhead=generator.uniform(0.05, 0.5),
        on_demand_usd_per_hour=1.0,
        pools=tuple(_draw_pool(generator, str(number)) for number in range(pools)),
        reserve=0.25,
    )


def _draw_pool(generator: random.Random, name: str) -> Pool:
    seen_ago = generator.uniform(0, 1 / 6)
    return Pool(
        name=name,
        usd_per_hour=generator.uniform(0.2, 0.7),
        has_capacity=False,
        seen_ago=seen_ago,
        state_age=seen_ago + generator.uniform(0, 12),
        outage_ends=generator.uniform(0.5, 2),
        spell_ends=generator.uniform(0.5, 2),
    )


def _median_ms(policy: Policy, situation: Situation, repeat: int) -> float:
    times = []
    for _ in range(repeat):
        began = time.process_time_ns()
        policy(situation)
        times.append((time.process_time_ns() - began) / 1e6)
    return median(times)
