"""Bugs that the simulation must find: each breaks the running application in one place.

`within` is the number of seeds, from `first`, of which at least one finds the bug; it has a margin for the day the
simulation draws other numbers. `invariant` is the check that fails. If no invariant finds a bug, an invariant is
missing.
"""

import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta

from relaunch.adapters.aws import checkpoints, errors
from relaunch.adapters.aws.checkpoints import S3Checkpoints
from relaunch.adapters.aws.ecs import events as ecs_events
from relaunch.adapters.aws.ecs import run_task as ecs_run_task
from relaunch.adapters.aws.ecs import stop_reports
from relaunch.adapters.aws.ecs import target as ecs_target
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.adapters.aws.sqs import batch as sqs_batch
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.effects import AdmitWaiting, CountRun, LookForWarning, RememberCapacity, StopTask
from relaunch.core.jobs.state import JobState
from relaunch.core.launches import derived_revision, launch_plan
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed, ReportedCause
from relaunch.core.lifecycle import decision as deciding
from relaunch.core.lifecycle import (
    launching,
    market_choice,
    moves,
    restart_policy,
    running,
    stop_reason,
    stopping,
    verdicts,
)
from relaunch.core.lifecycle.restart_policy import RestartAfter, is_failure, is_interruption, out_of_time
from relaunch.core.selection import selection
from relaunch.core.triggers import upload_rules
from relaunch.entrypoints import task_changes
from relaunch.usecases import follow_market
from relaunch.usecases import launch_attempt as launching_attempts
from relaunch.usecases import reconcile_jobs as reconciling
from relaunch.usecases import send_placement as sending
from relaunch.usecases import sweep_cluster as sweeping
from relaunch.usecases.advance_job import JobLifecycle
from relaunch_local.in_memory.jobs import InMemoryJobs
from relaunch_local.simulation import scenario
from relaunch_local.simulation.checks.deadlines import PROMISE
from simulation import broken_parts as broken
from simulation.broken_parts import Planting, accounted, action, changed, replaced, without_effect, written
from simulation.planting import action_changed, guard_changed, patched, patched_in, rows_dropped, writes


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug: what is broken, how it is planted, which invariant finds it, and within how many seeds.

    `world` makes a rare fault frequent, for a bug that shows only after it.
    """

    name: str
    broken: str
    plant: Planting
    invariant: str
    within: int = 8
    first: int = 0
    world: Planting = nullcontext


# A seed with hundreds of jobs.
_BIG_COMPANY = 99
_DAY, _MONTH, _NOTHING = timedelta(days=1), timedelta(days=30), timedelta(0)


def _with_shortages() -> AbstractContextManager[object]:
    return patched(scenario, _SHORTAGES_SHARE=1.0)


def _without_shortages() -> AbstractContextManager[object]:
    return patched(scenario, _SHORTAGES_SHARE=0.0)


BUGS = (
    PlantedBug(
        "token-of-each-send",
        "RunTask gets another client token each time the same placement try is sent",
        broken.token_of_each_send,
        "never two live tasks of one job",
        30,
    ),
    PlantedBug(
        "no-intent",
        "StopTask is sent without an intent saved before",
        lambda: patched_in(
            (running, launching), stop_with_intent=broken.stop_without_intent(stopping.stop_with_intent)
        ),
        "every end is deserved",
    ),
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
        "overlapping-registration-is-final",
        "a registration that ECS refuses for another one of its family counts as refused for good",
        changed(errors, _CONCURRENT_REGISTRATION="no such message"),
        "every end is deserved",
        30,
    ),
    PlantedBug(
        "stop-timeout-of-the-agent",
        "a derived revision has the agent's stop timeout",
        changed(derived_revision, STOP_TIMEOUT_SECONDS=30),
        "SIGKILL leaves time to save",
        30,
    ),
    PlantedBug(
        "relaunch-on-warning",
        "on a warning the job is launched again before its task is STOPPED",
        action("host_warned", broken.relaunch_on_warning),
        "never two live tasks of one job",
    ),
    PlantedBug(
        "missing-once-is-lost",
        "a task that ECS does not know once is taken for lost",
        action("task_missing", broken.lost_when_missing),
        "no job ends before its task",
        180,
        first=20,
    ),
    PlantedBug(
        "host-end-is-stop",
        "an instance that shuts down is taken for a task that has stopped",
        action("host_ended", broken.lost_with_host),
        "never two live tasks of one job",
    ),
    PlantedBug(
        "stopping-is-stopped",
        "a task that is stopping is taken for STOPPED",
        changed(ecs_events, _STOPPED=ecs_events._STOPPED | {"DEACTIVATING", "STOPPING", "DEPROVISIONING"}),
        "never two live tasks of one job",
        90,
    ),
    PlantedBug(
        "incomplete-checkpoint",
        "an attempt resumes from the newest folder, manifest or not",
        broken.any_step,
        "an attempt resumes from the newest complete checkpoint",
        30,
        first=60,
    ),
    PlantedBug(
        "oldest-checkpoint",
        "an attempt resumes from the oldest checkpoint",
        replaced(checkpoints, "_steps", broken.oldest_step),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "checkpoint-of-another-job",
        "an attempt resumes from the newest checkpoint of any job",
        changed(S3Checkpoints, newest_saved=broken.of_any_job),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "never-resumes",
        "no attempt resumes",
        changed(launching_attempts, _resume_uri=lambda _job, _deps: (None, None)),
        "an attempt resumes from the newest complete checkpoint",
    ),
    PlantedBug(
        "deadline-too-late",
        "the market policy takes every deadline for two hours later than it is",
        replaced(market_choice, "_situation", broken.with_two_more_hours),
        "a wait for the market leaves the time for on-demand",
        40,
        first=140,
    ),
    PlantedBug(
        "deadline-too-late-in-the-end",
        "the market policy takes every deadline for two hours later than it is, so that jobs end late",
        replaced(market_choice, "_situation", broken.with_two_more_hours),
        PROMISE,
        120,
        first=80,
    ),
    PlantedBug(
        "on-demand-avoided-for-hours",
        "an on-demand pool that refused is avoided for as long as for jobs without a deadline, up to four hours",
        replaced(launching_attempts, "retried_sooner", broken.only_spot_retried_sooner),
        PROMISE,
        120,
        first=40,
        world=_with_shortages,
    ),
    PlantedBug(
        "moved-unsaved",
        "a task is moved to spot before it has saved a checkpoint",
        replaced(follow_market, "newest_of", broken.without_its_own_checkpoint),
        "no move without a saved checkpoint",
        70,
        first=10,
        world=_without_shortages,
    ),
    PlantedBug(
        "unreadable-is-the-end",
        "a job whose checkpoints cannot be read fails",
        action("checkpoints_unreadable", launching.launch_impossible),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "refusal-is-the-end",
        "a job whose launch is refused because a permission is missing fails",
        changed(ecs_run_task, is_not_granted=lambda _error: False),
        "every end is deserved",
        60,
    ),
    PlantedBug(
        "refused-and-bought-again",
        "a refused job gives its machine up at once and asks for the next one",
        replaced(launching, "wait_until_granted", broken.bought_again),
        "no more machines than probes are bought for a refusal",
        200,
    ),
    PlantedBug(
        "not-probed",
        "the bucket of the checkpoints is read for the first time on the second try",
        changed(S3Checkpoints, probe=lambda *_parts: None),
        "nothing is launched while its checkpoints cannot be read",
        60,
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
        "stop-task-dropped",
        "the intent is saved, and StopTask never sent",
        without_effect(StopTask),
        "a warned task is asked to stop",
    ),
    PlantedBug(
        "capacity-forgotten",
        "an offering that failed is not remembered",
        without_effect(RememberCapacity),
        "an effect is done before it is forgotten",
    ),
    PlantedBug(
        "capacity-never-expires",
        "an offering that failed is avoided for a month",
        changed(stopping, AVOID_AFTER_NO_CAPACITY=_MONTH),
        "no offering is avoided for longer than four hours",
        30,
    ),
    PlantedBug(
        "interruption-shuts-offering",
        "an interruption lets all jobs avoid its offering",
        changed(stopping, _count_run=broken.avoid_when_interrupted),
        "an interruption shuts no offering for others",
    ),
    PlantedBug(
        "kept-off-one-machine-shuts-offering",
        "a launch that is kept from a machine and finds no other lets all jobs avoid the offering",
        lambda: patched_in((launching, stopping), avoid=broken.avoid_for_all(stopping.avoid)),
        "a job kept from machines shuts no offering for others",
        90,
    ),
    PlantedBug(
        "runs-not-counted",
        "runs on spot are not counted",
        without_effect(CountRun),
        "an effect is done before it is forgotten",
    ),
    PlantedBug(
        "max-failures-ignored",
        "a program that fails is launched again for ever",
        changed(restart_policy, _after_failure=broken.always_again),
        "max_failures is kept",
    ),
    PlantedBug(
        "interruptions-are-failures",
        "an interruption counts against max_failures",
        changed(stopping, is_failure=lambda kind: is_failure(kind) or is_interruption(kind)),
        "failures are those of the stops",
    ),
    PlantedBug(
        "failures-not-counted",
        "out of memory counts as no failure",
        changed(stopping, is_failure=lambda kind: is_failure(kind) and kind is not StopKind.OUT_OF_MEMORY),
        "failures are those of the stops",
        20,
    ),
    PlantedBug(
        "max-runtime-ignored",
        "no job is ever out of time",
        lambda: patched_in((running, launching, restart_policy), out_of_time=lambda _job, _now: None),
        "a job that can finish does finish",
        30,
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
        "price-cap-ignored",
        "max_price_usd_per_hour rejects no offering",
        replaced(
            selection,
            "derive_criteria",
            lambda original: lambda *parts: replace(original(*parts), price_caps=()),
        ),
        "price caps are kept",
        60,
        first=10,
    ),
    PlantedBug(
        "intent-without-stop-of-pending-placement",
        "a task whose job was cancelled while its placement was pending is placed as if it had not been",
        lambda: patched_in((launching, running), stop_with_intent=broken.placed_anyway(stopping.stop_with_intent)),
        "what is meant to stop is asked to",
        30,
    ),
    PlantedBug(
        "create-unconditional",
        "a job that is there already is created again",
        broken.unconditional_create,
        "every write is the next version",
    ),
    PlantedBug(
        "id-of-each-delivery",
        "a job's id comes from the delivery, not from what was delivered",
        broken.id_of_each_delivery,
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "push-without-its-time",
        "the identity of a push is what it changed, so a push that is made again after a revert starts nothing",
        broken.identity_without(r"(?<=[0-9a-f]{40}):\d+$"),
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "upload-without-its-write",
        "the identity of an upload is its key, so an object that is overwritten starts nothing",
        broken.identity_without(r"sequencer=\w+"),
        "an accepted event becomes exactly one job",
    ),
    PlantedBug(
        "save-unconditional",
        "a job is saved without a check of its version",
        replaced(InMemoryJobs, "save_job", broken.unconditional_save),
        "an older observation of a task changes nothing",
        30,
    ),
    PlantedBug(
        "exit-zero-is-success",
        "exit code 0 is success, also after our own stop",
        replaced(stop_reason, "_kind", broken.exit_zero_is_success),
        "a stop's reason is its cause",
    ),
    PlantedBug(
        "sidecar-is-nobody",
        "a training that saved because another essential container had ended has finished",
        replaced(stop_reason, "_kind", broken.sidecar_is_nobody),
        "every end is deserved",
        first=51,
        within=20,
    ),
    PlantedBug(
        "placement-expires-at-once",
        "a pending placement is closed as soon as it was not sent at once",
        changed(sending, OLDEST_PLACEMENT=timedelta(seconds=1), _SENDING_GRACE=_NOTHING),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "unreadable-message-kept",
        "a message that fails permanently stays in its queue",
        changed(sqs_batch, PermanentError=type("NoSuchError", (Exception,), {})),
        "only unreadable messages are dead-lettered",
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
    ),
    PlantedBug(
        "nothing-is-transient",
        "every error of AWS is treated as permanent",
        changed(errors, is_transient=lambda _error: False),
        "no other message is dead-lettered",
    ),
    PlantedBug(
        "image-wait-for-ever",
        "a job waits for its image for ever",
        lambda: action_changed("wake_waiting", broken.wait_for_image_for_ever(launching.wake_waiting)),
        "a job that can finish does finish",
    ),
    PlantedBug(
        "image-not-noticed",
        "the image a job waits for arrives unnoticed",
        lambda: rows_dropped("image_arrived"),
        "every end is deserved",
    ),
    PlantedBug(
        "reconcile-skips-stopping",
        "jobs that stop are not compared with ECS",
        changed(reconciling, _WITH_TASK=frozenset({JobState.LAUNCHING, JobState.RUNNING})),
        "what is cancelled ends in time",
        30,
    ),
    PlantedBug(
        "only-known-instances-warned",
        "a warning concerns only tasks whose instance is in the table",
        changed(EcsTarget, find_tasks_on=lambda _self, _instance_id: []),
        "a warned task is asked to stop",
        60,
    ),
    PlantedBug(
        "warned-machine-not-drained",
        "a warned machine goes on taking tasks",
        changed(EcsTarget, drain=lambda _self, _instance_id: None),
        "a warned machine takes no new task",
        8,
    ),
    PlantedBug(
        "warning-forgotten",
        "a task that becomes known after its machine was warned is not warned",
        without_effect(LookForWarning),
        "a task that lands on a warned machine is warned",
        70,
        first=20,
    ),
    PlantedBug(
        "bad-machine-is-the-programs-fault",
        "a task that its machine did not start counts as a failure of the program",
        changed(stopping, is_failure=lambda kind: is_failure(kind) or kind is StopKind.NOT_STARTED),
        "failures are those of the stops",
        30,
    ),
    PlantedBug(
        "first-machine-proves-that-a-task-starts-nowhere",
        "a job is held back after its first machine that did not start it",
        changed(restart_policy, FAILED_STARTS=1),
        "three machines that did not start a job are enough",
        30,
    ),
    PlantedBug(
        "failed-start-again-at-once",
        "a task that its machine did not start is launched again at once",
        changed(restart_policy, _after_stop=lambda _job, _stop, detail: RestartAfter(0, detail)),
        "after a start that failed there is a pause",
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
        lambda: patched_in((launching, stopping), end=broken.end_as_due(deciding.end)),
        "what is over waits for nothing",
    ),
    PlantedBug(
        "stop-not-repeated",
        "StopTask is sent once, whether it took effect or not",
        action("wake_stopping", broken.go_on_waiting),
        "what is cancelled ends in time",
        130,
        first=20,
    ),
    PlantedBug(
        "start-not-awaited",
        "a task that does not start is waited for as long as ECS waits",
        action("wake_placed", broken.go_on_waiting),
        "a task without a machine is withdrawn in time",
        30,
    ),
    PlantedBug(
        "hanging-pull-awaited",
        "a task that has a machine is waited for, whether it starts or not",
        lambda: action_changed("wake_placed", broken.wait_for_pull_for_ever(launching.wake_placed)),
        "a task that does not start is withdrawn in time",
        60,
    ),
    PlantedBug(
        "start-limits-mixed-up",
        "a task without a machine has as long to start as one that pulls its image",
        lambda: patched_in((launching, running), start_deadline=broken.half_an_hour_for_all),
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
        60,
    ),
    PlantedBug(
        "deadline-ignored",
        "a job's deadline passes unnoticed",
        lambda: patched_in((running, launching, restart_policy), out_of_time=broken.without_deadline(out_of_time)),
        "nothing lives long after its deadline",
        30,
    ),
    PlantedBug(
        "orphaned-tasks-left-alone",
        "an orphaned task is not stopped",
        lambda: rows_dropped("stop_orphaned_task"),
        "a sweep finds what was given up",
        60,
        first=150,
    ),
    PlantedBug(
        "no-listing-grace",
        "a pending placement is closed as soon as ECS does not list its task",
        changed(sending, _SENDING_GRACE=_NOTHING),
        "no job ends before its task",
        105,
    ),
    PlantedBug(
        "placement-never-too-old",
        "RunTask is sent again however old its client token is",
        changed(sending, OLDEST_PLACEMENT=_DAY),
        "one placement try makes one task",
        60,
    ),
    PlantedBug(
        "refusal-is-final",
        "a launch that ECS refuses is taken to have no task, though it may have one from before",
        replaced(sending, "_answer", broken.as_if_sent_for_the_first_time),
        "nothing is launched beside a live task",
        30,
    ),
    PlantedBug(
        "warning-explains-nothing",
        "a program that ends with 0 right after a warning has finished",
        changed(stop_reason, NOTICE_WINDOW=timedelta(days=-1)),
        "a stop's reason is its cause",
        90,
    ),
    PlantedBug(
        "due-jobs-skipped",
        "due jobs are loaded only when they have been due for an hour",
        replaced(reconciling, "_look", broken.only_long_overdue),
        "what is due is looked at in time",
    ),
    PlantedBug(
        "rules-without-suffix",
        "the rules for uploads select every key with the prefix of a trigger",
        changed(upload_rules, _matchers=lambda trigger: [{"prefix": trigger.prefix}]),
        "only watched uploads become messages",
    ),
    PlantedBug(
        "rule-of-first-trigger",
        "the rule for a bucket selects the keys of one trigger only",
        changed(upload_rules, _covers=lambda wide, narrow: wide.prefix < narrow.prefix),
        "an accepted event becomes exactly one job",
        30,
    ),
    PlantedBug(
        "missing-image-is-the-machines-fault",
        "an image that no machine can pull is taken for the fault of each machine",
        changed(stop_reports, meaning_of=lambda _reason: ReportedCause.NODE_FAULT),
        "a stop's reason is its cause",
        60,
    ),
    PlantedBug(
        "one-task-of-a-warned-machine",
        "a warning stops only the first task of a machine",
        broken.only_the_first_on_a_machine,
        "a warned task is asked to stop",
        60,
    ),
    PlantedBug(
        "late-machine-ignored",
        "the event of a machine that arrived late changes nothing",
        changed(task_changes, observe_machine=lambda _seen, _deps: None),
        "a machine that arrived late is used, not avoided",
        30,
    ),
    PlantedBug(
        "late-machine-unswept",
        "a sweep opens no offering again, and the event of a late machine may be lost",
        changed(sweeping, reopen_offerings=lambda _failures, _machines, _deps: None),
        "a machine that arrived late is used, not avoided",
        90,
    ),
    PlantedBug(
        "first-page-only",
        "only the first page of a list of ECS is read",
        changed(ecs_target, read_pages=broken.first_page),
        "a sweep looks at every task",
        1,
        first=_BIG_COMPANY,
    ),
    PlantedBug(
        "refused-provider-ends-the-job",
        "a capacity provider that is being replaced ends the job",
        changed(ecs_run_task, _NO_CAPACITY=re.compile(r"(?!)"), _ABOUT_PROVIDER=re.compile(r"(?!)")),
        "every end is deserved",
        33,
        first=5,
    ),
    PlantedBug(
        "no-machine-is-the-programs-fault",
        "a task that ends without an instance counts as a failure of the program",
        changed(stop_reason._Facts, got_no_node=False),
        "a stop's reason is its cause",
        65,
        first=5,
    ),
)
