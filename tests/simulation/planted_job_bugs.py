"""Bugs in how a job is saved, looked at again, and kept within its limits."""

from dataclasses import replace
from datetime import timedelta

from relaunch.adapters.aws.ecs import target as ecs_target
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.lifecycle import decision as deciding
from relaunch.core.lifecycle import (
    launching,
    machine_waits,
    moves,
    refusal_waits,
    restart_policy,
    running,
    stopping,
    survivors,
    unconfirmed_stops,
    verdicts,
    waiting,
    withdrawals,
)
from relaunch.core.lifecycle.restart_policy import out_of_time
from relaunch.usecases import reconcile_jobs as reconciling
from relaunch.usecases.advance_job import JobLifecycle
from relaunch_local.in_memory.jobs import InMemoryJobs
from simulation import broken_parts as broken
from simulation.broken_parts import accounted, action, changed, replaced, without_effect, written
from simulation.planted_bugs import PlantedBug
from simulation.planting import guard_changed, patched_in, writes

# A seed with hundreds of jobs.
_BIG_COMPANY = 99
_DAY = timedelta(days=1)


_OUT_OF_TIME = (launching, machine_waits, restart_policy, running, survivors, unconfirmed_stops, waiting, withdrawals)
_ENDING = (launching, machine_waits, refusal_waits, restart_policy, stopping, waiting)

JOB_BUGS = (
    PlantedBug(
        "version-ignored",
        "an observation of a task counts whatever its `version`",
        lambda: guard_changed("is_new_observation", broken.any_version),
        "an older observation of a task changes nothing",
    ),
    PlantedBug(
        "wake-at-forgotten",
        "a job whose task was seen has no wake_at",
        action("task_seen", broken.seen_and_not_woken),
        "no unhandled exception",
    ),
    PlantedBug(
        "heartbeat-of-a-day",
        "a running job is looked at once a day",
        changed(moves, HEARTBEAT=_DAY),
        "every open job is woken",
    ),
    PlantedBug(
        "effects-not-pending",
        "effects are done after the save, and not saved as pending",
        changed(JobLifecycle, apply=broken.apply_without_pending),
        "what is meant to stop is asked to",
    ),
    PlantedBug(
        "pending-not-finished",
        "pending effects are not performed when a job is loaded",
        changed(JobLifecycle, advance=broken.advance_without_finishing),
        "a job that can finish does finish",
        first=8,
    ),
    PlantedBug(
        "slot-kept",
        "a job that is over keeps its slot",
        written(release_slot=False),
        "a job that can finish does finish",
    ),
    PlantedBug(
        "slot-released-early",
        "a job that is to be launched again gives its slot back, and does not take another",
        lambda: writes(broken.release_while_relaunching),
        "max_running_jobs is kept",
    ),
    PlantedBug(
        "slot-kept-while-unreadable",
        "a job keeps its slot while its checkpoints cannot be read",
        lambda: writes(broken.slot_kept_while_waiting),
        "a job that is refused holds a slot only with a machine that it keeps",
        60,
    ),
    PlantedBug(
        "slot-not-taken",
        "jobs are launched without a slot",
        written(take_slot_limits=None),
        "no more tasks than max_running_jobs",
    ),
    PlantedBug(
        "stack-cap-ignored",
        "the stack's cap on running jobs is not kept",
        lambda: writes(broken.no_stack_cap),
        "max_running_jobs is kept",
        30,
    ),
    PlantedBug(
        "admit-waiting-dropped",
        "a released slot is offered to no waiting job",
        without_effect(AdmitWaiting),
        "an effect is done before it is forgotten",
    ),
    PlantedBug(
        "max-runtime-ignored",
        "a job's max_runtime passes unnoticed",
        lambda: patched_in(_OUT_OF_TIME, out_of_time=broken.without_max_runtime(out_of_time)),
        "a job that can finish does finish",
        60,
        first=30,
    ),
    PlantedBug(
        "run-seconds-not-summed",
        "the run time of ended attempts is forgotten",
        accounted(
            lambda before, after: replace(after, totals=replace(after.totals, run_seconds=before.totals.run_seconds))
        ),
        "the record's run time is that of the tasks",
        30,
        first=30,
    ),
    PlantedBug(
        "cost-counted-twice",
        "the cost of an attempt is added twice",
        accounted(
            lambda before, after: replace(
                after, totals=replace(after.totals, cost_usd=2 * after.totals.cost_usd - before.totals.cost_usd)
            )
        ),
        "the record's cost is the bill",
    ),
    PlantedBug(
        "end-is-now",
        "a task ends when its event is handled, not at its stoppedAt",
        replaced(verdicts, "classify_stop", broken.ends_now),
        "the record's cost is the bill",
    ),
    PlantedBug(
        "start-is-now",
        "a task starts when its event is handled, not at its startedAt",
        replaced(running, "observed", broken.start_seen_now),
        "the record's cost is the bill",
    ),
    PlantedBug(
        "save-unconditional",
        "a job is saved without a check of its version",
        replaced(InMemoryJobs, "save_job", broken.unconditional_save),
        "an older observation of a task changes nothing",
        30,
    ),
    PlantedBug(
        "no-timeline",
        "nothing is written in the timeline",
        written(timeline=()),
        "the timeline tells the beginning and the end",
    ),
    PlantedBug(
        "over-and-not-due",
        "a job that is over is not due though its slot may not have been handed on",
        lambda: patched_in(_ENDING, end=broken.end_as_due(deciding.end)),
        "what is over waits for nothing",
    ),
    PlantedBug(
        "deadline-ignored",
        "a job's deadline passes unnoticed",
        lambda: patched_in(_OUT_OF_TIME, out_of_time=broken.without_deadline(out_of_time)),
        "nothing lives long after its deadline",
        30,
    ),
    PlantedBug(
        "due-jobs-skipped",
        "due jobs are loaded only when they have been due for an hour",
        replaced(reconciling, "_look", broken.only_long_overdue),
        "what is due is looked at in time",
    ),
    PlantedBug(
        "first-page-only",
        "only the first page of a list of ECS is read",
        changed(ecs_target, read_pages=broken.first_page),
        "a sweep looks at every task",
        1,
        first=_BIG_COMPANY,
    ),
)
