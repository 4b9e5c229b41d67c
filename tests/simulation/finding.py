"""Which seed finds which planted bug: `make planted-bugs` looks, and writes it to seeds_found.json.

The simulation draws other numbers when the application changes, so that a bug may then be found by another seed. The
test of planted bugs still finds it, but runs more seeds, until they are written anew. It runs none to its end for that:
a seed that no longer finds its bug may have hundreds of jobs, which takes as long as all others.
"""

import json
import multiprocessing
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from relaunch.entrypoints import reconcile as reconciling
from relaunch_local.ecs.engine.settings import NO_WATCHDOG
from relaunch_local.simulation import Options, machine_scenario, run_seed
from relaunch_local.simulation.garbage import collect_rarely
from relaunch_local.simulation.run import SeedResult
from simulation.planted_agent_bugs import AGENT_BUGS
from simulation.planted_budget_bugs import BUDGET_BUGS
from simulation.planted_bugs import PlantedBug
from simulation.planted_checkpoint_bugs import CHECKPOINT_BUGS
from simulation.planted_choice_bugs import CHOICE_BUGS
from simulation.planted_cluster_bugs import CLUSTER_BUGS
from simulation.planted_cluster_gang_bugs import CLUSTER_GANG_BUGS
from simulation.planted_cost_bugs import COST_BUGS
from simulation.planted_definition_bugs import DEFINITION_BUGS
from simulation.planted_ending_bugs import ENDING_BUGS
from simulation.planted_excused_bugs import EXCUSED_BUGS
from simulation.planted_failure_bugs import FAILURE_BUGS
from simulation.planted_fleet_bugs import FLEET_BUGS
from simulation.planted_gang_bugs import GANG_BUGS
from simulation.planted_group_bugs import GROUP_BUGS
from simulation.planted_job_bugs import JOB_BUGS
from simulation.planted_launch_bugs import LAUNCH_BUGS
from simulation.planted_machine_bugs import MACHINE_BUGS
from simulation.planted_message_bugs import MESSAGE_BUGS
from simulation.planted_notice_bugs import NOTICE_BUGS
from simulation.planted_people_bugs import PEOPLE_BUGS
from simulation.planted_progress_bugs import PROGRESS_BUGS
from simulation.planted_record_bugs import RECORD_BUGS
from simulation.planted_reservation_bugs import RESERVATION_BUGS
from simulation.planted_stop_bugs import STOP_BUGS
from simulation.planted_trigger_bugs import TRIGGER_BUGS
from simulation.planting import patched

BUGS = (
    *LAUNCH_BUGS,
    *STOP_BUGS,
    *JOB_BUGS,
    *CHECKPOINT_BUGS,
    *MESSAGE_BUGS,
    *RECORD_BUGS,
    *MACHINE_BUGS,
    *FLEET_BUGS,
    *AGENT_BUGS,
    *RESERVATION_BUGS,
    *EXCUSED_BUGS,
    *DEFINITION_BUGS,
    *PROGRESS_BUGS,
    *FAILURE_BUGS,
    *ENDING_BUGS,
    *CHOICE_BUGS,
    *CLUSTER_BUGS,
    *CLUSTER_GANG_BUGS,
    *BUDGET_BUGS,
    *COST_BUGS,
    *GROUP_BUGS,
    *GANG_BUGS,
    *TRIGGER_BUGS,
    *NOTICE_BUGS,
    *PEOPLE_BUGS,
)
_FILE = Path(__file__).with_name("seeds_found.json")
_FOUND = json.loads(_FILE.read_text(encoding="utf-8"))
SEEDS_FOUND: dict[str, int] = _FOUND["bugs"]
"""The seed that finds each bug."""
OF_THE_SUITE: frozenset[str] = frozenset(_FOUND["suite"])
"""The bugs that `make test` plants: of those that one invariant finds the one that is found in the fewest steps, unless
that are more than MOST_STEPS."""
LEAKING_SEEDS: list[int] = _FOUND["leaks"]
"""The seeds of all kinds of leaks without sweep and watchdog."""
LEAKS = frozenset(
    {
        "every instance of ours is accounted for",
        "no instance lives that nobody needs",
        "nothing of ours lives at the end",
    }
)
# Budgets and leases, agents that come back, impossible launches, instances that a later look at the task names, nodes
# that drain, machines of several nodes that are kept, and given back, a rank that lives while ECS hides another: the
# other seeds come to that rarely.
_RARE = (7, 46, 61, 81, 98, 103, 142, 202, 214, 216, 792, 10_424, 15_015, 16_982)
CAMPAIGN: list[int] = sorted({*_FOUND["campaign"], *_RARE})
"""The seeds of which test_campaign.py requires that they violate nothing without a bug: those that find a bug of an
invariant and end soon, and some that come to what is rare. What the seeds of other bugs violate without a bug is looked
for as far as it takes to find the bug."""
LIMITS = (2_500, 10_000, 80_000)
"""For how many steps a seed is run to find a bug: more than half of the bugs are found in 2,500, most seeds end within
10,000, and a few have hundreds of thousands. A seed that finds its bug late takes a second of each run of the suite."""
MOST_STEPS = 4_000
"""What is found later only `make test-planted-bugs` plants: docs/testing.md names the invariants."""
_LONGEST_STEPS = 12_000
_SEEDS_FOR_LEAKS = 120
# A violation is "MM-DD HH:MM:SS invariant: message".
_VIOLATION = re.compile(r"\S+ \S+ (?P<invariant>[^:]+):")


