"""What each event must do to a job in each situation, written down from the design and not from the code."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from fakes.builders import (
    INSTANCE_ID,
    NOW,
    container_instance_arn,
    make_attempt,
    make_definition,
    make_failed_placement,
    make_job,
    make_observation,
    make_offering,
    make_placement,
    make_running_attempt,
    make_running_job,
    make_selection,
    task_id,
)
from fakes.machines import claim, fleet_request, machine
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.attempt import Handover, IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, NotedProgress, Waiting, WaitReason
from relaunch.core.launches import launch
from relaunch.core.lifecycle import events
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.charges import Charge
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.machines.machine import Consequence, MachineState
from relaunch.core.machines.requesting import request_machine
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.revisions.images import FoundImage

SOON = NOW + timedelta(minutes=1)
PAST_DEADLINE = NOW + timedelta(hours=37)
ANOTHER_MACHINE = "i-0fffffffffffffff0"
IMAGE = ("trainer", "5e07")
DIGEST = "sha256:5e07"
DEFINITION = make_definition(deadline=timedelta(hours=36))
ORPHANED = task_id(99)
LIMITS = StackLimits(machines=MachineLimits(task_stop=TaskStop.WHEN_NEXT_READY))


def _waiting(reason: WaitReason, **fields: Any) -> Job:
    slot = "resnet" if reason is WaitReason.SLOT else ""
    waiting = Waiting(reason, NOW, f"waits for {reason}", NOW + timedelta(minutes=30), slot)
    return make_job(**{"definition": DEFINITION, "waiting": waiting, "image": IMAGE, **fields})


def stopped_attempt(kind: StopKind = StopKind.INTERRUPTION) -> Any:
    """Build an attempt whose task ran, and stopped with ECS's version 5."""
    attempt = make_running_attempt()
    closed = replace(attempt.placement, state=PlacementState.CLOSED)
    return replace(attempt, placement=closed, task_status="STOPPED", stop=Stop(kind, NOW))


RAN_FOR_AN_HOUR = replace(stopped_attempt(), started_at=NOW - timedelta(hours=1))


def _pending(**fields: Any) -> Job:
    launching = {"state": JobState.LAUNCHING, "waiting": None, "has_slot": True, "attempt": make_attempt()}
    return make_job(**{"definition": DEFINITION, **launching, **fields})


def _placed() -> Job:
    placed = make_placement(state=PlacementState.PLACED, task_id=task_id(), placed_at=NOW)
    attempt = make_attempt(
        placement=placed,
        task_status="PENDING",
        task_version=5,
        instance_id=INSTANCE_ID,
        node=container_instance_arn(),
    )
    return _pending(attempt=attempt)


def intent(kind: IntentKind) -> StopIntent:
    """Build an intent of NOW."""
    return StopIntent(kind, NOW, str(kind))


def _running(**attempt: Any) -> Job:
    return make_running_job(definition=DEFINITION, attempt=make_running_attempt(**attempt))


def _stopping(cancel: str = "", **attempt: Any) -> Job:
    return replace(_running(**attempt), state=JobState.STOPPING, cancel_requested=cancel)


def _over(state: JobState) -> Job:
    job = _running()
    return replace(
        job, state=state, wake_at=None, ended_at=NOW, has_slot=False, attempt=stopped_attempt(StopKind.USER_ERROR)
    )


_ON_MACHINE = replace(make_running_attempt().placement, capacity_provider="", machine_id="m-0", instance_id=INSTANCE_ID)
_MAY_MOVE = replace(DEFINITION, purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND, estimated_duration=timedelta(hours=20))
_ON_DEMAND = replace(
    _ON_MACHINE, offering=OfferingKey("g5.xlarge", zone="eu-central-1a", purchase=PurchaseOption.ON_DEMAND)
)
_MOVE = Handover(NOW, "leaving on-demand for spot pays", is_move=True)
_WARNED = Handover(NOW, "end of the Capacity Block", NOW + timedelta(minutes=10))

