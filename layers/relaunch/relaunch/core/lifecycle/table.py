"""The transition table of jobs: (state, event, guard) → action. Every valid transition is a row.

`decide` runs the first row that matches; an event without a row is ignored, with a note.
"""

from datetime import datetime

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import TaskObservation, TaskPhase
from relaunch.core.lifecycle import (
    charging,
    gangs,
    launching,
    leases,
    machine_waits,
    moves,
    orphans,
    restart_policy,
    running,
    stalls,
    unconfirmed_stops,
    waiting,
    withdrawals,
)
from relaunch.core.lifecycle.charging import with_costs, with_open_charges
from relaunch.core.lifecycle.decision import Decision, ignore, with_found, with_poll, with_unlink
from relaunch.core.lifecycle.events import (
    BudgetDenied,
    BudgetsRead,
    CancelAsked,
    CheckpointsRead,
    CheckpointsUnreadable,
    HostEnded,
    HostWarned,
    ImageArrived,
    JobEvent,
    LaunchAnswered,
    LaunchImpossible,
    LaunchNotGranted,
    LaunchRepeated,
    MachineAwaited,
    MachineCharged,
    MachineClaimed,
    MachineLeft,
    MachineLimitReached,
    MachineLost,
    MoveDeclined,
    NextMachineReady,
    NothingKept,
    OfferingChosen,
    PlacementExpired,
    ProgressNoted,
    SlotDenied,
    SurvivorsLeft,
    TaskGivenUp,
    TaskMissing,
    TaskSeen,
    TimePassed,
)
from relaunch.core.lifecycle.gangs import has_rank_stopped, is_gang, needs_replacements
from relaunch.core.lifecycle.groups import with_group
from relaunch.core.lifecycle.job_changes import with_change
from relaunch.core.lifecycle.leases import with_leases
from relaunch.core.lifecycle.long_waits import with_bound
from relaunch.core.lifecycle.machine_waits import needs_next_machine, with_releases
from relaunch.core.lifecycle.moves import leaves_less_time, may_move
from relaunch.core.lifecycle.restart_policy import is_to_be_judged
from relaunch.core.lifecycle.stop_reason import CLOCK_SKEW, find_first_ended
from relaunch.core.transitions.table import always, decide_by, make_rows


def waits_for_it(job: Job, event: ImageArrived) -> bool:
    """Return whether the job waits for this image."""
    return not may_launch(job, event) and job.image == (event.repository, event.tag)


def may_launch(job: Job, _event: JobEvent) -> bool:
    """Return whether the job does not wait for an image."""
    return job.waiting is None or job.waiting.reason is not WaitReason.IMAGE


def is_pending(job: Job, _event: JobEvent) -> bool:
    """Return whether the response of RunTask is unknown."""
    return job.attempt is not None and job.attempt.placement.state is PlacementState.PENDING


def is_placed(job: Job, _event: JobEvent) -> bool:
    """Return whether the current placement has a task."""
    return job.attempt is not None and job.attempt.placement.state is PlacementState.PLACED


def has_one_sender(job: Job, event: LaunchRepeated) -> bool:
    """Return whether only the function that chose the placement sends it, as far as is known."""
    return answers_current_placement(job, event) and job.current_attempt.placement.senders == 1


def answers_current_placement(job: Job, event: LaunchRepeated | LaunchAnswered | PlacementExpired) -> bool:
    """Return whether the event is about the current placement and that placement is pending."""
    if not is_pending(job, event):
        return False
    attempt = job.current_attempt
    return (attempt.number, attempt.placement.number) == (event.attempt_number, event.placement_number)


