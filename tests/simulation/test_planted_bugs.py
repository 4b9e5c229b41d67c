"""The simulation finds every planted bug within its number of seeds, and no violation without a bug."""

import re
from functools import cache

import pytest

from relaunch.core.lifecycle import table
from relaunch_local.simulation import run_seed
from simulation.planted_bugs import BUGS as BUGS_OF_DECISIONS
from simulation.planted_bugs import PlantedBug
from simulation.planted_machine_bugs import MACHINE_BUGS
from simulation.planted_record_bugs import RECORD_BUGS
from simulation.planting import patched, rows_dropped

BUGS = (*BUGS_OF_DECISIONS, *RECORD_BUGS, *MACHINE_BUGS)
# A violation is "MM-DD HH:MM:SS invariant: message".
_VIOLATION = re.compile(r"\S+ \S+ (?P<invariant>[^:]+):")


def broken_invariants(seed: int) -> set[str]:
    """Return the invariants that a seed violates, with the bugs that are planted now."""
    found = [_VIOLATION.match(violation) for violation in run_seed(seed).violations]
    return {match["invariant"] for match in found if match}


@cache
def broken_without_a_bug(seed: int) -> frozenset[str]:
    """Return the invariants that a seed violates without a planted bug."""
    return frozenset(broken_invariants(seed))


# They are found in many seeds, or in late ones: more than seven seconds each.
THOROUGH = frozenset(
    {
        "cancel-while-stopping-ignored",
        "idle-machine-kept",
        "image-wait-for-ever",
        "kept-off-one-machine-shuts-offering",
        "late-machine-unswept",
        "machine-for-unreadable-checkpoints",
        "max-runtime-ignored",
        "no-answer-is-no-task",
        "one-task-of-a-warned-machine",
        "orphaned-tasks-left-alone",
        "placement-expires-at-once",
        "placement-never-too-old",
        "price-cap-ignored",
        "refusal-is-final",
        "registration-deadline-ignored",
        "stop-not-repeated",
        "token-of-each-call",
        "warned-machine-takes-claims",
    }
)


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, marks=[pytest.mark.thorough] if bug.name in THOROUGH else []) for bug in BUGS],
    ids=lambda bug: bug.name,
)
def test_a_planted_bug_is_found_within_its_seeds(bug: PlantedBug) -> None:
    tried: list[int] = []
    is_found = False
    with bug.plant():
        for seed in range(bug.first, bug.first + bug.within):
            tried.append(seed)
            is_found = bug.invariant in broken_invariants(seed)
            if is_found:
                break
    assert is_found, f"{bug.broken}: no violation of {bug.invariant!r} in seeds {tried}"
    assert {seed: broken_without_a_bug(seed) for seed in tried} == dict.fromkeys(tried, frozenset())


def test_at_least_thirty_bugs_are_planted_each_under_a_name_of_its_own() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 30
    assert len({bug.broken for bug in BUGS}) == len(BUGS)
    assert len({bug.invariant for bug in BUGS}) >= 15


def test_what_was_replaced_is_restored_when_a_run_fails() -> None:
    rows, row = table.TABLE, table.Row
    with pytest.raises(KeyError, match="a run failed"):
        fail_while_broken()
    assert table.TABLE is rows
    assert table.Row is row


def fail_while_broken() -> None:
    """Raise while the table lacks a row and a class is replaced."""
    whole = len(table.TABLE)
    with rows_dropped("cancel_pending"), patched(table, Row=None):
        assert len(table.TABLE) == whole - 1
        raise KeyError("a run failed")


def test_a_bug_that_breaks_nothing_is_refused() -> None:
    with pytest.raises(LookupError, match="no row"), rows_dropped("an action that is not there"):
        pass
    with pytest.raises(AttributeError), patched(table, NOT_THERE=1):
        pass