SITUATIONS: Mapping[str, Job] = {
    "w0": _waiting(WaitReason.LAUNCH),
    "wr": _waiting(WaitReason.LAUNCH, attempt=RAN_FOR_AN_HOUR, has_slot=True, first_started_at=NOW),
    "wi": _waiting(WaitReason.IMAGE),
    "ws": _waiting(WaitReason.SLOT),
    "wc": _waiting(WaitReason.CAPACITY),
    "wb": _waiting(WaitReason.BACKOFF),
    "wk": _waiting(WaitReason.CHECKPOINT),
    "wm": _waiting(WaitReason.MACHINE, machine_id="m-1", has_slot=True),
    "wl": _waiting(WaitReason.MACHINE_LIMIT),
    "fz": _pending(),
    "fx": _pending(cancel_requested="enough", attempt=make_attempt(intent=intent(IntentKind.CANCEL))),
    "pl": _placed(),
    "ru": _running(),
    "ro": _running(placement=_ON_MACHINE),
    "rh": _running(placement=_ON_MACHINE, handover=Handover(NOW, "rebalance recommendation")),
    "rn": replace(_running(placement=_ON_MACHINE, warned_at=NOW, handover=_WARNED), machine_id="m-1"),
    "rd": replace(_running(placement=_ON_DEMAND), definition=_MAY_MOVE),
    "rm": replace(_running(placement=_ON_DEMAND, handover=_MOVE), definition=_MAY_MOVE, machine_id="m-1"),
    "si": _stopping(intent=intent(IntentKind.INTERRUPTION), warned_at=NOW),
    "sn": _stopping(),
    "sc": _stopping("enough", intent=intent(IntentKind.CANCEL)),
    "so": _stopping(intent=intent(IntentKind.INTERRUPTION), warned_at=NOW, placement=_ON_MACHINE),
    "sp": replace(
        _stopping(intent=intent(IntentKind.INTERRUPTION), warned_at=NOW, placement=_ON_MACHINE), machine_id="m-1"
    ),
    "ok": _over(JobState.SUCCEEDED),
    "ng": _over(JobState.FAILED),
    "ca": _over(JobState.CANCELLED),
    "to": _over(JobState.TIMED_OUT),
}
"""w waiting: 0 at first, r after an hour of training and an interruption, i for its image, s for a slot, c for
capacity, b backing off, k for checkpoints that cannot be read, m for the machine m-1, l for the limits on machines.
fz pending, fx pending and to be cancelled, pl placed; ru running, ro on a machine of our own, rh until EC2 has another
one, rn until m-1 is ready or its block ends, rd on on-demand with a deadline, rm until m-1 on spot is; s stopping: i
after a warning, n by itself, c cancelled, o warned on a machine of our own, p with m-1 as the next; then final ones."""
RUNS = launch.HostObservation()
_BUDGETS = {"there": 9.0, "used-up": 0.0}
NO_CAPACITY = {
    "stop_code": "TaskFailedToStart",
    "stopped_reason": "RESOURCE:GPU",
    "container_exit_codes": {},
    "started_at": None,
}
HOST_LOST = {"stop_code": "TerminationNotice", "stopped_reason": "Host EC2 (instance i-1) terminated."}


def with_attempt(situation: str, **fields: Any) -> Job:
    """Return the job of a situation with some fields of its attempt replaced."""
    return replace(SITUATIONS[situation], attempt=replace(SITUATIONS[situation].current_attempt, **fields))


def _nothing(waits_for: WaitReason | None) -> events.NothingKept:
    return events.NothingKept(make_selection(kept=()), "nothing", waits_for, None)


def answered(
    outcome: launch.LaunchOutcome, placement_number: int = 1, attempt_number: int = 1
) -> events.LaunchAnswered:
    """Build the answer to a try, the first one if nothing else is said."""
    return events.LaunchAnswered(attempt_number, placement_number, outcome)


def seen(last_status: str, **fields: Any) -> events.TaskSeen:
    """Build an observation of the first task, newer than what any situation knows."""
    return events.TaskSeen(make_observation(last_status, **{"version": 6, **fields}))


def seen_stopped(
    exit_code: int | None, at: datetime = SOON, host: launch.HostObservation | None = RUNS, **fields: Any
) -> events.TaskSeen:
    """Build the observation that the first task ran and stopped, while EC2 says that its instance runs."""
    stopped: dict[str, Any] = {
        "last_status": "STOPPED",
        "desired_status": "STOPPED",
        "stop_code": "EssentialContainerExited",
        "stopped_reason": "Essential container in task exited",
        "container_exit_codes": {"main": exit_code},
        "started_at": NOW,
        "stopped_at": at,
        "execution_stopped_at": at - NOTICE_LEAD,
    }
    return replace(seen(**{**stopped, **fields}), host=host)


