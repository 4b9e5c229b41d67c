"""Instances that nobody accounts for: only the sweep and the watchdog of the user data end them."""

from contextlib import ExitStack

import pytest

from relaunch.entrypoints import reconcile as reconciling
from relaunch_local.ecs.engine.settings import NO_WATCHDOG
from relaunch_local.simulation import machine_scenario
from simulation.planting import patched
from simulation.test_planted_bugs import broken_invariants

LEAKS = frozenset(
    {
        "every instance of ours is accounted for",
        "no instance lives that nobody needs",
        "nothing of ours lives at the end",
    }
)
SEEDS = range(60, 120)


def leaks() -> dict[int, set[str]]:
    """Return the seeds in which an instance leaks, with the invariants that say so."""
    found = {seed: broken_invariants(seed) & LEAKS for seed in SEEDS}
    return {seed: broken for seed, broken in found.items() if broken}


@pytest.mark.thorough
def test_without_sweep_and_watchdog_instances_leak_and_with_them_none_does() -> None:
    with ExitStack() as plants:
        plants.enter_context(patched(reconciling, sweep_instances=lambda _deps, _has_time: 0))
        plants.enter_context(patched(machine_scenario, Watchdog=lambda: NO_WATCHDOG))
        unguarded = leaks()

    assert unguarded
    assert set().union(*unguarded.values()) == LEAKS
    assert leaks() == {}
