"""What a job that waits for spot, or is moved to it, must be left: the time for all its work on on-demand."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import WaitReason
from relaunch.core.selection.expected_cost import START_OVERHEAD
from relaunch_local.simulation.aws.recipes import Recipe, work_of
from relaunch_local.simulation.aws.s3 import Checkpoint, ObjectStore
from relaunch_local.simulation.checks.learned_speeds import SPEED_TOLERANCE

# The clocks of two functions differ by up to six seconds.
_CLOCK_SKEW = timedelta(seconds=7)
_ROUNDED = timedelta(seconds=1)

Check = Callable[[str, bool, str], None]


def check_market_wait(  # noqa: PLR0913 - all that the wait depends on
    check: Check,
    before: Job | None,
    job: Job,
    recipes: Mapping[str, Recipe],
    saved: Checkpoint | None,
    now: datetime,
    *,
    is_sold: bool,
    speed: float,
    known_speed: Callable[[], float | None],
) -> None:
    """Check that a job begins to wait for its market only as long as an on-demand start then meets its deadline.

    `saved` is the checkpoint from which it resumes. `is_sold`: the region sells an on-demand instance, at a price that
    is known, on which the job may run; `speed` is how fast it is there at best, and `known_speed` returns how fast at
    least, as is published, on the best one that can be launched now, None if none can. Where that one is slower and
    does not keep the deadline, the job may wait while only its padding and the time of a start are missing, by what it
    has learned of speeds.
    """
    waiting = job.waiting
    definition = job.definition
    if waiting is None or waiting.reason is not WaitReason.MARKET or (before is not None and before.waiting == waiting):
        return
    has_limit = definition.deadline is not None or definition.patience is not None
    check("only a job with a limit waits for its market", has_limit, job.job_id)
    # Where nothing is sold on demand at the price of the job, there is nothing else to wait for.
    if definition.deadline is None or not is_sold or waiting.until is None:
        return
    if _is_too_low(job, recipes):
        return
    left = work_of(recipes[definition.name], saved.step if saved is not None else 0.0)
    over_at = job.accepted_at + definition.deadline
    known = known_speed()
    if known is not None and (known >= speed or now + left / known + START_OVERHEAD <= over_at):
        latest = over_at - left / known - START_OVERHEAD
    else:
        latest = over_at - left / speed / (1 + definition.padding) / (1 + SPEED_TOLERANCE)
    is_kept = waiting.until <= max(latest, now) + _CLOCK_SKEW and now <= latest + _CLOCK_SKEW
    message = f"{job.job_id} waits until {waiting.until:%H:%M:%S}, and must start by {latest:%H:%M:%S}"
    check("a wait for the market leaves the time for on-demand", is_kept, message)


def _is_too_low(job: Job, recipes: Mapping[str, Recipe]) -> bool:
    """Return whether the estimate of a definition is lower than its work by more than its padding."""
    definition = job.definition
    estimate = definition.estimated_duration
    return estimate is not None and work_of(recipes[definition.name]) > estimate * (1 + definition.padding) + _ROUNDED


def check_move(  # noqa: PLR0913 - all that the move depends on
    check: Check,
    before: Job | None,
    job: Job,
    recipes: Mapping[str, Recipe],
    objects: ObjectStore,
    now: datetime,
    *,
    speed: float,
) -> None:
    """Check that a task is moved only from on-demand, after it saved, and that a return still meets the deadline."""
    attempt = job.attempt
    intent = attempt.intent if attempt is not None else None
    is_known = before is not None and before.attempt is not None and before.attempt.intent == intent
    if attempt is None or intent is None or intent.kind is not IntentKind.MOVE or is_known:
        return
    is_on_demand = attempt.placement.offering.purchase is PurchaseOption.ON_DEMAND
    check("only a task on on-demand is moved", is_on_demand and bool(job.machine_id), job.job_id)
    saved = objects.newest.get(job.job_id)
    has_saved = saved is not None and saved.attempt == attempt.number
    check("no move without a saved checkpoint", has_saved, f"{job.job_id}: {saved}")
    if saved is None or job.definition.deadline is None:
        return
    if _is_too_low(job, recipes):
        return
    left = work_of(recipes[job.definition.name], saved.step) / speed
    latest = job.accepted_at + job.definition.deadline - left - 2 * START_OVERHEAD
    message = f"{job.job_id} is moved at {now:%H:%M:%S}, and had to be by {latest:%H:%M:%S}"
    check("a move leaves the time for on-demand", now <= latest + _CLOCK_SKEW, message)