def _machine_claimed() -> events.MachineClaimed:
    requested = request_machine("m-1", fleet_request(), claim(), NOW, MachineTotals())
    return events.MachineClaimed(requested, "EC2 is asked for g5.xlarge", make_selection(), is_new=True)


EVENTS: Mapping[str, events.JobEvent] = {
    "image-arrived": events.ImageArrived(*IMAGE, FoundImage(DIGEST)),
    "another-image": events.ImageArrived("trainer", "0000", FoundImage(DIGEST)),
    "chosen": events.OfferingChosen(make_offering(), make_selection(), None),
    "nothing-for-now": _nothing(WaitReason.CAPACITY),
    "nothing-ever": _nothing(None),
    "impossible": events.LaunchImpossible("ECS refuses the derived revision"),
    "read": events.CheckpointsRead(None),
    "unreadable": events.CheckpointsUnreadable("AccessDenied"),
    "not-granted": events.LaunchNotGranted("iam:PassRole"),
    "slot-denied": events.SlotDenied("resnet", 5),
    "budget-denied": events.BudgetDenied("the budget of stack has no room"),
    **{f"budget-{name}": events.BudgetsRead((Budget("stack", usd),)) for name, usd in _BUDGETS.items()},
    "repeated": events.LaunchRepeated(1, 1),
    "repeated-late": events.LaunchRepeated(1, 9),
    "placed": answered(launch.TaskPlaced(task_id())),
    "placed-another": answered(launch.TaskPlaced(ORPHANED)),
    "placed-late": answered(launch.TaskPlaced(ORPHANED), placement_number=9),
    "placed-before": answered(launch.TaskPlaced(ORPHANED), attempt_number=7),
    "place-failed": answered(make_failed_placement("RESOURCE:GPU")),
    "fail-late": answered(make_failed_placement("RESOURCE:GPU"), placement_number=9),
    "deferred": answered(launch.LaunchDeferred("ThrottlingException")),
    "refused": answered(launch.LaunchRefused("ClientException")),
    "denied": answered(launch.LaunchRefused("AccessDeniedException", may_heal=True)),
    "conflict": answered(launch.LaunchConflict((task_id(),))),
    "conflict-empty": answered(launch.LaunchConflict(())),
    "uncertain": answered(launch.LaunchUncertain("no answer")),
    "expired": events.PlacementExpired(1, 1),
    "expired-late": events.PlacementExpired(1, 9),
    "seen-pending": seen("PENDING"),
    "seen-running": seen("RUNNING"),
    "seen-old": seen("RUNNING", version=5),
    "seen-ending": seen("DEACTIVATING"),
    "seen-stopping": seen("RUNNING", desired_status="STOPPED"),
    "seen-order-old": seen(
        "RUNNING",
        version=5,
        desired_status="STOPPED",
        stopped_reason="Essential container in task exited",
        container_statuses={"main": "RUNNING", "log": "STOPPED"},
    ),
    "seen-exit-0": seen_stopped(0),
    "seen-exit-1": seen_stopped(1),
    "seen-deleted": seen_stopped(0, last_status="DELETED"),
    "orphan": seen("RUNNING", task_id=ORPHANED, started_by="resnet-1f2e3d4c/0"),
    "orphan-sibling": seen("RUNNING", task_id=ORPHANED),
    "orphan-over": seen_stopped(0, task_id=ORPHANED, started_by="resnet-1f2e3d4c/0"),
    "missing": events.TaskMissing(task_id()),
    "missing-another": events.TaskMissing(ORPHANED),
    "warned": events.HostWarned(INSTANCE_ID, SOON),
    "warned-by-task": events.HostWarned(ANOTHER_MACHINE, SOON, task_id()),
    "warned-another": events.HostWarned(ANOTHER_MACHINE, SOON),
    "host-ended": events.HostEnded(INSTANCE_ID, "shutting-down", SOON),
    "host-another": events.HostEnded(ANOTHER_MACHINE, "shutting-down", SOON),
    "cancel": events.CancelAsked("enough"),
    "given-up": events.TaskGivenUp("taken for lost"),
    "time": events.TimePassed(),
    "time-too-late": events.TimePassed(),
    "machine-claimed": _machine_claimed(),
    "machine-awaited": events.MachineAwaited("i-1 is starting"),
    "machine-lost": events.MachineLost("m-1", None, "it never registered"),
    "machine-refused": events.MachineLost("m-1", Consequence.NEXT, "EC2 has no capacity for it"),
    "another-lost": events.MachineLost("m-9", None, "it never registered"),
    "survivors-left": events.SurvivorsLeft("1 of 3 machines live"),
    "next-ready": events.NextMachineReady("m-1"),
    "another-ready": events.NextMachineReady("m-9"),
    "move-declined": events.MoveDeclined("leaving on-demand for spot does not pay", None),
    "noted": events.ProgressNoted(NotedProgress(120, NOW, 1)),
    "machine-limit": events.MachineLimitReached("machines"),
    "machine-paid": events.MachineCharged(Charge("m-1", 0.25)),
    "machine-left": events.MachineLeft(machine(MachineState.ENDING)),
    "claimed-too-late": _machine_claimed(),
    "chosen-too-late": events.OfferingChosen(make_offering(), make_selection(), None),
}

