"""Jobs of several nodes under faults; `python -m relaunch_local.simulation --gangs` runs many seeds with them."""

import pytest

from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import run_seed


@pytest.mark.parametrize("seed", [12, 26, 27])
def test_a_gang_runs_as_one_whatever_happens_to_its_machines(seed):
    result = run_seed(seed, Options(has_gangs=True))

    assert not result.violations
    assert result.tasks
