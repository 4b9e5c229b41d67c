"""Bugs that the simulation must find: each breaks the running application in one place.

`within` is the number of seeds, from 0, of which at least one finds the bug; it has a margin for the day the simulation
draws other numbers. `invariant` is the check that fails. If no invariant finds a bug, an invariant is missing.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from relaunch.adapters.aws import checkpoints, errors
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.adapters.aws.sqs import batch as sqs_batch
from relaunch.core.jobs.job import AdmitWaiting, JobState, RememberCapacity, StopKind, StopTask
from relaunch.core.launches import launch_plan
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed
from relaunch.core.lifecycle import decision as deciding
from relaunch.core.lifecycle import launching, restart_policy, running, stop_reason, stopping
from relaunch.core.lifecycle.restart_policy import is_failure, is_interruption, out_of_time
from relaunch.core.selection import selection
from relaunch.usecases import advance_job as advancing
from relaunch.usecases import launch_attempt as launching_attempts
from relaunch.usecases import reconcile_jobs as reconciling
from relaunch_local.in_memory.jobs import InMemoryJobs
from simulation.broken_parts import (
    Planting,
    accounted,
    action,
    always_again,
    any_step,
    any_version,
    apply_without_pending,
    as_if_sent_for_the_first_time,
    changed,
    end_as_due,
    ends_now,
    exit_zero_is_success,
    go_on_waiting,
    half_an_hour_for_all,
    id_of_each_delivery,
    keep_slot,
    lost_when_missing,
    lost_with_host,
    no_stack_cap,
    no_timeline,
    of_any_job,
    oldest_step,
    only_long_overdue,
    placed_anyway,
    relaunch_on_warning,
    release_while_relaunching,
    replaced,
    seen_and_not_woken,
    start_seen_now,
    stop_without_intent,
    take_no_slot,
    token_of_each_send,
    unconditional_create,
    unconditional_save,
    wait_for_image_for_ever,
    wait_for_pull_for_ever,
    without_deadline,
    without_effect,
    written,
)
from simulation.planting import action_changed, guard_changed, patched, patched_in, rows_dropped


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug: what is broken, how it is planted, which invariant finds it, and within how many seeds."""

    name: str
    broken: str
    plant: Planting
    invariant: str
    within: int


_DAY, _MONTH, _NOTHING = timedelta(days=1), timedelta(days=30), timedelta(0)