# . nothing happens; else the state it is in afterwards: W L R S, D succeeded, F failed, C cancelled, T timed out.
MATRIX = """
                 w0 wr wi ws wc wb wk wm wl   fz fx pl   ru ro rh rn rd rm   si sn sc so sp   ok ng ca to
image-arrived    .  .  W  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
another-image    .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
chosen           L  L  .  L  L  L  L  L  L    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
nothing-for-now  W  W  .  W  W  W  W  W  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
nothing-ever     F  F  .  F  F  F  F  F  F    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
impossible       F  F  .  F  F  F  F  F  F    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
read             .  W  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
unreadable       W  W  .  W  W  W  W  W  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
not-granted      W  W  .  W  W  W  W  W  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
slot-denied      W  W  .  W  W  W  W  W  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
budget-denied    W  W  .  W  W  W  W  .  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
budget-there     .  .  .  .  .  .  .  W  .    .  .  L    R  R  R  R  R  R    S  S  .  S  S    .  .  .  .
budget-used-up   .  .  .  .  .  .  .  W  .    .  .  S    S  S  S  S  S  S    S  S  .  S  S    .  .  .  .
repeated         .  .  .  .  .  .  .  .  .    L  L  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
repeated-late    .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
placed           W  .  W  W  W  W  W  W  W    L  S  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
placed-another   W  W  W  W  W  W  W  W  W    L  S  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
placed-late      W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
placed-before    W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
place-failed     .  .  .  .  .  .  .  .  .    W  C  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
fail-late        .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
deferred         .  .  .  .  .  .  .  .  .    L  L  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
refused          .  .  .  .  .  .  .  .  .    F  C  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
denied           .  .  .  .  .  .  .  .  .    W  C  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
conflict         W  .  W  W  W  W  W  W  W    L  S  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
conflict-empty   .  .  .  .  .  .  .  .  .    F  C  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
uncertain        .  .  .  .  .  .  .  .  .    L  L  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
expired          .  .  .  .  .  .  .  .  .    W  C  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
expired-late     .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
seen-pending     .  W  .  .  .  .  .  .  .    L  S  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
seen-running     .  W  .  .  .  .  .  .  .    R  S  R    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
seen-old         .  .  .  .  .  .  .  .  .    R  S  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
seen-ending      .  .  .  .  .  .  .  .  .    S  S  S    S  S  S  S  S  S    S  S  S  S  S    .  .  .  .
seen-stopping    .  .  .  .  .  .  .  .  .    S  S  S    S  S  S  S  S  S    S  S  S  S  S    .  .  .  .
seen-order-old   .  .  .  .  .  .  .  .  .    S  S  .    .  .  .  .  .  .    S  S  S  S  S    .  .  .  .
seen-exit-0      .  .  .  .  .  .  .  .  .    D  C  D    D  D  D  W  D  D    W  D  C  W  W    .  .  .  .
seen-exit-1      .  .  .  .  .  .  .  .  .    W  C  W    W  W  W  W  W  W    W  W  C  W  W    .  .  .  .
seen-deleted     .  .  .  .  .  .  .  .  .    D  C  D    D  D  D  W  D  D    W  D  C  W  W    .  .  .  .
orphan           W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
orphan-sibling   .  W  .  .  .  .  .  .  .    R  S  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
orphan-over      .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
missing          .  .  .  .  .  .  .  .  .    .  .  L    R  R  R  R  R  R    S  S  S  S  S    .  .  .  .
missing-another  .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
warned           .  .  .  .  .  .  .  .  .    .  .  S    S  R  R  R  R  R    .  S  S  .  .    .  .  .  .
warned-by-task   .  .  .  .  .  .  .  .  .    .  .  S    S  R  R  R  R  R    .  S  S  .  .    .  .  .  .
warned-another   .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
host-ended       .  .  .  .  .  .  .  .  .    .  .  L    R  R  R  R  R  R    S  S  S  S  S    .  .  .  .
host-another     .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
cancel           C  C  C  C  C  C  C  C  C    L  .  S    S  S  S  S  S  S    S  S  .  S  S    .  .  .  .
given-up         .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
time             W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    .  .  .  .
time-too-late    T  T  T  T  T  T  T  T  T    L  L  S    S  S  S  S  S  S    T  T  C  T  T    .  .  .  .
chosen-too-late  T  T  .  T  T  T  T  T  T    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
machine-claimed  W  W  .  W  W  W  W  .  W    .  .  .    .  .  R  .  R  .    .  .  .  S  .    .  .  .  .
machine-awaited  .  .  .  .  .  .  .  W  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
machine-lost     .  .  .  .  .  .  .  W  .    .  .  .    .  .  .  R  .  R    .  .  .  .  S    .  .  .  .
machine-refused  .  .  .  .  .  .  .  W  .    .  .  .    .  .  .  R  .  R    .  .  .  .  S    .  .  .  .
another-lost     .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
machine-limit    W  W  .  W  W  W  W  .  W    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
machine-paid     W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
machine-left     W  W  W  W  W  W  W  W  W    L  L  L    R  R  R  R  R  R    S  S  S  S  S    D  F  C  T
claimed-too-late T  T  .  T  T  T  T  .  T    .  .  .    .  .  R  .  R  .    .  .  .  S  .    .  .  .  .
survivors-left   .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
next-ready       .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  S  .  S    .  .  .  .  .    .  .  .  .
another-ready    .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  .  .    .  .  .  .  .    .  .  .  .
noted            .  .  .  .  .  .  .  .  .    .  .  .    R  R  R  R  R  R    .  .  .  .  .    .  .  .  .
move-declined    .  .  .  .  .  .  .  .  .    .  .  .    .  .  .  .  R  .    .  .  .  .  .    .  .  .  .
"""

