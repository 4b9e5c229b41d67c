"""Instances that nobody accounts for: only the sweep and the watchdog of the user data end them."""

from simulation.finding import CAMPAIGN, LEAKING_SEEDS, LEAKS, leaks, unguarded


def test_without_sweep_and_watchdog_instances_leak_and_with_them_none_does() -> None:
    with unguarded():
        leaking = {seed: leaks(seed) for seed in LEAKING_SEEDS}

    assert all(leaking.values())
    assert set().union(*leaking.values()) == LEAKS
    assert [seed for seed in LEAKING_SEEDS if seed not in CAMPAIGN and leaks(seed)] == []
