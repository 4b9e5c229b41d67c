"""The shrinker finds a minimal set of faults."""

from collections.abc import Sequence

import pytest

from relaunch.usecases import choose_placement
from relaunch_local.simulation import Options, SeedResult, run_seed
from relaunch_local.simulation.shrink import invariant_of, minimize, shrink

FAULTS = [f"fault-{number}" for number in range(40)]


def quietly(_text: str) -> None:
    """Report no progress."""


def breaks(name: str, result: SeedResult) -> bool:
    """Return whether this invariant is the first that was violated."""
    return [invariant_of(each) for each in result.violations[:1]] == [name]


@pytest.mark.parametrize("needed", [{"fault-3"}, {"fault-0", "fault-39"}, {"fault-7", "fault-8", "fault-30"}])
def test_exactly_the_needed_faults_are_left(needed: set[str]) -> None:
    assert set(minimize(FAULTS, lambda faults: needed <= set(faults), quietly)) == needed


def test_no_fault_is_left_where_none_is_needed() -> None:
    assert minimize(FAULTS, lambda _faults: True, quietly) == []


def test_few_trials_are_made_for_one_fault_of_many() -> None:
    trials = []

    def fails(faults: Sequence[str]) -> bool:
        trials.append(len(faults))
        return "fault-20" in faults

    minimize(FAULTS, fails, quietly)
    assert len(trials) < 30


def test_a_seed_without_violations_is_not_shrunk() -> None:
    assert shrink(24, Options()) is None


def test_a_planted_bug_is_reproduced_with_few_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    # No attempt resumes: the first interruption of a job with a checkpoint violates an invariant.
    monkeypatch.setattr(choose_placement, "_resume_uri", lambda *_given: (None, None))
    name = "an attempt resumes from the newest complete checkpoint"
    # The first one does, until the simulation draws other numbers.
    whole = next(result for seed in (52, *range(20)) if breaks(name, result := run_seed(seed)))

    shrunk = shrink(whole.seed, Options(trace=True))

    assert shrunk is not None
    assert breaks(name, shrunk)
    assert len(shrunk.faults) < len(whole.faults) / 4
    assert shrunk.trace


def test_a_run_that_allows_no_fault_has_none() -> None:
    assert run_seed(3, Options(allowed=frozenset())).faults == ()
