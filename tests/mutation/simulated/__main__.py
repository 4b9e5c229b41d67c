"""Run the simulation with mutants of the core and the use cases that a seed draws: `make mutate-simulation`.

Each mutant is run alone with the first seeds, until one violates an invariant that names a harm, or eight raise; those
that raise are run without faults too. Those that no seed finds are then run together with the others, and each alone in
the seeds that find something. With each the unit tests of its package are run before: the simulation is measured by
what they find, and `--tested` runs no other mutants. survivors.toml says of each
that neither finds why it is harmless, and the command fails where that is missing. Results are kept in
.cache/simulated-mutants as long as the code stays as it is: an interrupted command goes on.
"""

import argparse
import json
import os
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence

from mutants import draw_mutants
from reached import HERE, PROJECT, Reached, digest_of_sources
from trials import Trial, Trials

# How a violation begins.
_VIOLATED_AT = re.compile(r"\d\d-\d\d \d\d:\d\d:\d\d ")
CACHE = PROJECT / ".cache" / "simulated-mutants"


def main() -> int:
    """Run the command; return 1 if a survivor has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300, help="how many mutants are drawn")
    parser.add_argument("--draw", type=int, default=1, help="the seed that draws them")
    parser.add_argument("--seeds", type=int, default=2_000, help="how many seeds each is run with, at most")
    parser.add_argument("--alone", type=int, default=30, help="how many of them each is run with alone")
    parser.add_argument("--tested", action="store_true", help="run no seeds with what no unit test finds")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many are run at a time")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    arguments = parser.parse_args()
    folder = CACHE / digest_of_sources()
    folder.mkdir(parents=True, exist_ok=True)
    say(f"drawing {arguments.mutants} mutants with seed {arguments.draw}")
    mutants = draw_mutants(arguments.mutants, arguments.draw)
    say(f"running {arguments.alone} seeds without a mutant")
    reached = Reached(folder, arguments.processes)
    reached.measure(range(arguments.alone))
    trials = Trials(reached, folder, arguments.processes, say)
    known = trials.run_unit_tests(mutants)
    tried = [trial for trial in known if trial.test or not arguments.tested]
    trials.run_alone(tried, min(arguments.alone, arguments.seeds))
    trials.run_together([trial for trial in tried if trial.is_open()], range(arguments.alone, arguments.seeds))
    return report(tried, arguments)


def say(text: str) -> None:
    """Print progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def report(trials: Sequence[Trial], arguments: argparse.Namespace) -> int:
    """Print the survivors and the share that was found; return 1 if a survivor has no reason."""
    stored = tomllib.loads((HERE / "survivors.toml").read_text(encoding="utf-8")).get("survivor", [])
    reasons = {(each["file"], each["was"], each["is"]): each["why"] for each in stored}
    survivors = [
        {
            "file": trial.mutant.file,
            "was": trial.mutant.change[0],
            "is": trial.mutant.change[1],
            "tried": trial.tried,
            "changed": trial.changed,
            "why": reasons.get((trial.mutant.file, *trial.mutant.change))
            or (f"{trial.test} fails" if trial.test else None),
        }
        for trial in trials
        if trial.is_open()
    ]
    found_by = Counter(_kind(trial.finding) for trial in trials if trial.finding)
    unexplained = sum(each["why"] is None for each in survivors)
    tested = [trial for trial in trials if trial.test]
    of_tested = sum(not trial.is_open() for trial in tested)
    by_invariant = sum(trial.finding is not None and _names_harm(trial.finding) for trial in tested)
    if arguments.json:
        counts = {"mutants": len(trials), "draw": arguments.draw, "seeds": arguments.seeds, "alone": arguments.alone}
        counts |= {"tested": len(tested), "found_of_tested": of_tested, "by_invariant_of_tested": by_invariant}
        print(json.dumps({**counts, "found_by": dict(found_by.most_common()), "survivors": survivors}, indent=2))
        return int(unexplained > 0)
    for each in survivors:
        print(f"survived: {each['file']}  ({each['tried']} seeds run it; alone, {each['changed']} went another way)")
        print(f"  was  {each['was']}\n  is   {each['is']}\n  why  {each['why'] or 'NO REASON GIVEN'}")
    for kind, count in found_by.most_common():
        print(f"{count:>5} found by: {kind}")
    found, unreached = found_by.total(), sum(not each["tried"] for each in survivors)
    print(
        f"unit tests find {len(tested)}; of these the simulation finds {of_tested} ({_percent(of_tested, tested)}), "
        f"{by_invariant} ({_percent(by_invariant, tested)}) by an invariant that names what was harmed"
    )
    for each in tested:
        if each.is_open():
            was, mutated = each.mutant.change
            print(f"only by unit tests: {each.mutant.file}\n  was  {was}\n  is   {mutated}")
    print(
        f"{len(trials)} mutants drawn with seed {arguments.draw}, up to {arguments.seeds:,} seeds each: {found} found "
        f"({100 * found / len(trials):.1f} %), {len(survivors)} survived, {unreached} of them run by no seed; "
        f"{unexplained} without a reason"
    )
    return int(unexplained > 0)


def _percent(count: int, of: Sequence[Trial]) -> str:
    return f"{100 * count / len(of):.1f} %" if of else "none"


def _kind(finding: str) -> str:
    """Return the invariant of a violation, or the kind of error."""
    return _VIOLATED_AT.sub("", finding).partition(":")[0]


def _names_harm(finding: str) -> bool:
    """Tell whether an invariant found it, and not that a function or the simulation itself raised."""
    return _VIOLATED_AT.match(finding) is not None and _kind(finding) != "no unhandled exception"


if __name__ == "__main__":
    sys.exit(main())