def is_new_observation(job: Job, event: TaskSeen) -> bool:
    """Return whether the observation is of the current task and newer than the last one.

    Observations arrive at least once and in any order, and are ordered by `version`. What a task waits for may change
    within a version, and a stopped task whose verdict waits is looked at again.
    """
    attempt = job.attempt
    seen = event.observation
    if attempt is None or attempt.stop is not None or seen.owner != job.attempt_key or not _is_whole(job, seen):
        return False
    if attempt.task_id is None:
        # Of many closed placements only the latest are kept: a late event of an earlier one is older than this one.
        is_older = seen.created_at is not None and seen.created_at < attempt.placement.requested_at - CLOCK_SKEW
        return not is_older and seen.task_id not in {each.task_id for each in attempt.closed_placements}
    if seen.task_id != attempt.task_id:
        return False
    if has_rank_stopped(attempt, seen) or running.has_lost_place(job, seen):
        # Its version may be lower (core.lifecycle.gangs.newest_version).
        return True
    if seen.version != attempt.task_version:
        return seen.version > attempt.task_version
    waits_otherwise = job.state is JobState.LAUNCHING and seen.waiting_for != job.reason and bool(seen.waiting_for)
    is_held = attempt.held_since is not None and seen.phase is TaskPhase.STOPPED
    return attempt.missing is not None or is_held or waits_otherwise


def _is_whole(job: Job, seen: TaskObservation) -> bool:
    """Return whether the observation is of all tasks of the attempt, once they are known: they are judged together.

    The Job of a gang may be there before its pods can meet: whoever launches it makes that so, and answers then.
    """
    attempt = job.current_attempt
    ranks = len(attempt.placement.ranks)
    return seen.rank_count == ranks and (not is_gang(job) or attempt.task_id is not None)


def tells_first_ended(job: Job, event: TaskSeen) -> bool:
    """Return whether an older observation of the task tells which container ended first, as no newer one did."""
    attempt = job.current_attempt
    seen = event.observation
    if attempt.ended_first or (seen.owner, seen.task_id) != (job.attempt_key, attempt.task_id):
        return False
    return bool(find_first_ended(seen, job.definition.container, job.revision.essential_names))


def tells_instance(job: Job, event: TaskSeen) -> bool:
    """Return whether the observation tells where the current task runs, which is not known: however old it is."""
    attempt = job.attempt
    if attempt is None or attempt.instance_id is not None or event.node is None:
        return False
    seen = event.observation
    return _is_whole(job, seen) and bool(event.node.instance_id) and attempt.task_id == seen.task_id


def may_be_given_up(job: Job, event: TaskGivenUp) -> bool:
    """Return whether the task is a pod, and what its attempts write is kept apart."""
    definition = job.definition
    has_prefixes = definition.checkpoint_uri is not None
    return is_placed(job, event) and definition.target.capabilities.runs_pods and has_prefixes


def is_news(job: Job, event: TaskSeen) -> bool:
    """Return whether the observation tells something of the current task that is not known."""
    return is_new_observation(job, event) or tells_instance(job, event)


def is_own_task(job: Job, event: TaskMissing) -> bool:
    """Return whether the missing task is the current one."""
    return job.attempt is not None and job.attempt.task_id == event.task_id


def has_live_part(job: Job, event: TaskMissing) -> bool:
    """Return whether the target knows that others live of the tasks of which the missing one is a part."""
    return is_own_task(job, event) and event.is_part_live


def is_own_host(job: Job, event: HostEnded) -> bool:
    """Return whether the instance is that of the current task, and is not known to have ended then or before.

    EC2 tells of every step of an end, and EventBridge each of them twice now and then.
    """
    if not is_placed(job, event):
        return False
    attempt = job.current_attempt
    if attempt.placement.followers:
        others = {each.instance_id for each in attempt.placement.ranks}.difference(attempt.lost_instances)
        return event.instance_id in others
    if attempt.host_ended_at is not None and attempt.host_ended_at <= event.at:
        return False
    return (attempt.instance_id or attempt.placement.instance_id) == event.instance_id


def is_new_warning(job: Job, event: HostWarned) -> bool:
    """Return whether no earlier warning is known for the instance of the current task, or this one leaves less time.

    The instance is identified by the attempt, or by the target where the attempt does not have it yet.
    """
    if not is_placed(job, event):
        return False
    attempt = job.current_attempt
    if event.is_rebalance and attempt.handover is not None:
        return False
    if attempt.warned_at is not None and not leaves_less_time(job, attempt.warned_at, event):
        return False
    ranks = attempt.placement.followers
    is_of_follower = any(event.instance_id == each.instance_id or event.task_id == each.task_id for each in ranks)
    return is_of_follower or attempt.instance_id == event.instance_id or attempt.task_id == event.task_id


