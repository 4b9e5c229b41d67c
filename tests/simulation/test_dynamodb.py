"""Seeds violate nothing over the real adapter either."""

from relaunch_local.simulation import Options, run_seed


def test_a_seed_runs_over_the_real_adapter() -> None:
    result = run_seed(24, Options(dynamodb=True))

    assert result.violations == ()
    assert result.jobs >= 3
    assert result.tasks >= result.jobs / 2
