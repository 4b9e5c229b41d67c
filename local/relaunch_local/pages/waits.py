"""Generates docs/waits.md: how long each state lasts at most, who is told, and what a person can do.

Run `python -m relaunch_local.pages.waits docs/waits.md`. tests/unit/local/pages/test_waits.py starves what has a bound.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from relaunch.core.definitions.definition import ImageWait
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch_plan import OLDEST_GANG_PLACEMENT, OLDEST_PLACEMENT
from relaunch.core.lifecycle.long_waits import BUDGET_LIMIT, QUEUE_LIMIT, RESERVATION_LIMIT, START_LIMIT
from relaunch.core.lifecycle.machine_waits import LIMIT_POLL_INTERVAL
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.lifecycle.refusal_waits import TRAINED_WAIT, UNTRAINED_WAIT
from relaunch.core.lifecycle.restart_policy import LONGEST_BACKOFF_SECONDS
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.lifecycle.unconfirmed_stops import (
    CONFIRMED_WITHIN,
    HOST_END_GRACE,
    STOP_LIMIT,
    TOLD_AFTER,
    UNTOLD_HOST_END_GRACE,
)
from relaunch.core.lifecycle.verdicts import VERDICT_WAIT
from relaunch.core.lifecycle.withdrawals import REFUSED_FOR, START_TIMEOUT
from relaunch.core.machines.absent_agents import AWAY_LIMIT, DOUBT_LIMIT, IMPAIRED_LIMIT
from relaunch.core.machines.ending import ENDING_LIMIT
from relaunch.core.machines.living import HANDOVER_TIME
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.requesting import LOOKED_FOR
from relaunch.core.machines.starts import AT_ONCE
from relaunch.core.selection.expected_cost import CHECKPOINT_INTERVAL

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a definition without a deadline: its bound and end in words, what tells of it, what a person can do.

    `told` are metrics, whose alarms docs/operations.md lists.
    """

    bound: str
    told: tuple[Metric, ...]
    help: str


def _minutes(span: timedelta) -> str:
    minutes = span // _MINUTE
    return f"{minutes} minutes" if minutes > 1 else "a minute"


_REFUSED = (
    f"{UNTRAINED_WAIT // timedelta(hours=1)} hours, {TRAINED_WAIT.days} days once it has trained: FAILED "
    "(`retry` resumes from its checkpoint)"
)
_HOURS = START_LIMIT // timedelta(hours=1)
_DAYS = QUEUE_LIMIT.days
_START = (
    f"{_HOURS} hours (and its `patience`) in which it is not running, in all: before its first run, or since then: "
    "FAILED, and its reason names its checkpoints"
)
_RESERVED = (
    f"{_START}; with `purchase: reserved` {RESERVATION_LIMIT.days // 7} weeks before its first run, for a Capacity "
    "Block starts up to eight weeks after it was bought"
)
_QUEUE = (
    f"{_DAYS} days of waiting behind others, in all: before its first run, or since then: FAILED, and its reason names "
    "its checkpoints"
)

JOB_STATES: Mapping[JobState, Wait] = {
    JobState.WAITING: Wait("by what it waits for, below", (), "`relaunch cancel`"),
    JobState.LAUNCHING: Wait(
        f"{_minutes(OLDEST_PLACEMENT)} for a launch that is not answered, {_minutes(OLDEST_GANG_PLACEMENT)} of several "
        "nodes, a few once its machine of our own is gone; "
        f"{_minutes(StackLimits().provisioning_deadline(is_managed=False))} for an instance, "
        f"{_minutes(START_TIMEOUT)} for a start: another placement. "
        f"On Kubernetes {_minutes(REFUSED_FOR)} for a pod whose creation is refused: it waits without a slot; "
        f"a pod that is not scheduled and has no other offering: {_HOURS} hours in which it is not "
        "running, in all: FAILED; "
        "one that a queue of the cluster holds back, as long as for a slot: FAILED",
        (Metric.JOBS_OVERDUE, Metric.JOBS_REFUSED),
        "`relaunch explain`, `relaunch cancel`",
    ),
    JobState.RUNNING: Wait(
        "`max_runtime`; three attempts in a row (`retry.max_attempts_without_progress`) that gain no step, though each "
        f"ran for longer than one takes to save ({_minutes(CHECKPOINT_INTERVAL)} while nothing was saved): FAILED; "
        f"{_minutes(HOST_END_GRACE)} after EC2 ended its host, {_minutes(UNTOLD_HOST_END_GRACE)} while the cluster "
        "cannot be asked. A machine of our own whose agent stays away is terminated (READY, below); another host whose "
        "agent is disconnected is waited for until `max_runtime`",
        (Metric.MACHINES_ABANDONED, Metric.TASKS_UNREACHABLE),
        "`relaunch logs`, `relaunch cancel`; terminate a host of others that hangs",
    ),
    JobState.STOPPING: Wait(
        f"{NOTICE_LEAD.seconds} seconds after its program ended, while EC2 may say yet that it took the machine away, "
        f"{_minutes(VERDICT_WAIT)} if a signal ended it or EC2 does not answer; "
        f"its stop time-out and {_minutes(CONFIRMED_WITHIN)}, then a machine of our own is terminated; "
        f"{_minutes(TOLD_AFTER)}, then an alert names the host; the job waits until the agent of "
        f"that is back or the host is gone, for {STOP_LIMIT // timedelta(hours=1)} hours at most: then it ends, and "
        "its reason says so; on Kubernetes a job that is cancelled or out of time ends at the alert",
        (Metric.STOPS_UNCONFIRMED, Metric.MACHINES_ABANDONED),
        "terminate the instance, or deregister it from the cluster; a pod: remove its node, or `relaunch lost`",
    ),
}

