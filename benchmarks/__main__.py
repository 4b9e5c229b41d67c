"""Runs benchmarks and prints tables: `python -m benchmarks [NAME…] [--rounds N] [--json]`."""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, NamedTuple

from benchmarks import (
    aws_calls,
    command_time,
    dashboard_pages,
    decision_time,
    first_deployment,
    functions_cold_start,
    gang_recovery,
    gang_stack,
    kubernetes_client,
    kubernetes_cold_start,
    local_world_time,
    market_choice,
    peers,
    runtime_emulator,
    selection,
    speeds,
    webhook_cold_start,
)
from benchmarks.errors import NotMeasurableError
from benchmarks.session import Session
from benchmarks.tables import Table
from relaunch_local.stack.build import NotBuiltError

DEFAULT_ROUNDS = 15


class Benchmark(NamedTuple):
    """A benchmark: what it measures, and the function that does."""

    what: str
    measure: Callable[[Session], list[Table]]


BENCHMARKS = {
    "webhook": Benchmark("github_webhook: fresh process to the first answer", webhook_cold_start.measure),
    "functions": Benchmark(
        "the other functions: fresh process to the first handled event", functions_cold_start.measure
    ),
    "kubernetes": Benchmark(
        "functions of a stack with an ACK cluster: fresh process to the first event on ECS",
        kubernetes_cold_start.measure,
    ),
    "emulator": Benchmark("all functions in Lambda's runtime interface emulator", runtime_emulator.measure),
    "calls": Benchmark("AWS calls by function and situation", aws_calls.measure),
    "decision": Benchmark("warm: from a push to the RunTask request, without network", decision_time.measure),
    "selection": Benchmark("choosing among offerings, and loading the catalogue", selection.measure),
    "speeds": Benchmark(
        "what a choice by speeds costs over the best one, in a drawn world; how far off real trainings are",
        speeds.measure,
    ),
    "dashboard": Benchmark("pages of the dashboard, and what open ones read and cost", dashboard_pages.measure),
    "market": Benchmark("a decision of the market policy, beside Uniform Progress", market_choice.measure),
    "gangs": Benchmark("starts and interruptions of several nodes, beside SkyPilot's steps", gang_recovery.measure),
    "gang-stack": Benchmark("the same on the simulated stack, which takes minutes", gang_stack.measure),
    "peers": Benchmark("the same choice asked of SkyPilot's catalogue (make bench-peers)", peers.measure),
    "kubernetes-client": Benchmark(
        "200 Jobs on a real API server, beside the official client (make bench-kubernetes)", kubernetes_client.measure
    ),
    "world": Benchmark("the local world: from nothing to ready, from a push to RUNNING", local_world_time.measure),
    "command": Benchmark("the command in the local world, beside bare boto3 with the same calls", command_time.measure),
    "deployment": Benchmark(
        "from an empty account to a task that runs: commands, seconds, resources", first_deployment.measure
    ),
}

# Run only when they are named: they need environments of their own.
ON_REQUEST = {"peers", "kubernetes-client"}


def main() -> None:
    """Run the named benchmarks, or all.

    Raises:
        SystemExit: something required is missing; the message says what to run.
    """
    arguments = parse_arguments()
    machine = describe_machine(arguments.rounds)
    results = []
    if not arguments.json:
        print("; ".join(f"{name} {value}" for name, value in machine.items()))
    with ExitStack() as resources:
        session = Session(arguments.rounds, resources, writes_ratios=arguments.write_ratios)
        for name in arguments.names or [name for name in BENCHMARKS if name not in ON_REQUEST]:
            try:
                result = run(name, session)
            except (NotBuiltError, NotMeasurableError) as error:
                raise SystemExit(f"{name}: {error}") from error
            results.append(result)
            if not arguments.json:
                show(result)
    if arguments.json:
        tables = [{**result, "tables": [asdict(table) for table in result["tables"]]} for result in results]
        print(json.dumps({"machine": machine, "benchmarks": tables}, indent=1))


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    listed = "\n".join(f"  {name:<10} {benchmark.what}" for name, benchmark in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Run benchmarks and print tables:\n\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all but {' and '.join(sorted(ON_REQUEST))}")
    parser.add_argument(
        "--rounds", type=int, default=DEFAULT_ROUNDS, help="how often each case is measured (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    parser.add_argument(
        "--write-ratios",
        action="store_true",
        help="write down what `functions` measures, for later versions to compare with",
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if arguments.rounds < 1:
        parser.error("at least one round is needed")
    return arguments


def describe_machine(rounds: int) -> dict[str, Any]:
    """Describe the machine."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "rounds": rounds,
    }


def run(name: str, session: Session) -> dict[str, Any]:
    """Run a benchmark; return its tables with the load average before and after."""
    print(f"measuring {name}: {BENCHMARKS[name].what}", file=sys.stderr, flush=True)
    load = os.getloadavg()[0]
    started = time.monotonic()
    tables = BENCHMARKS[name].measure(session)
    seconds = round(time.monotonic() - started, 1)
    return {"name": name, "seconds": seconds, "load": [round(load, 1), round(os.getloadavg()[0], 1)], "tables": tables}


def show(result: dict[str, Any]) -> None:
    """Print the tables of a benchmark."""
    print(f"\n── {result['name']} ({result['seconds']} s; load {result['load'][0]} before, {result['load'][1]} after)")
    for table in result["tables"]:
        print(table.render())
    sys.stdout.flush()


if __name__ == "__main__":
    main()
