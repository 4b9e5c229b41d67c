"""What a stop was: a table over stop code, reasons, exit code, our own intents and what EC2 said of the machine.

ECS's words are those of the AWS pages "Amazon ECS stopped tasks error messages" and "API failure reasons". The host's
end has stop code `TerminationNotice` for every cause, so only a spot warning tells an interruption from a lost host.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.jobs.job import IntentKind, Stop, StopIntent, StopKind
from relaunch.core.launches.launch import TaskObservation

NOTICE_WINDOW = timedelta(minutes=3)
"""A stop this soon after a warning, or after the end of the host, is taken to answer it."""

NOTICE_LEAD = timedelta(seconds=10)
"""A training that watches the instance metadata itself may be this much ahead of the event that tells us."""

EXIT_SIGKILL = 137
EXIT_SIGTERM = 143
STOPPED_FROM_OUTSIDE = "stopped by somebody outside Relaunch"


class StopCode(StrEnum):
    """ECS's stop codes (TaskStopCode); absent in some events, which then count by their reason."""

    TASK_FAILED_TO_START = "TaskFailedToStart"
    ESSENTIAL_CONTAINER_EXITED = "EssentialContainerExited"
    USER_INITIATED = "UserInitiated"
    SERVICE_SCHEDULER_INITIATED = "ServiceSchedulerInitiated"
    SPOT_INTERRUPTION = "SpotInterruption"
    TERMINATION_NOTICE = "TerminationNotice"
    INFRASTRUCTURE_HEALTH = "InfrastructureHealth"


_NO_CAPACITY = re.compile(
    r"RESOURCE:|\bAGENT\b|\bATTRIBUTE\b|\bLOCATION\b"
    r"|(?i:MemberOf placement constraint|NO ACTIVE INSTANCES|EMPTY CAPACITY PROVIDER"
    r"|no container instances? |capacity is unavailable|Insufficient\w*Capacity|MaxSpotInstanceCountExceeded"
    r"|VcpuLimitExceeded)"
)
_HOST_GONE = re.compile(
    r"(?i)Host EC2 \(instance i-[0-9a-z]+\) (terminated|stopped)|container instance deregist|agent (is )?disconnected"
)
_SPOT_TASK_GONE = re.compile(r"(?i)your spot task was interrupted")
_IMAGE = re.compile(
    r"(?i)CannotPull|manifest unknown|no matching manifest|image \S*\s*not found|manifest for \S+ not found"
    r"|pull access denied|repository does not exist"
)
_OUT_OF_MEMORY = re.compile(r"(?i)OutOfMemory|out of memory")
_FAILED_TO_START = re.compile(r"^TaskFailedToStart\b")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the table looks at; `words` are ECS's reasons that concern the container that counts."""

    stop_code: str
    words: str
    exit_code: int | None
    at: datetime
    warned_at: datetime | None
    host_ended_at: datetime | None

    @property
    def loss(self) -> StopKind:
        return StopKind.HOST_LOST if self.warned_at is None else StopKind.INTERRUPTION

    @property
    def failed_to_start(self) -> bool:
        return self.stop_code == StopCode.TASK_FAILED_TO_START or _FAILED_TO_START.search(self.words) is not None

    @property
    def follows_warning(self) -> bool:
        return _follows(self.at, self.warned_at)

    @property
    def follows_host_end(self) -> bool:
        return _follows(self.at, self.host_ended_at)


def _follows(at: datetime, notice: datetime | None) -> bool:
    return notice is not None and -NOTICE_LEAD <= at - notice <= NOTICE_WINDOW


_Rule = tuple[Callable[[_Facts], bool], Callable[[_Facts], StopKind]]

# The first rule that applies decides.
_RULES: tuple[_Rule, ...] = (
    (lambda f: f.failed_to_start and bool(_NO_CAPACITY.search(f.words)), lambda _: StopKind.NO_CAPACITY),
    (
        lambda f: f.stop_code == StopCode.SPOT_INTERRUPTION or bool(_SPOT_TASK_GONE.search(f.words)),
        lambda _: StopKind.INTERRUPTION,
    ),
    (
        lambda f: (
            f.stop_code in {StopCode.TERMINATION_NOTICE, StopCode.INFRASTRUCTURE_HEALTH}
            or bool(_HOST_GONE.search(f.words))
        ),
        lambda f: f.loss,
    ),
    (lambda f: f.exit_code is None and bool(_IMAGE.search(f.words)), lambda _: StopKind.IMAGE),
    # A child that the kernel killed marks the container too, even when its main process went on to exit 0.
    (lambda f: f.exit_code != 0 and bool(_OUT_OF_MEMORY.search(f.words)), lambda _: StopKind.OUT_OF_MEMORY),
    (
        lambda f: f.stop_code in {StopCode.USER_INITIATED, StopCode.SERVICE_SCHEDULER_INITIATED},
        lambda _: StopKind.CANCELLED,
    ),
    # Docker on a host that shuts down ends containers with SIGTERM, then SIGKILL; a program can make any code of that.
    (lambda f: f.exit_code is not None and f.follows_host_end, lambda f: f.loss),
    (
        lambda f: f.exit_code in {0, EXIT_SIGTERM, EXIT_SIGKILL} and f.follows_warning,
        lambda _: StopKind.INTERRUPTION,
    ),
    (
        lambda f: f.exit_code == 0 and f.stop_code in {StopCode.ESSENTIAL_CONTAINER_EXITED, ""},
        lambda _: StopKind.SUCCESS,
    ),
    # 137 without ECS saying out-of-memory and without a lost host: something in the container, or a kernel short of
    # memory on the whole host. Both come back on the next machine, so it counts against the failure budget.
    (lambda f: f.exit_code is not None and f.exit_code != 0, lambda _: StopKind.USER_ERROR),
    (lambda f: f.exit_code is None and f.host_ended_at is not None, lambda f: f.loss),
)