# At half of the bound, and once a day from then on.
_TOLD = (Metric.JOBS_REFUSED,)

WAIT_REASONS: Mapping[WaitReason, Wait] = {
    WaitReason.LAUNCH: Wait(
        f"asked for again every 5 minutes; {_START}",
        (Metric.JOBS_OVERDUE, Metric.DEAD_LETTERS, Metric.JOBS_REFUSED),
        "see the alarm",
    ),
    WaitReason.IMAGE: Wait(
        f"`wait_for_image`, {_minutes(ImageWait('').timeout)} by default: FAILED",
        (Metric.JOBS_ENDED,),
        "push the image; `retry`",
    ),
    WaitReason.SLOT: Wait(
        _QUEUE, _TOLD, "cancel a job, also that of its concurrency group, or raise `max_running_jobs` or MaxRunningJobs"
    ),
    WaitReason.CAPACITY: Wait(_RESERVED, _TOLD, "allow on-demand, more types, or more zones"),
    WaitReason.PRICE: Wait(_START, _TOLD, "raise the maximum price"),
    WaitReason.BACKOFF: Wait(
        f"{_minutes(timedelta(seconds=LONGEST_BACKOFF_SECONDS))}: launched again", (Metric.STOPS,), "`relaunch logs`"
    ),
    WaitReason.MARKET: Wait(_START, _TOLD, "set a deadline, or another purchase"),
    WaitReason.MACHINE: Wait(
        f"until its machine is ready or given up (below); {_START}",
        (Metric.MACHINES_NOT_READY, Metric.JOBS_REFUSED),
        "`relaunch machines`",
    ),
    WaitReason.MACHINE_LIMIT: Wait(
        f"while as many machines start as may at once ({AT_ONCE}, one of a cause that is bad), until one of them "
        f"is of use or given up; at the stack's limits {_QUEUE}. A limit that is raised wakes no job: each looks again "
        f"within {_minutes(LIMIT_POLL_INTERVAL)}, and a new one may come first",
        _TOLD,
        "end machines, or raise MaxMachines or the money per hour; those that start: nothing",
    ),
    WaitReason.BUDGET: Wait(
        f"until its budget has room; {BUDGET_LIMIT.days} days: FAILED", _TOLD, "raise the budget; `relaunch budgets`"
    ),
    WaitReason.CHECKPOINT: Wait(_REFUSED, (Metric.JOBS_REFUSED,), "grant what `relaunch explain` names"),
    WaitReason.REFUSED: Wait(_REFUSED, (Metric.JOBS_REFUSED,), "grant what `relaunch explain` names"),
}

MACHINE_STATES: Mapping[MachineState, Wait] = {
    MachineState.REQUESTED: Wait(
        f"{_minutes(LOOKED_FOR)} after EC2 was last asked: GONE", (Metric.MACHINES_REFUSED,), "`relaunch machines`"
    ),
    MachineState.STARTING: Wait(
        "`MachineRegistrationMinutes` after its launch: terminated",
        (Metric.MACHINES_NOT_READY,),
        "see the AMI, the network",
    ),
    MachineState.READY: Wait(
        f"with its last claim and the warm time; {_minutes(HANDOVER_TIME)} after it did not confirm a stop: "
        f"terminated; {_minutes(AWAY_LIMIT)} after a sweep found its agent away, or after the newest checkpoint since "
        f"then, and {_minutes(IMPAIRED_LIMIT)} if EC2's status checks fail and no checkpoint came: terminated, unless "
        "its checkpoints cannot be read, or most agents of the cluster are away: then not at all while they are three "
        f"or more, and after {_minutes(DOUBT_LIMIT)} if they are two, {_minutes(AWAY_LIMIT)} if those checks fail",
        (Metric.MACHINES_ABANDONED,),
        "cancel its jobs",
    ),
    MachineState.ENDING: Wait(
        f"until EC2 has ended it: asked for again every minute, and told {_minutes(ENDING_LIMIT)} after the first "
        "time, then every hour, for it may cost",
        (Metric.TERMINATIONS_REFUSED, Metric.MACHINE_ALERTS),
        "terminate the instance by hand",
    ),
}

_HEAD = """\
# Waits

<!-- Written by `python -m relaunch_local.pages.waits docs/waits.md`; the bounds are those of the code. -->

How long a job or a machine stays where it is at most, for a definition without a deadline: a deadline ends every wait
of a job. `relaunch ps` lists the jobs that wait, and `relaunch explain` says what they wait for, until when, and what
would help. `JobsRefused` tells of a long wait at half of its bound, and once a day from then on. Each metric is
on a dashboard, and those with an alarm are in [operations.md](operations.md#alarms).
"""


def render_page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD.rstrip("\n")
    for title, waits in (
        ("States of a job", JOB_STATES),
        ("What a WAITING job waits for", WAIT_REASONS),
        ("States of a machine", MACHINE_STATES),
    ):
        yield from (
            "",
            f"## {title}",
            "",
            "| in | for at most, and then | metrics | what a person can do |",
            "|---|---|---|---|",
        )
        for name, wait in waits.items():
            told = ", ".join(f"`{metric}`" for metric in wait.told) or "-"
            yield f"| {name} | {wait.bound} | {told} | {wait.help} |"


def main(arguments: Sequence[str]) -> None:
    """Write the page to the given file."""
    Path(arguments[0]).write_text(render_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