def broken_invariants(seed: int, options: Options | None = None) -> set[str]:
    """Return the invariants that a seed violates, with the bugs that are planted now."""
    return _broken_in(run_seed(seed, options))


def _broken_in(result: SeedResult) -> set[str]:
    found = [_VIOLATION.match(violation) for violation in result.violations]
    return {match["invariant"] for match in found if match}


def first_found(bug: PlantedBug, tries: Iterable[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the first seed that finds a bug that is planted now, and in how many steps; each is run for so many."""
    for seed, most in tries:
        result = run_seed(seed, Options(until=bug.invariant, steps=most))
        if bug.invariant in _broken_in(result):
            return seed, result.steps
    return None


def find_seed(name: str) -> tuple[int, int] | None:
    """Return a seed that finds a bug, the known one unless that is slow, and in how many steps; None if none does."""
    bug = next(bug for bug in BUGS if bug.name == name)
    with bug.world(), bug.plant():
        return first_found(bug, searches(bug))


def searches(bug: PlantedBug) -> Iterator[tuple[int, int]]:
    """Yield the seeds of a bug with the steps that each is run for: all of them for a few, before any for many."""
    return ((seed, most) for most in LIMITS for seed in seeds_to_try(bug))


def seeds_to_try(bug: PlantedBug) -> Sequence[int]:
    """Return the seeds of a bug; the one that is known to find it comes first, for it saves the others."""
    known = SEEDS_FOUND.get(bug.name, bug.first)
    return sorted(range(bug.first, bug.first + bug.within), key=lambda seed: (seed != known, seed))


def cheapest(steps: Mapping[str, int], most: int) -> list[str]:
    """Return a bug of each invariant that finds one within so many steps, the one that is found in the fewest."""
    known = [bug for bug in BUGS if steps.get(bug.name, most + 1) <= most]
    best: dict[str, PlantedBug] = {}
    for bug in sorted(known, key=lambda bug: (steps[bug.name], bug.name)):
        best.setdefault(bug.invariant, bug)
    return sorted(bug.name for bug in best.values())


@contextmanager
def unguarded() -> Iterator[None]:
    """Leave out the sweep over instances, and the watchdog of their user data."""
    with (
        patched(reconciling, sweep_instances=lambda _deps, _has_time: 0),
        patched(machine_scenario, Watchdog=lambda: NO_WATCHDOG),
    ):
        yield


def leaks(seed: int) -> set[str]:
    """Return what a seed says of instances that leak."""
    return broken_invariants(seed) & LEAKS


def leaks_unguarded(seed: int) -> set[str]:
    """Return what a seed says of instances that leak without sweep and watchdog."""
    with unguarded():
        return leaks(seed)


def is_of_the_campaign(seed: int) -> bool:
    """Return whether a seed ends before it takes too long."""
    return run_seed(seed, Options(steps=_LONGEST_STEPS + 1)).steps <= _LONGEST_STEPS


def seeds_of_all_leaks(found: Sequence[set[str]]) -> list[int]:
    """Return the seeds that say something of leaks which those before them do not."""
    said: set[str] = set()
    seeds = []
    for seed, leaks_of_seed in enumerate(found):
        if leaks_of_seed - said:
            seeds.append(seed)
            said |= leaks_of_seed
    return seeds


def main() -> None:
    """Look for the seed of each bug and for those that leak, on all processors, and write the file.

    Raises:
        SystemExit: no seed finds some of them.
    """
    names = [bug.name for bug in BUGS]
    kept, leaking = {name: seed for name, seed in SEEDS_FOUND.items() if name in names}, LEAKING_SEEDS
    campaign = _FOUND["campaign"]
    missing = []
    steps: dict[str, int] = {}
    try:
        with multiprocessing.get_context("fork").Pool() as pool:
            for number, (name, found) in enumerate(zip(names, pool.imap(find_seed, names), strict=True), 1):
                sys.stderr.write(f"{number} of {len(names)}: {name}: {found[0] if found else None}\n")
                if found is None:
                    kept.pop(name, None)
                    missing.append(name)
                else:
                    kept[name], steps[name] = found
            leaking = seeds_of_all_leaks(pool.map(leaks_unguarded, range(_SEEDS_FOR_LEAKS), chunksize=1))
            usual = {bug.name for bug in BUGS if bug.world is nullcontext}
            seeds = sorted({kept[name] for name in cheapest(steps, _LONGEST_STEPS) if name in usual})
            short = pool.map(is_of_the_campaign, seeds, chunksize=1)
            campaign = [seed for seed, is_short in zip(seeds, short, strict=True) if is_short]
    finally:
        # What was found before an error is not looked for again.
        suite = cheapest(steps, MOST_STEPS) if len(steps) + len(missing) == len(names) else sorted(OF_THE_SUITE)
        written = {"bugs": kept, "campaign": campaign, "leaks": leaking, "suite": suite}
        _FILE.write_text(json.dumps(written, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if missing:
        sys.exit(f"no seed finds {', '.join(sorted(missing))}")


if __name__ == "__main__":
    collect_rarely()
    main()
