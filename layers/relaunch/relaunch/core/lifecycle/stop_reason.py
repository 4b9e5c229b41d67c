"""Classification of stops by stop code, reasons, exit code, stop intent and EC2 events of the instance.

The reasons are those of "Amazon ECS stopped tasks error messages" and "API failure reasons". The stop code of a
terminated host is `TerminationNotice` for every cause: only a spot warning distinguishes an interruption from a lost
host.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.jobs.job import Attempt, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.launches.launch import TaskObservation

NOTICE_WINDOW = timedelta(minutes=3)
"""A stop within this time after a warning, or after the end of the host, is attributed to it."""

NOTICE_LEAD = timedelta(seconds=10)
"""A training that polls the instance metadata may stop this long before the EC2 event arrives."""

CLOCK_SKEW = timedelta(seconds=10)
"""How far the clock of ECS may be behind ours: a longer time before the intent was saved, somebody else stopped it."""

EXIT_SIGKILL = 137
EXIT_SIGTERM = 143
STOPPED_FROM_OUTSIDE = "stopped by somebody outside Relaunch"


class StopCode(StrEnum):
    """The stop codes of ECS (TaskStopCode); some events have none and are classified by their reason."""

    TASK_FAILED_TO_START = "TaskFailedToStart"
    ESSENTIAL_CONTAINER_EXITED = "EssentialContainerExited"
    USER_INITIATED = "UserInitiated"
    SERVICE_SCHEDULER_INITIATED = "ServiceSchedulerInitiated"
    SPOT_INTERRUPTION = "SpotInterruption"
    TERMINATION_NOTICE = "TerminationNotice"
    INFRASTRUCTURE_HEALTH = "InfrastructureHealth"


_STOPPED_BY_SOMEBODY = frozenset({StopCode.USER_INITIATED, StopCode.SERVICE_SCHEDULER_INITIATED})
_NO_CAPACITY = re.compile(
    r"RESOURCE:|\bAGENT\b|\bATTRIBUTE\b|\bLOCATION\b"
    r"|(?i:MemberOf placement constraint|NO ACTIVE INSTANCES|EMPTY CAPACITY PROVIDER"
    r"|no container instances? |capacity is unavailable|Insufficient\w{0,40}Capacity|MaxSpotInstanceCountExceeded"
    r"|VcpuLimitExceeded)"
)
# ECS Managed Instances are drained after 14 days at most, whatever runs on them ("Instance draining").
_HOST_GONE = re.compile(
    r"(?i)Host EC2 \(instance i-[0-9a-z]+\) (terminated|stopped)|container instance deregist|agent (is )?disconnected"
    r"|stopped during instance draining"
)
_SPOT_TASK_GONE = re.compile(r"(?i)your spot task was interrupted")
_IMAGE = re.compile(
    r"(?i)CannotPull|manifest unknown|no matching manifest|image \S*\s*not found|manifest for \S+ not found"
    r"|pull access denied|repository does not exist"
)
_OUT_OF_MEMORY = re.compile(r"(?i)OutOfMemory|out of memory")
# No other instance could pull the image, read the secret or execute the command either. The executables of the
# container runtime and of its hooks are the instance's. Only the first image of a line is looked at, so that a reason
# that names it again and again is read once.
_FAILS_EVERYWHERE = re.compile(
    r"(?im)manifest unknown|no matching manifest|^(?>.*?(image|manifest|CannotPull\w*)\b).* not found"
    r"|pull access denied"
    r"|repository does not exist|AccessDenied"
    r"|\bexec: (?!\"?[^\"\s:]*(nvidia-container|oci[-_]neuron|containerd-shim|runc\b))"
)
# The errors of a task that does not start, of which ECS may tell with another stop code than TaskFailedToStart.
_START_ERROR = re.compile(
    r"\b(Cannot(Start|Create|Pull|Inspect)\w*|ResourceInitialization|DockerTimeout|ContainerRuntime\w*)Error\b"
)
_FAILED_TO_START = re.compile(r"^TaskFailedToStart\b")
# "CannotStartContainerError", "ResourceInitializationError", "ContainerRuntimeTimeoutError"…
_ERROR_NAME = re.compile(r"\b[A-Z][a-z]\w*Error\b")


@dataclass(frozen=True, slots=True)
class _Facts:
    """The arguments of the rules; `reasons` are those of the task and of the relevant containers.

    `was_starting`: the task had an instance and never ran.
    """

    stop_code: str
    reasons: str
    exit_code: int | None
    at: datetime
    warned_at: datetime | None
    host_ended_at: datetime | None
    was_starting: bool

    @property
    def loss(self) -> StopKind:
        return StopKind.HOST_LOST if self.warned_at is None else StopKind.INTERRUPTION

    @property
    def failed_to_start(self) -> bool:
        return self.stop_code == StopCode.TASK_FAILED_TO_START or _FAILED_TO_START.search(self.reasons) is not None

    @property
    def did_not_start(self) -> bool:
        """Return whether the instance may be why the task never ran; a start that somebody stops fails too."""
        is_told = self.failed_to_start or (
            self.stop_code not in _STOPPED_BY_SOMEBODY and _START_ERROR.search(self.reasons) is not None
        )
        return self.was_starting and is_told and not _FAILS_EVERYWHERE.search(self.reasons)

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
    (lambda f: f.failed_to_start and bool(_NO_CAPACITY.search(f.reasons)), lambda _: StopKind.NO_CAPACITY),
    (
        lambda f: f.stop_code == StopCode.SPOT_INTERRUPTION or bool(_SPOT_TASK_GONE.search(f.reasons)),
        lambda _: StopKind.INTERRUPTION,
    ),
    (
        lambda f: (
            f.stop_code in {StopCode.TERMINATION_NOTICE, StopCode.INFRASTRUCTURE_HEALTH}
            or bool(_HOST_GONE.search(f.reasons))
        ),
        lambda f: f.loss,
    ),
    (lambda f: f.did_not_start, lambda _: StopKind.NOT_STARTED),
    (lambda f: f.exit_code is None and bool(_IMAGE.search(f.reasons)), lambda _: StopKind.IMAGE),
    # A child process killed by the kernel marks the container too, even if its main process exits with 0.
    (lambda f: f.exit_code != 0 and bool(_OUT_OF_MEMORY.search(f.reasons)), lambda _: StopKind.OUT_OF_MEMORY),
    (
        lambda f: f.stop_code in _STOPPED_BY_SOMEBODY,
        lambda _: StopKind.CANCELLED,
    ),
    # On shutdown Docker ends containers with SIGTERM, then SIGKILL; a program may exit with any code.
    (lambda f: f.exit_code is not None and f.follows_host_end, lambda f: f.loss),
    (
        lambda f: f.exit_code in {0, EXIT_SIGTERM, EXIT_SIGKILL} and f.follows_warning,
        lambda _: StopKind.INTERRUPTION,
    ),
    (
        lambda f: f.exit_code == 0 and f.stop_code in {StopCode.ESSENTIAL_CONTAINER_EXITED, ""},
        lambda _: StopKind.SUCCESS,
    ),
    # 137 without OutOfMemory and without a lost host: the container's own doing, or the host is out of memory. Both
    # recur on the next instance, so it counts against max_failures.
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

# An intent applies to a task that had stopped before, except for these kinds of stops. After a lost instance the
# restart policy decides whether the job has time left.
_APPLIES_EXCEPT = {
    IntentKind.CANCEL: {StopKind.SUCCESS},
    IntentKind.TIME_OUT: {StopKind.SUCCESS, StopKind.CANCELLED, StopKind.HOST_LOST, StopKind.INTERRUPTION},
}


def classify_stop(observation: TaskObservation, container: str | None, attempt: Attempt, now: datetime) -> Stop:
    """Classify the stop of a task; every stop has exactly one kind.

    The intent of the attempt decides first, whatever the exit code: most trainings save on SIGTERM and exit with 0. An
    intent saved after the task had stopped did not stop it: a success remains a success, and only a cancellation, or a
    time-out if neither the instance was lost nor somebody else stopped the task, applies to other stops.

    An error of a task that had an instance and never ran is taken for the instance's if it may be: the driver is not
    loaded, no space is left on the device, Docker, a volume or a network interface timed out. A missing exit code is
    never treated as 0.

    Args:
        observation: The stopped task.
        container: The container whose exit code is used; None: all, a non-zero code before a missing one.
        attempt: Its attempt, with the intent saved before StopTask was called and what EC2 reported of the instance.
        now: The time of the stop if ECS does not report one.
    """
    exit_code = _exit_code(observation, container)
    at = observation.stopped_at or now
    reasons = _join_reasons(observation, container, exit_code)
    intent = attempt.intent
    was_starting = attempt.container_instance_arn is not None and attempt.started_at is None
    facts = _Facts(
        observation.stop_code, reasons, exit_code, at, attempt.warned_at, attempt.host_ended_at, was_starting
    )
    kind = _kind(facts, intent)
    is_external = kind is StopKind.CANCELLED and (intent is None or intent.kind is not IntentKind.CANCEL)
    reason = f"{STOPPED_FROM_OUTSIDE}: {reasons}".rstrip(": ") if is_external else reasons
    return Stop(kind, at, observation.stop_code, reason, exit_code)


def _kind(facts: _Facts, intent: StopIntent | None) -> StopKind:
    skew = CLOCK_SKEW if facts.stop_code == StopCode.USER_INITIATED else timedelta()
    if intent is not None and intent.at <= facts.at + skew:
        return _BY_INTENT[intent.kind]
    kind = next((decide(facts) for applies, decide in _RULES if applies(facts)), StopKind.UNKNOWN)
    if intent is not None and intent.kind in _APPLIES_EXCEPT and kind not in _APPLIES_EXCEPT[intent.kind]:
        return _BY_INTENT[intent.kind]
    return kind


def error_name(stop: Stop) -> str:
    """Return the name of the error in the stopped reason (`CannotStartContainerError`…), empty if it has none."""
    found = _ERROR_NAME.search(stop.stopped_reason)
    return found.group() if found else ""


def _exit_code(observation: TaskObservation, container: str | None) -> int | None:
    if container is not None:
        return observation.container_exit_codes.get(container)
    codes = tuple(observation.container_exit_codes.values())
    failed = next((code for code in codes if code), None)
    if failed is not None:
        return failed
    return 0 if codes and None not in codes else None


def _join_reasons(observation: TaskObservation, container: str | None, exit_code: int | None) -> str:
    """Join the reasons of the task, of the container, and of others if one of them can have ended the task.

    The reason of another container does not explain a container that exited by itself.
    """
    others_count = container is None or exit_code in {None, EXIT_SIGTERM, EXIT_SIGKILL}
    reasons = [observation.stopped_reason]
    for name, reason in observation.container_reasons.items():
        if reason and (name == container or others_count) and reason not in reasons:
            reasons.append(reason)
    return "; ".join(reason for reason in reasons if reason)
