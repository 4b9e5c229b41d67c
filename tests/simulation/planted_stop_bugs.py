"""Bugs in how tasks are warned and stopped, and in what is made of their end."""

from relaunch.adapters.aws.ecs import events as ecs_events
from relaunch.adapters.aws.ecs import stop_reports
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.effects import LookForWarning, StopTask
from relaunch.core.jobs.state import JobState
from relaunch.core.launches import derived_revision
from relaunch.core.launches.launch import ReportedCause
from relaunch.core.lifecycle import (
    launching,
    leases,
    restart_policy,
    running,
    stop_reason,
    stopping,
    table,
    verdicts,
    withdrawals,
)
from relaunch.core.lifecycle.restart_policy import RestartAfter, is_failure, is_interruption
from relaunch.usecases import reconcile_jobs as reconciling
from simulation import broken_parts as broken
from simulation.broken_parts import action, changed, replaced, without_effect
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched_in, rows_dropped

_STOPS = (launching, leases, running, withdrawals)

STOP_BUGS = (
    PlantedBug(
        "no-intent",
        "StopTask is sent without an intent saved before",
        lambda: patched_in(
            _STOPS,
            stop_with_intent=broken.stop_without_intent(stopping.stop_with_intent),
        ),
        "every end is deserved",
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
        "stop-timeout-of-the-agent",
        "a derived revision has the agent's stop timeout",
        changed(derived_revision, STOP_TIMEOUT_SECONDS=30),
        "SIGKILL leaves time to save",
        30,
    ),
    PlantedBug(
        "stop-task-dropped",
        "the intent is saved, and StopTask never sent",
        without_effect(StopTask),
        "a warned task is asked to stop",
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
        "intent-without-stop-of-pending-placement",
        "a task whose job was cancelled while its placement was pending is placed as if it had not been",
        lambda: patched_in(_STOPS, stop_with_intent=broken.placed_anyway(stopping.stop_with_intent)),
        "what is meant to stop is asked to",
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
        "orphaned-tasks-left-alone",
        "an orphaned task is not stopped",
        lambda: rows_dropped("stop_orphaned_task"),
        "a sweep finds what was given up",
        90,
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
        "warning-explains-nothing",
        "a program that ends with 0 right after a warning has finished",
        lambda: patched_in((stop_reason, verdicts), follows=lambda *_: False),
        "a stop's reason is its cause",
        90,
    ),
    PlantedBug(
        "interruption-before-retirement-ignored",
        "EC2 interrupts an instance that is to be retired later, and that counts as the same warning again",
        changed(table, leaves_less_time=lambda *_: False),
        "every end is deserved",
        30,
        first=95_010,
    ),
    PlantedBug(
        "one-task-of-a-warned-machine",
        "a warning stops only the first task of a machine",
        broken.only_the_first_on_a_machine,
        "a warned task is asked to stop",
        60,
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
        "missing-image-is-the-machines-fault",
        "an image that no machine can pull is taken for the fault of each machine",
        changed(stop_reports, meaning_of=lambda _reason: ReportedCause.NODE_FAULT),
        "a stop's reason is its cause",
        60,
    ),
    PlantedBug(
        "bad-machine-is-the-programs-fault",
        "a task that its machine did not start counts as a failure of the program",
        changed(stopping, is_failure=lambda kind: is_failure(kind) or kind is StopKind.NOT_STARTED),
        "failures are those of the stops",
        30,
    ),
    PlantedBug(
        "no-machine-is-the-programs-fault",
        "a task that ends without an instance counts as a failure of the program",
        changed(stop_reason._Facts, got_no_node=False),
        "a stop's reason is its cause",
        65,
        first=5,
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
)