def may_have_tasks_there(job: Job, event: HostWarned) -> bool:
    """Return whether some of several tasks are being placed, of which this instance is to have one."""
    if not is_pending(job, event) or event.is_rebalance:
        return False
    placement = job.current_attempt.placement
    return bool(placement.followers) and event.instance_id in {each.instance_id for each in placement.ranks}


def is_first_cancel(job: Job, _event: CancelAsked) -> bool:
    """Return whether no cancellation was requested before."""
    return not job.cancel_requested


def is_pending_and_wanted(job: Job, event: CancelAsked) -> bool:
    """Return whether the response of RunTask is unknown and no cancellation was requested before."""
    return is_pending(job, event) and is_first_cancel(job, event)


def needs_machine(job: Job, event: MachineClaimed | MachineLimitReached | BudgetDenied) -> bool:
    """Return whether the job may be launched and claims no machine yet."""
    return may_launch(job, event) and not job.machine_id


def claims_machine(job: Job, _event: MachineAwaited) -> bool:
    """Return whether the job claims a machine for its next placement."""
    return bool(job.machine_id)


def claims_ready_machine(job: Job, event: NextMachineReady) -> bool:
    """Return whether the task trains on until this machine is ready."""
    return job.current_attempt.handover is not None and job.machine_id == event.machine_id


def claims_lost_machine(job: Job, event: MachineLost) -> bool:
    """Return whether the job claims this machine for its next placement."""
    return job.machine_id == event.machine_id


_STATES_BY_CODE = {
    "W": JobState.WAITING,
    "L": JobState.LAUNCHING,
    "R": JobState.RUNNING,
    "S": JobState.STOPPING,
    "d": JobState.SUCCEEDED,
    "f": JobState.FAILED,
    "c": JobState.CANCELLED,
    "t": JobState.TIMED_OUT,
}


