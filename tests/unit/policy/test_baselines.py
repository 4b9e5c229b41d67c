from policy.baselines import retrying
from policy.replay import Job, Knowledge, Run
from policy.series import Series

TICK = 1 / 6


def test_after_some_interruptions_it_is_on_demand_for_good():
    series = Series("a", TICK, tuple(tick % 3 != 2 for tick in range(200)))
    job = Job(work=4.0, time=30.0, overhead=0.0, price_ratio=2.0)

    outcome = Run([series], 0, job, retrying(3)(), Knowledge.TRIES).to_end()

    # Three spells of two ticks, and then all the rest on-demand.
    assert outcome.starts == 4
    assert round(outcome.cost, 6) == round(6 * TICK / 2 + 18 * TICK, 6)