_STATES_BY_CODE = dict(zip("WLRSDFCT", JobState, strict=True))


@dataclass(frozen=True)
class Cell:
    """One event in one situation: `expected` is the state afterwards, None when nothing may happen."""

    event_name: str
    situation: str
    expected: JobState | None

    def __str__(self) -> str:
        return f"{self.event_name}-in-{self.situation}"

    @property
    def job(self) -> Job:
        return SITUATIONS[self.situation]

    @property
    def event(self) -> events.JobEvent:
        return EVENTS[self.event_name]

    @property
    def now(self) -> datetime:
        return PAST_DEADLINE if self.event_name.endswith("too-late") else SOON

    @property
    def decision(self) -> Decision:
        return decide(self.job, self.event, self.now, LIMITS)


def by_event(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Return the cells of each event, a test's: for one cell pytest would take longer than the test does."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.event_name, []).append(cell)
    return found


def read_cells() -> list[Cell]:
    """Return the cells of the matrix."""
    header, *rows = (line.split() for line in MATRIX.strip().splitlines())
    named = [(row[0], dict(zip(header, row[1:], strict=True))) for row in rows]
    return [
        Cell(event_name, situation, _STATES_BY_CODE.get(code))
        for event_name, row in named
        for situation, code in row.items()
    ]
