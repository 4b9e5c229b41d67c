"""`python -m relaunch_local.simulation`: run seeds, replay one, or shrink one that fails."""

import argparse
import json
import sys
import time
from datetime import timedelta
from pathlib import Path

from relaunch_local.simulation.areas_page import render_page
from relaunch_local.simulation.campaign import Report, run_seeds
from relaunch_local.simulation.checks.coverage import TABLE, WHY_UNREACHED, transitions_of, transitions_unreached
from relaunch_local.simulation.garbage import collect_rarely
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import SeedResult, run_seed
from relaunch_local.simulation.shrink import shrink

_DEFAULT_SEEDS = 2_000
_SHOWN_FAILURES = 10


def main() -> int:
    """Run the command; return 1 if an invariant was violated or something was never tried."""
    arguments = _parse_arguments()
    if arguments.seed is not None:
        return _replay(arguments)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    progress = _Progress(len(seeds), is_shown=not arguments.json)
    options = Options(dynamodb=arguments.dynamodb, has_gangs=arguments.gangs)
    report = run_seeds(seeds, options, processes=arguments.processes, on_result=progress.add)
    if arguments.areas is not None:
        arguments.areas.write_text(render_page(report.areas, report.seeds), encoding="utf-8")
    if arguments.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        _print(report)
    return 0 if report.is_good else 1


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=_DEFAULT_SEEDS, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="replay this seed")
    parser.add_argument("--steps", type=int, help="end the replay after this number of function steps")
    parser.add_argument("--trace", action="store_true", help="print every event of the replay")
    parser.add_argument(
        "--shrink", action="store_true", help="find a minimal set of faults with which the seed still fails"
    )
    parser.add_argument("--dynamodb", action="store_true", help="use the real adapter over an emulated table (slow)")
    parser.add_argument("--gangs", action="store_true", help="let the jobs of one definition have several nodes")
    parser.add_argument("--processes", type=int, help="number of processes (default: all processors)")
    parser.add_argument("--areas", type=Path, metavar="PAGE", help="write the page of use cases and effects")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser.parse_args()


def _replay(arguments: argparse.Namespace) -> int:
    options = Options(
        trace=arguments.trace, steps=arguments.steps, dynamodb=arguments.dynamodb, has_gangs=arguments.gangs
    )
    result = (
        shrink(arguments.seed, options, on_progress=lambda text: print(text, file=sys.stderr))
        if arguments.shrink
        else run_seed(arguments.seed, options)
    )
    if result is None:
        print(f"seed {arguments.seed} violates no invariant")
        return 0
    _print_result(result)
    return 1 if result.violations else 0


def _print_result(result: SeedResult) -> None:
    for line in result.trace:
        print(line)
    if len(result.faults) <= 40:
        print("faults:")
        for fault in result.faults:
            print(f"  {fault.at:%m-%d %H:%M:%S} {fault.identity}  {fault.note}")
    for violation in result.violations:
        print(f"VIOLATION {violation}")
    faults = len(result.faults)
    jobs = result.jobs
    violations = len(result.violations)
    print(f"{faults} faults, {jobs} jobs, {violations} violations")


class _Progress:
    """Prints progress every few seconds."""

    def __init__(self, total: int, *, is_shown: bool) -> None:
        self._total = total
        self._is_shown = is_shown
        self._done = self._faults = self._jobs = self._violations = 0
        self._began = self._printed = time.monotonic()

    def add(self, result: SeedResult) -> None:
        """Count the result of a seed."""
        self._done += 1
        self._faults += len(result.faults)
        self._jobs += result.jobs
        self._violations += len(result.violations)
        for violation in result.violations[:1]:
            # Printed immediately: the remaining seeds may take hours.
            print(f"seed {result.seed} fails: {violation}", file=sys.stderr)
        now = time.monotonic()
        if self._is_shown and (now - self._printed >= 5.0 or self._done == self._total):
            self._printed = now
            speed = self._done / max(now - self._began, 0.001)
            left = timedelta(seconds=round((self._total - self._done) / speed))
            counts = f"{self._faults:,} faults, {self._jobs:,} jobs, {self._violations} violations"
            print(
                f"{self._done:,} of {self._total:,} seeds, {counts}, {speed:.1f} seeds/s, {left} left", file=sys.stderr
            )


def _print(report: Report) -> None:
    print(f"simulated hours  {report.simulated_seconds / 3600:,.0f} in {report.wall_seconds:.0f} s")
    print(f"seeds, tasks     {report.seeds:,} seeds, {report.tasks:,} tasks, {report.steps:,} steps of functions")
    print("jobs             " + ", ".join(f"{count:,} {state}" for state, count in sorted(report.ends.items())))
    print("deadlines        " + ", ".join(f"{count:,} {what}" for what, count in sorted(report.deadlines.items())))
    waste = report.waste
    print(
        f"without a task   at most {waste.per_job} machines per job and day, {waste.per_cause} per cause and day; "
        f"{report.useless_hours:,.1f} machine-hours in all, at most {waste.hours:.1f} of a seed"
    )
    print(
        f"bill             a job's record is at most {report.difference.usd:.6f} USD from it, and at most "
        f"{report.difference.beyond_usd:.9f} beyond what can be known"
    )
    print("faults")
    for kind, count in sorted(report.faults.items()):
        print(f"  {kind:<38}{count:>10,}")
    print("checks")
    for name, count in sorted(report.checks.items()):
        print(f"  {name:<58}{count:>12,}")
    _print_coverage(report)
    _print_failures(report)
    print(f"{report.seeds:,} seeds in {report.wall_seconds:,.0f} s ({timedelta(seconds=round(report.wall_seconds))})")
    print(report.summary_line())


def _print_coverage(report: Report) -> None:
    unreached = transitions_unreached(report.decided_by)
    declared = len({each for row in TABLE for each in transitions_of(row)})
    print(f"transition tables {len(TABLE)} rows, {declared - len(unreached)} of {declared} transitions made")
    for transition in unreached:
        reason = WHY_UNREACHED.get(transition)
        print(f"  never: {transition} ({reason})" if reason else f"  never: {transition}")
    for row in report.rows_unreached:
        print(f"NEVER TRIED row {row}")
    for area in report.areas_too_rare:
        counts = f"in {report.areas.entered[area]} seeds, with a fault in {report.areas.disturbed[area]}"
        print(f"TOO RARE {area}: {counts}")
    for kind, (count, least) in report.too_rare.items():
        print(f"TOO RARE {kind}: {count} times, at least {least} are needed")


def _print_failures(report: Report) -> None:
    for failure in report.failures[:_SHOWN_FAILURES]:
        print(
            f"FAILED seed {failure.seed}: replay with python -m relaunch_local.simulation --seed {failure.seed} --trace"
        )
        for violation in failure.violations[:5]:
            print(f"  {violation}")
    if len(report.failures) > _SHOWN_FAILURES:
        print(f"and {len(report.failures) - _SHOWN_FAILURES} seeds more")


if __name__ == "__main__":
    collect_rarely()
    sys.exit(main())
