"""AWS's documented limits on a load, and the least time that each of them allows.

The times are computed from the limits and the calls a load cannot do without, not from a run.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from relaunch_local.ecs import Timing
from relaunch_local.ecs.rules.limits import MACHINES, RUN_INSTANCES, rate_of
from relaunch_local.simulation.aws.template import read_stack
from relaunch_local.simulation.load.machines import CREATE_FLEET_SECONDS

LAMBDA_CONCURRENCY = 1_000
"""Concurrent executions per account; new accounts start with fewer."""


# 1,000 write units per second of a partition; a transaction takes two units per KiB.
_ITEM_WRITES = 500.0
(REQUEST_CONCURRENCY,) = (each.max_concurrency for each in read_stack().functions["request_machine"].sources)


@dataclass(frozen=True, slots=True)
class Load:
    """A number of jobs at once, with one task each.

    `machines` is how many instances have to start, 0 if there is room for all tasks; `per_machine` how many tasks fit
    on each; `definitions` the number of job definitions. `is_own`: the instances are machines of our own, of which
    `max_machines` may live at once, 0 for any number; if those do not suffice, a job takes `work_seconds`.
    """

    jobs: int
    definitions: int
    machines: int
    per_machine: int
    provisioning_quota: int
    is_own: bool = False
    max_machines: int = 0
    work_seconds: float = 0.0


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
    start = _start_seconds(load, timing)
    # User data pulls the image while the agent of a machine of our own registers.
    pull = max(timing.pull - timing.registration, 0.0) if load.is_own and load.machines else timing.pull
    run_up = timing.agent_reaction + pull
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
        # Each job takes a slot of the stack in the transaction that claims or places; a transaction costs double.
        Limit(
            "writes of one item of the jobs table",
            f"{_ITEM_WRITES:,.0f}/s in transactions",
            "Amazon DynamoDB Developer Guide, Designing partition keys; Transactions, capacity",
            load.jobs / _ITEM_WRITES + start + run_up,
        ),
    ]
    if load.machines and load.is_own:
        limits += _own_machines(load, timing, start + run_up)
    elif load.machines:
        limits += [_provisioning(load, timing, start + run_up), _machines(load, start + run_up)]
    return limits


def _start_seconds(load: Load, timing: Timing) -> float:
    if not load.machines:
        return 0.0
    return (0.0 if load.is_own else timing.scale_out) + timing.boot + timing.registration


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


def _own_machines(load: Load, timing: Timing, run_up: float) -> list[Limit]:
    """Return the limits on machines of our own: each is one request of CreateFleet, which calls RunInstances once."""
    burst, per_second = RUN_INSTANCES
    together = min(load.machines, load.max_machines or load.machines)
    limits = [
        Limit(
            "requests of RunInstances (in CreateFleet)",
            f"{burst:,.0f} at once, then {per_second:,.0f}/s",
            "Amazon EC2 Developer Guide, Request throttling; that fleets take from it is inferred",
            max(load.machines - burst, 0.0) / per_second + run_up,
        ),
        Limit(
            "functions request_machine at once",
            f"{REQUEST_CONCURRENCY} at once, CreateFleet takes {CREATE_FLEET_SECONDS:.0f} s",
            "template.yaml, MaximumConcurrency; the time of CreateFleet is an assumption",
            load.machines * CREATE_FLEET_SECONDS / REQUEST_CONCURRENCY + run_up,
        ),
        _machines(load, run_up),
    ]
    if together < load.machines:
        rounds = math.ceil(load.jobs / (together * load.per_machine))
        limits.append(
            Limit(
                "machines of our own at once",
                f"MaxMachines {load.max_machines:,}",
                "template.yaml",
                (rounds - 1) * (load.work_seconds + timing.agent_reaction) + run_up,
            )
        )
    return limits


def _machines(load: Load, run_up: float) -> Limit:
    burst, per_second = MACHINES
    waiting = max(load.machines - burst, 0.0) / per_second
    return Limit(
        "machines launched (RunInstances, CreateFleet)",
        f"{burst:,.0f} at once, then {per_second:,.0f}/s",
        "Amazon EC2 Developer Guide, Request throttling, resource token limits",
        waiting + run_up,
    )
