"""AWS's documented limits on a load, and the least time that each of them allows, whoever makes the calls.

The times are computed from the limits and from what a load cannot do without; nothing here looks at a run.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from relaunch_local.ecs import Timing
from relaunch_local.ecs.rules.limits import MACHINES, rate_of

LAMBDA_CONCURRENCY = 1_000
"""Functions of an account that run at once; new accounts have less until they ask."""


@dataclass(frozen=True, slots=True)
class Load:
    """So many jobs at once, one task each.

    `machines` are to be started, 0 when there is room for all tasks; `per_machine` tasks fit on each.
    `definitions` are the job definitions behind them all.
    """

    jobs: int
    definitions: int
    machines: int
    per_machine: int
    provisioning_quota: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, its documented value, where that is written, and the seconds from event to last running task."""

    name: str
    documented: str
    source: str
    least_seconds: float


def limits_of(load: Load, timing: Timing) -> list[Limit]:
    """Every limit in force, with the least time that it alone allows."""
    ecs = "Amazon ECS API Reference, Request throttling"
    start = timing.scale_out + timing.boot + timing.registration if load.machines else 0.0
    run_up = timing.agent_reaction + timing.pull
    limits = [
        # Machines start while other tasks are still asked for.
        _bucket("RunTask and StopTask", load.jobs, rate_of("RunTask"), ecs, run_up, start + run_up),
        # One call per definition would do: what is newest need not be asked for every job.
        _bucket("DescribeTaskDefinition", load.definitions, rate_of("DescribeTaskDefinition"), ecs, run_up),
        _bucket("RegisterTaskDefinition", load.definitions, rate_of("RegisterTaskDefinition"), ecs, run_up),
        Limit(
            "Lambda functions at once",
            f"{LAMBDA_CONCURRENCY:,} per account",
            "AWS Lambda Developer Guide, Lambda quotas",
            start + run_up,
        ),
    ]
    if load.machines:
        limits += [_provisioning(load, timing, start + run_up), _machines(load, start + run_up)]
    return limits


def tightest(limits: Iterable[Limit]) -> Limit:
    """The limit that takes the most time."""
    return max(limits, key=lambda limit: limit.least_seconds)


def _bucket(name: str, calls: int, rate: tuple[float, float], source: str, run_up: float, least: float = 0.0) -> Limit:
    burst, per_second = rate
    waiting = max(calls - burst, 0.0) / per_second
    return Limit(name, f"{burst:,.0f} at once, then {per_second:,.0f}/s", source, max(waiting + run_up, least))


def _provisioning(load: Load, timing: Timing, last_round: float) -> Limit:
    """So many tasks at a time wait for machines, from the request until their machine has registered.

    Managed scaling looks about once a minute, and what it has started stands in the quota for one look more: in no two
    looks in a row can it start machines for more than the quota. Of each look's machines the last has room to spare.
    """
    looks = max(math.ceil((timing.boot + timing.registration) / timing.scale_out), 1) + 1
    at_a_time = load.provisioning_quota + looks * (load.per_machine - 1)
    rounds = math.ceil(load.jobs / at_a_time)
    start = timing.scale_out + timing.boot + timing.registration
    return Limit(
        "tasks in PROVISIONING",
        f"{load.provisioning_quota:,} per cluster, {start:.0f} s each",
        "Service Quotas, Amazon ECS, L-B7718569",
        (rounds - 1) * start + last_round,
    )


def _machines(load: Load, run_up: float) -> Limit:
    burst, per_second = MACHINES
    waiting = max(load.machines - burst, 0.0) / per_second
    return Limit(
        "machines launched (RunInstances, CreateFleet)",
        f"{burst:,.0f} at once, then {per_second:,.0f}/s",
        "Amazon EC2 Developer Guide, Request throttling, resource token limits",
        waiting + run_up,
    )