BUGS = (
    PlantedBug(
        "token-of-each-send",
        "RunTask gets another client token each time the same placement try is sent",
        token_of_each_send,
        "never two live tasks of one job",
        30,
    ),
    PlantedBug(
        "no-intent",
        "StopTask is sent without an intent saved before",
        lambda: patched_in((running, launching), stop_with_intent=stop_without_intent(stopping.stop_with_intent)),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "version-ignored",
        "an observation of a task counts whatever its `version`",
        lambda: guard_changed("is_new_observation", any_version),
        "an older observation of a task changes nothing",
        8,
    ),
    PlantedBug(
        "wake-at-forgotten",
        "a job whose task was seen has no wake_at",
        action("task_seen", seen_and_not_woken),
        "no unhandled exception",
        8,
    ),
    PlantedBug(
        "heartbeat-of-a-day",
        "a running job is looked at once a day",
        changed(running, HEARTBEAT=_DAY),
        "every open job is woken",
        8,
    ),
    PlantedBug(
        "effects-not-pending",
        "effects are done after the save, and not saved as pending",
        lambda: patched_in((advancing, launching_attempts), apply_event=apply_without_pending),
        "what is meant to stop is asked to",
        8,
    ),
    PlantedBug(
        "pending-not-finished",
        "pending effects are not performed when a job is loaded",
        lambda: patched(advancing, finish_pending=lambda job, _deps: job),
        "a job that can finish does finish",
        8,
    ),
    PlantedBug(
        "no-answer-is-no-task",
        "a RunTask that went unanswered counts as placed nowhere, and the next offering is tried",
        changed(ecs_run_task, LaunchUncertain=lambda reason: PlacementFailed((reason,))),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "throttling-is-refusal",
        "a launch that ECS defers counts as refused for good",
        changed(ecs_run_task, LaunchDeferred=LaunchRefused),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "relaunch-on-warning",
        "on a warning the job is launched again before its task is STOPPED",
        action("host_warned", relaunch_on_warning),
        "never two live tasks of one job",
        8,
    ),
    PlantedBug(
        "missing-once-is-lost",
        "a task that ECS does not know once is taken for lost",
        action("task_missing", lost_when_missing),
        "no job ends before its task",
        60,
    ),
    PlantedBug(
        "host-end-is-stop",
        "an instance that shuts down is taken for a task that has stopped",
        action("host_ended", lost_with_host),
        "never two live tasks of one job",
        8,
    ),
    PlantedBug(
        "stopping-is-stopped",
        "a task that is stopping is taken for STOPPED",
        changed(running, _ENDED=running._ENDED | running._ENDING),
        "never two live tasks of one job",
        30,
    ),
    PlantedBug(
        "incomplete-checkpoint",
        "an attempt resumes from the newest folder, manifest or not",
        any_step,
        "an attempt resumes from the newest complete checkpoint",
        60,
    ),
    PlantedBug(
        "oldest-checkpoint",
        "an attempt resumes from the oldest checkpoint",
        replaced(checkpoints, "_steps", oldest_step),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "checkpoint-of-another-job",
        "an attempt resumes from the newest checkpoint of any job",
        changed(S3Checkpoints, newest_complete=of_any_job),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "never-resumes",
        "no attempt resumes",
        changed(launching_attempts, _resume_uri=lambda _job, _deps: None),
        "an attempt resumes from the newest complete checkpoint",
        8,
    ),
    PlantedBug(
        "one-checkpoint-prefix",
        "all attempts write under the same prefix",
        replaced(
            launch_plan,
            "training_environment",
            lambda original: lambda job: {**original(job), "RELAUNCH_CHECKPOINT_URI": "s3://acme-checkpoints/a/"},
        ),
        "an attempt writes under its own prefix",
        8,
    ),
    PlantedBug(
        "slot-kept", "a job that is over keeps its slot", written(keep_slot), "a job that can finish does finish", 8
    ),
    PlantedBug(
        "slot-released-early",
        "a job that is to be launched again gives its slot back, and does not take another",
        written(release_while_relaunching),
        "max_running_jobs is kept",
        8,
    ),
    PlantedBug(
        "slot-not-taken",
        "jobs are launched without a slot",
        written(take_no_slot),
        "no more tasks than max_running_jobs",
        8,
    ),
    PlantedBug(
        "stack-cap-ignored",
        "the stack's cap on running jobs is not kept",
        written(no_stack_cap),
        "max_running_jobs is kept",
        30,
    ),
    PlantedBug(
        "admit-waiting-dropped",
        "a released slot is offered to no waiting job",
        without_effect(AdmitWaiting),
        "an effect is done before it is forgotten",
        8,
    ),
    PlantedBug(
        "stop-task-dropped",
        "the intent is saved, and StopTask never sent",
        without_effect(StopTask),
        "a warned task is asked to stop",
        8,
    ),
    PlantedBug(
        "capacity-forgotten",
        "an offering that failed is not remembered",
        without_effect(RememberCapacity),
        "an effect is done before it is forgotten",
        8,
    ),
    PlantedBug(
        "capacity-never-expires",
        "an offering that failed is avoided for a month",
        lambda: patched_in((stopping, launching), AVOID_AFTER_NO_CAPACITY=_MONTH),
        "every open job is woken",
        30,
    ),
    PlantedBug(
        "max-failures-ignored",
        "a program that fails is launched again for ever",
        changed(restart_policy, _after_failure=always_again),
        "max_failures is kept",
        8,
    ),
    PlantedBug(
        "interruptions-are-failures",
        "an interruption counts against max_failures",
        changed(stopping, is_failure=lambda kind: is_failure(kind) or is_interruption(kind)),
        "failures are those of the stops",
        8,
    ),
    PlantedBug(
        "failures-not-counted",
        "out of memory counts as no failure",
        changed(stopping, is_failure=lambda kind: is_failure(kind) and kind is not StopKind.OUT_OF_MEMORY),
        "failures are those of the stops",
        8,
    ),
    PlantedBug(
        "max-runtime-ignored",
        "no job is ever out of time",
        lambda: patched_in((running, launching, restart_policy), out_of_time=lambda _job, _now: None),
        "a job that can finish does finish",
        30,
    ),
    PlantedBug(
        "run-seconds-not-summed",
        "the run time of ended attempts is forgotten",
        accounted(lambda before, after: replace(after, run_seconds=before.run_seconds)),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "cost-counted-twice",
        "the cost of an attempt is added twice",
        accounted(lambda before, after: replace(after, cost_usd=2 * after.cost_usd - before.cost_usd)),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "end-is-now",
        "a task ends when its event is handled, not at its stoppedAt",
        replaced(stopping, "classify_stop", ends_now),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "start-is-now",
        "a task starts when its event is handled, not at its startedAt",
        replaced(running, "_observed", start_seen_now),
        "the record's cost is the bill",
        8,
    ),
    PlantedBug(
        "price-cap-ignored",
        "max_price_usd_per_hour rejects no offering",
        replaced(
            selection,
            "derive_criteria",
            lambda original: lambda *parts: replace(original(*parts), price_cap=float("inf")),
        ),
        "price caps are kept",
        30,
    ),
    PlantedBug(
        "intent-without-stop-of-pending-placement",
        "a task whose job was cancelled while its placement was pending is placed as if it had not been",
        lambda: patched_in((launching, running), stop_with_intent=placed_anyway(stopping.stop_with_intent)),
        "what is meant to stop is asked to",
        30,
    ),
    PlantedBug(
        "create-unconditional",
        "a job that is there already is created again",
        unconditional_create,
        "every write is the next version",
        8,
    ),
    PlantedBug(
        "id-of-each-delivery",
        "a job's id comes from the delivery, not from what was delivered",
        id_of_each_delivery,
        "an accepted event becomes exactly one job",
        8,
    ),
    PlantedBug(
        "save-unconditional",
        "a job is saved without a check of its version",
        replaced(InMemoryJobs, "save_job", unconditional_save),
        "an older observation of a task changes nothing",
        30,
    ),
    PlantedBug(
        "exit-zero-is-success",
        "exit code 0 is success, also after our own stop",
        replaced(stop_reason, "_kind", exit_zero_is_success),
        "a stop's reason is its cause",
        8,
    ),
    PlantedBug(
        "placement-expires-at-once",
        "a pending placement is closed as soon as it was not sent at once",
        changed(launching_attempts, _OLDEST_PLACEMENT=timedelta(seconds=1), _SENDING_GRACE=_NOTHING),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "unreadable-message-kept",
        "a message that fails permanently stays in its queue",
        changed(sqs_batch, PermanentError=type("NoSuchError", (Exception,), {})),
        "only unreadable messages are dead-lettered",
        8,
    ),
    PlantedBug(
        "partial-failure-is-success",
        "failed messages of a batch are not named in the answer",
        replaced(
            sqs_batch,
            "process_partial_response",
            lambda original: lambda **named: {**original(**named), "batchItemFailures": []},
        ),
        "an accepted event becomes exactly one job",
        8,
    ),
    PlantedBug(
        "nothing-is-transient",
        "every error of AWS is treated as permanent",
        changed(errors, is_transient=lambda _error: False),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "image-wait-for-ever",
        "a job waits for its image for ever",
        lambda: action_changed("wake_waiting", wait_for_image_for_ever(launching.wake_waiting)),
        "a job that can finish does finish",
        8,
    ),
    PlantedBug(
        "image-not-noticed",
        "the image a job waits for arrives unnoticed",
        lambda: rows_dropped("image_arrived"),
        "every end is deserved",
        8,
    ),
    PlantedBug(
        "reconcile-skips-stopping",
        "jobs that stop are not compared with ECS",
        changed(reconciling, _WITH_TASK=frozenset({JobState.LAUNCHING, JobState.RUNNING})),
        "a job that can finish does finish",
        30,
    ),
    PlantedBug(
        "only-known-instances-warned",
        "a warning concerns only tasks whose instance is in the table",
        changed(EcsTarget, find_on_instance=lambda _self, _instance_id: []),
        "a warned task is asked to stop",
        30,
    ),
    PlantedBug(
        "no-timeline",
        "nothing is written in the timeline",
        written(no_timeline),
        "the timeline tells the beginning and the end",
        8,
    ),
    PlantedBug(
        "over-and-not-due",
        "a job that is over is not due though its slot may not have been handed on",
        lambda: patched_in((launching, stopping), end=end_as_due(deciding.end)),
        "what is over waits for nothing",
        8,
    ),
    PlantedBug(
        "stop-not-repeated",
        "StopTask is sent once, whether it took effect or not",
        action("wake_stopping", go_on_waiting),
        "what is meant to stop does stop",
        60,
    ),
    PlantedBug(
        "start-not-awaited",
        "a task that does not start is waited for as long as ECS waits",
        action("wake_placed", go_on_waiting),
        "a task without a machine is withdrawn in time",
        30,
    ),
    PlantedBug(
        "hanging-pull-awaited",
        "a task that has a machine is waited for, whether it starts or not",
        lambda: action_changed("wake_placed", wait_for_pull_for_ever(launching.wake_placed)),
        "a task that does not start is withdrawn in time",
        60,
    ),
    PlantedBug(
        "start-limits-mixed-up",
        "a task without a machine has as long to start as one that pulls its image",
        lambda: patched_in((launching, running), start_deadline=half_an_hour_for_all),
        "a task without a machine is withdrawn in time",
        30,
    ),
    PlantedBug(
        "cancel-while-launching-ignored",
        "a cancellation while RunTask's answer is unknown is ignored",
        lambda: rows_dropped("cancel_pending"),
        "what is cancelled ends as cancelled",
        30,
    ),
    PlantedBug(
        "cancel-while-stopping-ignored",
        "a cancellation while the task is stopping is ignored",
        lambda: rows_dropped("cancel_stopping"),
        "what is cancelled ends as cancelled",
        30,
    ),
    PlantedBug(
        "deadline-ignored",
        "a job's deadline passes unnoticed",
        lambda: patched_in((running, launching, restart_policy), out_of_time=without_deadline(out_of_time)),
        "nothing lives long after its deadline",
        30,
    ),
    PlantedBug(
        "orphaned-tasks-left-alone",
        "an orphaned task is not stopped",
        lambda: rows_dropped("stop_orphaned_task"),
        "a sweep finds what was given up",
        60,
    ),
    PlantedBug(
        "no-listing-grace",
        "a pending placement is closed as soon as ECS does not list its task",
        changed(launching_attempts, _SENDING_GRACE=_NOTHING),
        "no job ends before its task",
        30,
    ),
    PlantedBug(
        "placement-never-too-old",
        "RunTask is sent again however old its client token is",
        changed(launching_attempts, _OLDEST_PLACEMENT=_DAY),
        "one placement try makes one task",
        60,
    ),
    PlantedBug(
        "refusal-is-final",
        "a launch that ECS refuses fails its job, though it may have a task from before",
        replaced(launching_attempts, "_answer", as_if_sent_for_the_first_time),
        "every stop is accounted for",
        30,
    ),
    PlantedBug(
        "warning-explains-nothing",
        "a program that ends with 0 right after a warning has finished",
        changed(stop_reason, NOTICE_WINDOW=timedelta(days=-1)),
        "a stop's reason is its cause",
        30,
    ),
    PlantedBug(
        "due-jobs-skipped",
        "due jobs are loaded only when they have been due for an hour",
        replaced(reconciling, "_look", only_long_overdue),
        "what is due is looked at in time",
        8,
    ),
)
