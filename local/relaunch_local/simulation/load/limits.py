"""AWS's documented limits on a load, and the least time that each of them allows.

The times are computed from the limits and the calls a load cannot do without, not from a run.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from relaunch_local.ecs import Timing
from relaunch_local.ecs.rules.limits import MACHINES, rate_of

LAMBDA_CONCURRENCY = 1_000
"""Concurrent executions per account; new accounts start with fewer."""


@dataclass(frozen=True, slots=True)
class Load:
    """A number of jobs at once, with one task each.

    `machines` is how many instances have to start, 0 if there is room for all tasks; `per_machine` how many tasks fit
    on each; `definitions` the number of job definitions.
    """

    jobs: int
    definitions: int
    machines: int
    per_machine: int
    provisioning_quota: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, its documented value, the source of that, and the seconds from the events to the last running task."""

    name: str
    documented: str
    source: str
    least_seconds: float


def limits_of(load: Load, timing: Timing) -> list[Limit]:
    """Return every limit, with the least time that it alone allows."""
    ecs = "Amazon ECS API Reference, Request throttling"
    start = timing.scale_out + timing.boot + timing.registration if load.machines else 0.0
    run_up = timing.agent_reaction + timing.pull
    limits = [
        # Instances start while other tasks are still requested.
        _bucket("RunTask and StopTask", load.jobs, rate_of("RunTask"), ecs, run_up, start + run_up),
        # One call per definition suffices, not one per job.
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
    """Return the limit that takes the most time."""
    return max(limits, key=lambda limit: limit.least_seconds)


def _bucket(name: str, calls: int, rate: tuple[float, float], source: str, run_up: float, least: float = 0.0) -> Limit:
    burst, per_second = rate
    waiting = max(calls - burst, 0.0) / per_second
    return Limit(name, f"{burst:,.0f} at once, then {per_second:,.0f}/s", source, max(waiting + run_up, least))


def _provisioning(load: Load, timing: Timing, last_round: float) -> Limit:
    """Return the limit on tasks that wait for instances, from RunTask until their instance has registered.

    Managed scaling runs about once a minute, and the tasks it has started instances for stay in the quota for one more
    run: two runs in a row cannot start instances for more than the quota. The last instance of each run may have room.
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
