"""Run the simulation with mutants of the core and the use cases that a seed draws: `make mutate-simulation`.

Each mutant is run alone with the first seeds, until one violates an invariant; those that none of them finds are then
run together with the others, and each alone in the seeds that find something. With those that no seed finds, the unit
tests of their package are run; survivors.toml says of each that these do not find either why it is harmless, and the
command fails where that is missing. Results are kept in .cache/simulated-mutants as long as the code stays as it is: an
interrupted command goes on.
"""

import argparse
import json
import os
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence

from mutants import draw_mutants
from reached import HERE, PROJECT, Reached, digest_of_sources
from trials import Trial, Trials

CACHE = PROJECT / ".cache" / "simulated-mutants"


def main() -> int:
    """Run the command; return 1 if a survivor has no reason."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=300, help="how many mutants are drawn")
    parser.add_argument("--draw", type=int, default=1, help="the seed that draws them")
    parser.add_argument("--seeds", type=int, default=2_000, help="how many seeds each is run with, at most")
    parser.add_argument("--alone", type=int, default=30, help="how many of them each is run with alone")
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
    tried = trials.run_alone(mutants, min(arguments.alone, arguments.seeds))
    trials.run_together([trial for trial in tried if trial.is_open()], range(arguments.alone, arguments.seeds))
    trials.run_unit_tests([trial for trial in tried if trial.is_open()])
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
            "why": reasons.get((trial.mutant.file, *trial.mutant.change)) or (trial.test and f"{trial.test} fails"),
        }
        for trial in trials
        if trial.is_open()
    ]
    found_by = Counter(_kind(trial.finding) for trial in trials if trial.finding)
    unexplained = sum(each["why"] is None for each in survivors)
    if arguments.json:
        counts = {"mutants": len(trials), "draw": arguments.draw, "seeds": arguments.seeds, "alone": arguments.alone}
        print(json.dumps({**counts, "found_by": dict(found_by.most_common()), "survivors": survivors}, indent=2))
        return int(unexplained > 0)
    for each in survivors:
        print(f"survived: {each['file']}  ({each['tried']} seeds run it; alone, {each['changed']} went another way)")
        print(f"  was  {each['was']}\n  is   {each['is']}\n  why  {each['why'] or 'NO REASON GIVEN'}")
    for kind, count in found_by.most_common():
        print(f"{count:>5} found by: {kind}")
    found, unreached = found_by.total(), sum(not each["tried"] for each in survivors)
    print(
        f"{len(trials)} mutants drawn with seed {arguments.draw}, up to {arguments.seeds:,} seeds each: {found} found "
        f"({100 * found / len(trials):.1f} %), {len(survivors)} survived, {unreached} of them run by no seed; "
        f"{unexplained} without a reason"
    )
    return int(unexplained > 0)


def _kind(finding: str) -> str:
    """Return the invariant of a violation, "MM-DD HH:MM:SS invariant: message", or the kind of error."""
    words = finding.split(" ", 2)
    is_violation = len(words) == 3 and words[0][2:3] == "-" and words[1][2:3] == ":"
    return (words[2] if is_violation else finding).partition(":")[0]


if __name__ == "__main__":
    sys.exit(main())
