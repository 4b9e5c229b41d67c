"""What the stop codes and reasons of ECS report as the cause of a stop.

The reasons are those of "Amazon ECS stopped tasks error messages" and "API failure reasons". The stop code of a
terminated host is `TerminationNotice` for every cause: only a spot warning distinguishes an interruption from a lost
host.
"""

import re
from enum import StrEnum
from functools import lru_cache

from relaunch.adapters.start_errors import NAMES, meaning_of, tells_gpu_fault
from relaunch.core.launches.launch import STOPPED_BY_WARNING, ReportedCause, StopReport


class StopCode(StrEnum):
    """The stop codes of ECS (TaskStopCode); some events have none and are classified by their reason."""

    TASK_FAILED_TO_START = "TaskFailedToStart"
    ESSENTIAL_CONTAINER_EXITED = "EssentialContainerExited"
    USER_INITIATED = "UserInitiated"
    SERVICE_SCHEDULER_INITIATED = "ServiceSchedulerInitiated"
    SPOT_INTERRUPTION = "SpotInterruption"
    TERMINATION_NOTICE = "TerminationNotice"
    INFRASTRUCTURE_HEALTH = "InfrastructureHealth"


_BY_CODE = {
    "": ReportedCause.ENDED,
    StopCode.TASK_FAILED_TO_START: ReportedCause.NOT_STARTED,
    StopCode.ESSENTIAL_CONTAINER_EXITED: ReportedCause.ENDED,
    StopCode.USER_INITIATED: ReportedCause.STOP_CALLED,
    StopCode.SERVICE_SCHEDULER_INITIATED: ReportedCause.STOP_SCHEDULED,
    StopCode.SPOT_INTERRUPTION: ReportedCause.INTERRUPTED,
    StopCode.TERMINATION_NOTICE: ReportedCause.NODE_LOST,
    StopCode.INFRASTRUCTURE_HEALTH: ReportedCause.NODE_LOST,
}
# Texts, which `re` compiles when it first searches by them, and keeps: compiling takes milliseconds of every start.
_BY_TEXT = {
    ReportedCause.NO_CAPACITY: (
        r"RESOURCE:|\bAGENT\b|\bATTRIBUTE\b|\bLOCATION\b"
        r"|(?i:MemberOf placement constraint|NO ACTIVE INSTANCES|EMPTY CAPACITY PROVIDER"
        r"|no container instances? |capacity is unavailable|Insufficient\w{0,40}Capacity|MaxSpotInstanceCountExceeded"
        r"|VcpuLimitExceeded)"
    ),
    # ECS Managed Instances are drained after 14 days at most, whatever runs on them ("Instance draining").
    ReportedCause.NODE_LOST: (
        r"(?i)Host EC2 \(instance i-[0-9a-z]+\) (terminated|stopped)|container instance deregist"
        r"|agent (is )?disconnected|stopped during instance draining"
    ),
    ReportedCause.INTERRUPTED: rf"(?i)your spot task was interrupted|^{STOPPED_BY_WARNING}\b",
    ReportedCause.IMAGE: (
        r"(?i)CannotPull|manifest unknown|no matching manifest|image \S*\s*not found|manifest for \S+ not found"
        r"|pull access denied|repository does not exist"
    ),
    ReportedCause.OUT_OF_MEMORY: r"(?i)OutOfMemory|out of memory",
    # The errors of a task that does not start, of which ECS may tell with another stop code than TaskFailedToStart.
    ReportedCause.START_ERROR: rf"\b({'|'.join(NAMES)})\b",
    ReportedCause.NOT_STARTED: r"^TaskFailedToStart\b",
    # A container with `dependsOn` and the conditions SUCCESS, COMPLETE or HEALTHY.
    ReportedCause.DEPENDENCY_FAILED: (
        r"ordering dependency \[[^\]]{0,200}\] for target \[[^\]]{0,255}\]"
        r" (as dependency did not exit successfully|has timed out|because dependency will never start)"
    ),
}
# "CannotStartContainerError", "ResourceInitializationError", "ContainerRuntimeTimeoutError"…
_ERROR_NAME = r"\b[A-Z][a-z]\w*Error\b"


def report_of_task(stop_code: str, stopped_reason: str) -> StopReport:
    """Return what a task reports; a stop code that is not documented tells no cause."""
    report = report_of_container(stopped_reason)
    by_code = _BY_CODE.get(stop_code)
    return StopReport(report.text, report.causes | {by_code}, report.error) if by_code else report


# ECS tells the same of a stopped task for an hour, and of all tasks of a group at each look.
@lru_cache(maxsize=256)
def report_of_container(reason: str) -> StopReport:
    """Return what the reason of a container reports."""
    if not reason:
        # Of every task that runs: making the patterns for it took 15 ms of a cold start.
        return StopReport(reason, frozenset(), "")
    causes = {cause for cause, pattern in _BY_TEXT.items() if re.search(pattern, reason)}
    meaning = meaning_of(reason)
    if meaning is not None and ReportedCause.DEPENDENCY_FAILED not in causes:
        causes.add(meaning)
    if tells_gpu_fault(reason):
        causes.add(ReportedCause.GPU_FAULT)
    error = re.search(_ERROR_NAME, reason)
    return StopReport(reason, frozenset(causes), error.group() if error else "")
