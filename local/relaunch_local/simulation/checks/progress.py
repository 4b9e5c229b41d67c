"""Jobs that gain no step end, and those that do go on: by what the tasks left in S3, and by ECS's timestamps.

The time within which an attempt is to have saved is that of its recipe, which the application does not know: it learns
it, or takes half an hour. What it may reckon with lies between a quarter of an hour and the longer of both. All these
trainings count their steps, so what one saves before its first step is no progress.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.members import placement_of
from relaunch_local.simulation.checks.times import CLOCK_SKEW, timestamp

Check = Callable[[str, bool, str], None]

# What the design says, written down here once more.
_IN_A_ROW = 3
_UNKNOWN = timedelta(minutes=30)
_LEAST = timedelta(minutes=15)
_RESUMED = re.compile(r"RELAUNCH_RESUME_URI.*?/step-([0-9]+)/")


@dataclass(frozen=True, slots=True)
class _Run:
    """A task that ran: for how long, and whether it gained a step, or one more than the one it resumed from is there.

    `is_certain`: ECS showed it until its end, and told how it ended. `unsaved` is how long it ran until it saved its
    only checkpoint because it was told to: no more is known of it then.
    """

    seconds: timedelta
    has_gained: bool
    is_certain: bool
    unsaved: timedelta


def check_progress(  # noqa: PLR0913, PLR0917 - all that says what progress was
    check: Check,
    job: Job,
    tasks: Mapping[str, Mapping[str, object]],
    recipe: Recipe,
    slowest: float,
    objects: ObjectStore,
    facts: AccountFacts,
) -> None:
    """Check a job that is over: it ended once its attempts gained nothing, and not before.

    `slowest` is the speed of its trainings where they are slowest.
    """
    is_end = job.state is JobState.FAILED and "gained no step" in job.reason
    if job.definition.checkpoint_uri is None:
        check("only a job without progress ends for that", not is_end, f"{job.job_id} has no checkpoints")
        return
    runs = list(_runs(job, tasks, objects, facts))
    to_save = timedelta(seconds=(recipe.checkpoint_seconds or 0.0) / slowest + recipe.save_seconds)
    seemed = max((run.unsaved for run in runs if run.has_gained), default=timedelta(0))
    longest = max(_UNKNOWN, to_save, seemed) + 2 * CLOCK_SKEW
    in_vain = _most_in_a_row(runs, lambda run: run.is_certain and run.seconds > longest)
    check("a job without progress ends", in_vain <= _IN_A_ROW, f"{job.job_id}: {in_vain} attempts in a row")
    if is_end:
        shown = _last_in_a_row(runs, lambda run: run.seconds >= _LEAST - 2 * CLOCK_SKEW)
        check("only a job without progress ends for that", shown >= _IN_A_ROW, f"{job.job_id}: {shown} attempts")


def _runs(
    job: Job, tasks: Mapping[str, Mapping[str, object]], objects: ObjectStore, facts: AccountFacts
) -> Iterator[_Run]:
    """Yield the tasks of a job that ran, in the order in which they started; of several that ran together the last."""
    saved = objects.steps_of(job.definition.checkpoint_uri or "", job.job_id)
    started = {arn: at for arn, task in tasks.items() if (at := timestamp(task, "startedAt")) is not None}
    placements = {placement_of(tasks[arn]): arn for arn in sorted(started, key=lambda arn: started[arn])}
    for arn in placements.values():
        stopped_at = timestamp(tasks[arn], "stoppedAt") or facts.ran_until(arn)
        if stopped_at is None:
            continue
        resumed = _RESUMED.search(str(tasks[arn].get("overrides")))
        before = int(resumed[1]) if resumed else 0
        attempt = int(str(tasks[arn]["startedBy"]).rpartition("/")[2])
        # A task that ECS hid may write while another one runs.
        has_gained = any(step > before for _, step, at in saved if at <= stopped_at)
        is_hidden = facts.hidden_span(arn) is not None or arn in facts.forgotten
        own = [at for each, _, at in saved if each == attempt]
        told_at = facts.stop_asked_at.get(arn)
        is_told = told_at is not None and all(at > told_at - CLOCK_SKEW for at in own)
        ran = stopped_at - started[arn]
        yield _Run(ran, has_gained, not is_hidden, ran if is_told else timedelta(0))


def _rows(runs: list[_Run], counts: Callable[[_Run], bool]) -> Iterator[int]:
    """Yield how many runs in a row gained nothing, after each; those that do not count are passed over."""
    number = 0
    for run in runs:
        number = 0 if run.has_gained else number + counts(run)
        yield number


def _most_in_a_row(runs: list[_Run], counts: Callable[[_Run], bool]) -> int:
    return max(_rows(runs, counts), default=0)


def _last_in_a_row(runs: list[_Run], counts: Callable[[_Run], bool]) -> int:
    return ([0, *_rows(runs, counts)])[-1]
