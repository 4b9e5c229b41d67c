"""What an outage of each service costs: `make outages` prints accepted events, jobs and dead letters by its minutes."""

import argparse
import itertools
import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.outages import RARELY_CALLED, SERVICES, SSM, Kind, Outage
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.garbage import collect_rarely
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedRun

MINUTES = (15, 60, 150, 180)
_BEGINS_AT = 1_800.0
"""Half an hour after the beginning of a run, when jobs wait, launch and train."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of the events of some seeds in which a service was away for these minutes."""

    service: str
    minutes: int
    seeds: Sequence[int]

    def count(self) -> Counter[str]:
        """Run the seeds, each kind of outage in turn, and count."""
        counts = Counter[str]()
        for number, seed in enumerate(self.seeds):
            outage = Outage(self.service, _BEGINS_AT, 60.0 * self.minutes, tuple(Kind)[number % len(Kind)])
            run = SeedRun(seed, Options(outages=(outage,)))
            result = run.run()
            jobs = Counter(job.definition.name for job in run.account.invariants.jobs.values())
            accepted = Counter(name for name, _, _ in run.workload.accepted)
            letters = [each for each in run.account.queues.dead_letters if not each.queue.endswith(":given-up")]
            counts["accepted"] += accepted.total()
            counts["jobs"] += jobs.total()
            counts["lost"] += (accepted - jobs).total()
            # A person sends unreadable messages, and SQS delivers some of them twice.
            counts["dead letters"] += sum(not each.cause.startswith("sent there: ") for each in letters)
            counts["refused"] += result.happened["delivery-refused"]
            counts["by the sweep"] += result.happened["github-asked-again"]
            counts["violations"] += len(result.violations)
        return counts


def rows(seeds: int, first: int) -> Iterator[Row]:
    """Return the rows of the table; no seed is in two of them."""
    untried = itertools.count(first)
    for service in (*SERVICES, *RARELY_CALLED):
        for minutes in MINUTES:
            calling = (seed for seed in untried if _calls(seed, service))
            yield Row(service, minutes, tuple(itertools.islice(calling, seeds)))


def _calls(seed: int, service: str) -> bool:
    """Return whether the company of a seed calls a service at all."""
    if service not in RARELY_CALLED:
        return True
    scenario = draw_scenario(Chance(seed, Clock().now))
    return bool(scenario.machines.types) if service == SSM else scenario.cluster is not None


def main() -> int:
    """Print the table in Markdown; return 1 if anything was lost, or an invariant violated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6, help="how many for each row")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="number of processes")
    arguments = parser.parse_args()
    columns = ("accepted", "refused", "by the sweep", "jobs", "lost", "dead letters", "violations")
    print("| away", "minutes", "events accepted", *columns[1:], sep=" | ", end=" |\n")
    print("|---" * (2 + len(columns)), end="|\n")
    total = Counter[str]()
    table = list(rows(arguments.seeds, arguments.first))
    with multiprocessing.Pool(arguments.processes) as pool:
        for row, counts in zip(table, pool.imap(Row.count, table), strict=True):
            cells = (row.minutes, *(counts[name] for name in columns))
            print(f"| {row.service}", *cells, sep=" | ", end=" |\n", flush=True)
            total += counts
    return int(bool(total["lost"] or total["dead letters"] or total["violations"]))


if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
