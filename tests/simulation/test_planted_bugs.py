"""The simulation finds every planted bug within its number of seeds, and no violation without a bug."""

import re
from collections.abc import Callable
from contextlib import nullcontext

import pytest

from fakes.repository import REPOSITORY
from relaunch.core.lifecycle import table
from relaunch_local.simulation import Options
from simulation.finding import (
    BUGS,
    CAMPAIGN,
    LIMITS,
    OF_THE_SUITE,
    SEEDS_FOUND,
    broken_invariants,
    first_found,
    searches,
    seeds_to_try,
)
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched, rows_dropped

# The other bugs that an invariant finds say no more of it, or are found late: `make test-planted-bugs` plants them.
EACH_BUG = [pytest.param(bug, marks=() if bug.name in OF_THE_SUITE else pytest.mark.planted) for bug in BUGS]

NAMED_UNDER = "## What only `make test-planted-bugs` shows to find bugs"


@pytest.mark.parametrize("bug", EACH_BUG, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found_within_its_seeds(
    bug: PlantedBug, record_property: Callable[[str, object], None]
) -> None:
    known = (SEEDS_FOUND[bug.name], LIMITS[-1])
    with bug.world(), bug.plant():
        found = first_found(bug, (known, *searches(bug)))
    assert found is not None, f"{bug.broken}: no violation of {bug.invariant!r} in {bug.within} seeds"
    seed, steps = found
    if seed != SEEDS_FOUND[bug.name]:
        # To look for it takes up to a minute, each time: tests/conftest.py tells it.
        record_property("to be mended", f"seed {seed} finds {bug.name}, not the one that is known: make planted-bugs")
    if bug.world is nullcontext and seed in CAMPAIGN:
        return
    with bug.world():
        # What comes after the violation says nothing of it.
        assert broken_invariants(seed, Options(steps=steps)) == set()


def test_a_seed_is_known_for_every_bug_among_those_that_must_find_it() -> None:
    assert SEEDS_FOUND.keys() == {bug.name for bug in BUGS}
    assert [bug.name for bug in BUGS if SEEDS_FOUND[bug.name] not in seeds_to_try(bug)] == []


def test_all_seeds_are_run_for_a_few_steps_before_any_is_for_many() -> None:
    bug = BUGS[0]
    tries = list(searches(bug))
    assert [most for _, most in tries] == [most for most in LIMITS for _ in range(bug.within)]
    assert tries[0] == (SEEDS_FOUND[bug.name], LIMITS[0])


def test_the_suite_plants_one_bug_of_each_invariant_but_those_that_are_named() -> None:
    planted = [bug.invariant for bug in BUGS if bug.name in OF_THE_SUITE]
    page = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
    named = re.findall("^- (.+)$", page.partition(NAMED_UNDER)[2].partition("\n#")[0], re.MULTILINE)

    assert len(planted) == len(set(planted))
    assert sorted(named) == sorted({bug.invariant for bug in BUGS} - set(planted))


def test_at_least_thirty_bugs_are_planted_each_under_a_name_of_its_own() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 30
    assert len({bug.broken for bug in BUGS}) == len(BUGS)
    assert len({bug.invariant for bug in BUGS}) >= 15


def test_what_was_replaced_is_restored_when_a_run_fails() -> None:
    rows, completions = table.TABLE, table.COMPLETIONS
    with pytest.raises(KeyError, match="a run failed"):
        fail_while_broken()
    assert table.TABLE is rows
    assert table.COMPLETIONS is completions


def fail_while_broken() -> None:
    """Raise while the table lacks a row and its completions."""
    whole = len(table.TABLE)
    with rows_dropped("cancel_pending"), patched(table, COMPLETIONS=()):
        assert len(table.TABLE) == whole - 1
        raise KeyError("a run failed")


def test_a_bug_that_breaks_nothing_is_refused() -> None:
    with pytest.raises(LookupError, match="no row"), rows_dropped("an action that is not there"):
        pass
    with pytest.raises(AttributeError), patched(table, NOT_THERE=1):
        pass