TABLE = make_rows(
    _STATES_BY_CODE,
    ("W", ImageArrived, waits_for_it, waiting.image_arrived, "W"),
    ("W", OfferingChosen, may_launch, launching.request_placement, "Lft"),
    ("W", NothingKept, may_launch, waiting.nothing_kept, "Wf"),
    ("W", LaunchImpossible, may_launch, waiting.launch_impossible, "f"),
    ("W", LaunchNotGranted, may_launch, waiting.launch_not_granted, "Wf"),
    ("W", CheckpointsUnreadable, may_launch, waiting.checkpoints_unreadable, "Wf"),
    ("W", CheckpointsRead, is_to_be_judged, restart_policy.judge_progress, "Wf"),
    ("W", MachineClaimed, needs_machine, machine_waits.claim_machine, "Wft"),
    ("R", MachineClaimed, needs_next_machine, machine_waits.claim_next_machine, "R"),
    ("S", MachineClaimed, needs_next_machine, machine_waits.claim_next_machine, "S"),
    ("S", SurvivorsLeft, needs_replacements, gangs.leave_survivors, "S"),
    ("R", MachineClaimed, may_move, moves.claim_machine_to_move_to, "R"),
    ("R", MoveDeclined, may_move, moves.move_declined, "R"),
    ("R", ProgressNoted, stalls.is_further, stalls.note, "R"),
    ("W", MachineAwaited, claims_machine, machine_waits.await_machine, "W"),
    ("W", MachineLost, claims_lost_machine, machine_waits.machine_lost, "Wf"),
    ("RS", MachineLost, claims_lost_machine, machine_waits.next_machine_lost, ""),
    ("R", NextMachineReady, claims_ready_machine, running.next_machine_ready, "S"),
    ("W", MachineLimitReached, needs_machine, machine_waits.machine_limit_reached, "W"),
    ("W", SlotDenied, may_launch, waiting.slot_denied, "W"),
    ("W", BudgetDenied, needs_machine, leases.budget_denied, "W"),
    ("W", BudgetsRead, leases.may_renew, leases.renew_lease, "W"),
    ("L", BudgetsRead, leases.may_renew, leases.renew_lease, "LS"),
    ("R", BudgetsRead, leases.may_renew, leases.renew_lease, "RS"),
    ("S", BudgetsRead, leases.may_renew, leases.renew_lease, "S"),
    ("W", CancelAsked, always, waiting.cancel_waiting, "c"),
    ("W", TimePassed, always, waiting.wake_waiting, "Wft"),
    ("L", LaunchRepeated, has_one_sender, launching.launch_repeated, ""),
    ("L", LaunchAnswered, answers_current_placement, launching.launch_answered, "LWSfc"),
    ("L", PlacementExpired, answers_current_placement, launching.placement_expired, "Wc"),
    ("L", TaskSeen, is_new_observation, running.task_seen, "LRSWdfct"),
    ("R", TaskSeen, is_new_observation, running.task_seen, "RSWdfct"),
    ("S", TaskSeen, is_new_observation, running.task_seen, "SWdfct"),
    ("LRS", TaskSeen, tells_instance, running.instance_told, ""),
    ("S", TaskSeen, tells_first_ended, running.note_first_ended, ""),
    ("L", TaskMissing, is_own_task, running.task_missing, "LSWft"),
    ("R", TaskMissing, is_own_task, running.task_missing, "RSWft"),
    ("S", TaskMissing, has_live_part, gangs.wait_for_live_part, ""),
    ("S", TaskMissing, is_own_task, running.task_missing, "SWdfct"),
    ("L", HostWarned, is_new_warning, running.host_warned, "S"),
    ("R", HostWarned, is_new_warning, running.host_warned, "RS"),
    ("S", HostWarned, is_new_warning, running.host_warned_late, "S"),
    ("L", HostEnded, is_own_host, running.host_ended, "LS"),
    ("R", HostEnded, is_own_host, running.host_ended, "RS"),
    ("S", HostEnded, is_own_host, running.host_ended, ""),
    ("L", HostWarned, may_have_tasks_there, withdrawals.warn_pending, "L"),
    ("L", CancelAsked, is_pending_and_wanted, launching.cancel_pending, "L"),
    ("LR", CancelAsked, is_placed, running.cancel_task, "S"),
    ("S", CancelAsked, is_first_cancel, running.cancel_stopping, "S"),
    ("S", TaskGivenUp, may_be_given_up, unconfirmed_stops.give_up_task, "SWfct"),
    ("L", TimePassed, is_pending, launching.wake_pending, "L"),
    ("L", TimePassed, is_placed, withdrawals.wake_placed, "LSWft"),
    ("R", TimePassed, always, running.wake_running, "RSWft"),
    ("S", TimePassed, always, unconfirmed_stops.wake_stopping, "SWdfct"),
    ("WLRSdfct", MachineCharged, always, charging.add_charge, ""),
    ("WLRSdfct", MachineLeft, always, charging.leave_machine, ""),
    ("WLRSdfct", TaskSeen, orphans.is_orphaned, orphans.stop_orphaned_task, ""),
    ("WLRSdfct", LaunchAnswered, orphans.places_orphan, orphans.stop_placed_orphan, ""),
)


COMPLETIONS = (
    *(with_releases, with_open_charges, with_costs, with_leases),
    *(with_group, with_unlink, with_found, with_poll, with_bound, with_change),
)
"""What holds after every action: a job claims no machine that it does not need, knows what it pays for those that it
has, has what it paid in the sums, reserves of its budgets what it needs, holds its concurrency group from its first
placement to its end, is linked to no instance that it left, is due in time to be looked at, and to be told of, and has
an event to send if it changed for those who watch it."""


def decide(job: Job, event: JobEvent, now: datetime, limits: StackLimits) -> Decision:
    """Return the decision of the first matching row; an ignored decision if there is none."""
    decision: Decision | None = decide_by(TABLE, COMPLETIONS, job, event, now, limits)
    return decision or ignore(job, f"{type(event).__name__} means nothing to a job that is {job.state}")