_BY_INTENT = {
    IntentKind.CANCEL: StopKind.CANCELLED,
    IntentKind.TIME_OUT: StopKind.TIME_OUT,
    IntentKind.INTERRUPTION: StopKind.INTERRUPTION,
    IntentKind.PLACEMENT_WITHDRAWN: StopKind.NO_CAPACITY,
    IntentKind.START_WITHDRAWN: StopKind.NOT_STARTED,
}

# What we wanted for the job holds though the task had stopped by itself, but for these kinds of stops. A machine that
# was lost before its job's time was up leaves it the time that its task did not run: whether it has any left is asked
# next (restart_policy).
_HOLDS_UNLESS = {
    IntentKind.CANCEL: {StopKind.SUCCESS},
    IntentKind.TIME_OUT: {StopKind.SUCCESS, StopKind.HOST_LOST, StopKind.INTERRUPTION},
}


def classify_stop(
    observation: TaskObservation,
    container: str | None,
    intent: StopIntent | None,
    warned_at: datetime | None,
    host_ended_at: datetime | None,
    now: datetime,
) -> Stop:
    """Say what a stopped task's stop was; every stop has exactly one kind.

    Our own intent decides first, whatever the exit code: most trainings save on SIGTERM and exit 0. An intent that was
    written after the task had stopped by itself did not stop it: there a success stays a success, and only a
    cancellation, or a time-out of what was no lost machine, still holds for what was none.

    A missing exit code is never taken for 0. Errors while a task's resources are made ready
    (ResourceInitializationError: secrets, log group, volumes, network) are UNKNOWN: they can be the machine's or the
    account's, and ECS does not say which.

    Args:
        observation: The stopped task.
        container: The container whose exit code counts; None: all, the first non-zero code before a missing one.
        intent: What we wrote down before we asked ECS to stop the task.
        warned_at: When EC2 announced the interruption of the task's host.
        host_ended_at: When EC2 said that the host is shutting down, stopping or terminated.
        now: The time of the stop where ECS does not give one.
    """
    exit_code = _exit_code(observation, container)
    at = observation.stopped_at or now
    words = _words(observation, container, exit_code)
    facts = _Facts(observation.stop_code, words, exit_code, at, warned_at, host_ended_at)
    kind = _kind(facts, intent)
    by_somebody_else = kind is StopKind.CANCELLED and intent is None
    reason = f"{STOPPED_FROM_OUTSIDE}: {words}".rstrip(": ") if by_somebody_else else words
    return Stop(kind, at, observation.stop_code, reason, exit_code)


def _kind(facts: _Facts, intent: StopIntent | None) -> StopKind:
    # Somebody called StopTask: with an intent of ours it was us, even where our clock is ahead of ECS's.
    if intent is not None and (intent.at <= facts.at or facts.stop_code == StopCode.USER_INITIATED):
        return _BY_INTENT[intent.kind]
    kind = next((decide(facts) for applies, decide in _RULES if applies(facts)), StopKind.UNKNOWN)
    if intent is not None and intent.kind in _HOLDS_UNLESS and kind not in _HOLDS_UNLESS[intent.kind]:
        return _BY_INTENT[intent.kind]
    return kind


def _exit_code(observation: TaskObservation, container: str | None) -> int | None:
    if container is not None:
        return observation.container_exit_codes.get(container)
    codes = tuple(observation.container_exit_codes.values())
    failed = next((code for code in codes if code), None)
    if failed is not None:
        return failed
    return 0 if codes and None not in codes else None


def _words(observation: TaskObservation, container: str | None, exit_code: int | None) -> str:
    """Join ECS's reasons: the task's, the container's, and other containers' where one of them can have ended the task.

    The trouble of a container beside it is no explanation of a container that ended by itself.
    """
    others_count = container is None or exit_code in {None, EXIT_SIGTERM, EXIT_SIGKILL}
    reasons = [observation.stopped_reason]
    for name, reason in observation.container_reasons.items():
        if reason and (name == container or others_count) and reason not in reasons:
            reasons.append(reason)
    return "; ".join(reason for reason in reasons if reason)
