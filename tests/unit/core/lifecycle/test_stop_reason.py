from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import make_observation, make_running_attempt
from relaunch.core.jobs.attempt import IntentKind, Stop, StopIntent, StopKind
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD, NOTICE_WINDOW, classify_stop, find_first_ended

STOPPED_AT = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
NOW = STOPPED_AT + timedelta(seconds=20)
HALF_A_MINUTE_EARLIER = STOPPED_AT - timedelta(seconds=30)
EXITED = "EssentialContainerExited"
EXITED_REASON = "Essential container in task exited"
HOST_TERMINATED = "Host EC2 (instance i-0abc12def3456789a) terminated."


def ago(seconds: float) -> datetime:
    return STOPPED_AT - timedelta(seconds=seconds)


@dataclass(frozen=True)
class Case:
    expected: StopKind
    code: str = ""
    reason: str = ""
    exits: dict[str, int | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    container: str | None = "main"
    intent: IntentKind | None = None
    intent_at: datetime = HALF_A_MINUTE_EARLIER
    warned_at: datetime | None = None
    host_ended_at: datetime | None = None
    was_starting: bool = False
    has_node: bool = True
    ended_first: str = ""
    essential: frozenset[str] = frozenset({"main", "log"})
    machine_exit_codes: frozenset[int] = frozenset()


def failed_to_start(expected: StopKind, reason: str, **more: object) -> Case:
    return Case(expected, "TaskFailedToStart", reason, {"main": None}, **more)  # type: ignore[arg-type]


def never_placed(expected: StopKind, reason: str) -> Case:
    return failed_to_start(expected, reason, was_starting=True, has_node=False)


def never_ran(expected: StopKind, reason: str, **more: object) -> Case:
    return failed_to_start(expected, reason, was_starting=True, **more)


def exited(expected: StopKind, exit_code: int | None, **more: object) -> Case:
    return Case(expected, EXITED, EXITED_REASON, {"main": exit_code}, **more)  # type: ignore[arg-type]


def sidecar_and_main(expected: StopKind, sidecar: int | None, main: int | None, **more: object) -> Case:
    return Case(expected, EXITED, EXITED_REASON, {"main": main, "log": sidecar}, **more)  # type: ignore[arg-type]


WAITED_IN_VAIN = (
    "CannotStartContainerError: dependency graph: failed to resolve container ordering dependency [{init SUCCESS}] for "
    "target [main] as dependency did not exit successfully."
)
UNKNOWN_ERROR = "CannotStartContainerError: the flux capacitor is empty"
K = StopKind
CASES = {
    # our own intents
    "cancel-answered-with-exit-0": Case(
        K.CANCELLED, "UserInitiated", "cancelled", {"main": 0}, intent=IntentKind.CANCEL
    ),
    "time-out-answered-with-sigkill": Case(
        K.TIME_OUT, "UserInitiated", "max_runtime", {"main": 137}, intent=IntentKind.TIME_OUT
    ),
    "interruption-answered-with-exit-0": Case(
        K.INTERRUPTION, "UserInitiated", "spot", {"main": 0}, intent=IntentKind.INTERRUPTION, warned_at=ago(40)
    ),
    "move-answered-with-exit-0": Case(K.MOVED, "UserInitiated", "spot", {"main": 0}, intent=IntentKind.MOVE),
    "move-answered-with-sigkill": Case(K.MOVED, "UserInitiated", "spot", {"main": 137}, intent=IntentKind.MOVE),
    "interruption-answered-with-exit-1": Case(
        K.INTERRUPTION, "UserInitiated", "spot", {"main": 1}, intent=IntentKind.INTERRUPTION, warned_at=ago(40)
    ),
    "interruption-overtaken-by-the-host": Case(
        K.INTERRUPTION, "TerminationNotice", HOST_TERMINATED, {"main": None}, intent=IntentKind.INTERRUPTION
    ),
    "intent-counts-even-where-the-program-exited-first": exited(K.CANCELLED, 0, intent=IntentKind.CANCEL),
    "placement-withdrawn": Case(
        K.NO_CAPACITY, "UserInitiated", "PROVISIONING too long", {"main": None}, intent=IntentKind.PLACEMENT_WITHDRAWN
    ),
    "start-withdrawn": Case(
        K.NOT_STARTED,
        "UserInitiated",
        "not started within 0:30:00",
        {"main": None},
        intent=IntentKind.START_WITHDRAWN,
    ),
    "interruption-by-a-clock-ahead-of-ecs": Case(
        K.INTERRUPTION,
        "UserInitiated",
        "spot",
        {"main": 143},
        intent=IntentKind.INTERRUPTION,
        intent_at=ago(-0.4),
    ),
    "placement-withdrawn-by-a-clock-ahead-of-ecs": Case(
        K.NO_CAPACITY,
        "UserInitiated",
        "",
        {"main": None},
        intent=IntentKind.PLACEMENT_WITHDRAWN,
        intent_at=ago(-0.4),
    ),
    "time-out-by-a-clock-as-far-ahead-of-ecs-as-may-be": Case(
        K.TIME_OUT, "UserInitiated", "max_runtime", {"main": 0}, intent=IntentKind.TIME_OUT, intent_at=ago(-10)
    ),
    # intents written after the task had stopped
    "time-out-after-somebody-else-had-stopped-it": Case(
        K.CANCELLED, "UserInitiated", "not today", {"main": 0}, intent=IntentKind.TIME_OUT, intent_at=ago(-10.1)
    ),
    "cancel-after-somebody-else-had-stopped-it": Case(
        K.CANCELLED, "UserInitiated", "not today", {"main": 0}, intent=IntentKind.CANCEL, intent_at=ago(-60)
    ),
    "cancel-after-success": exited(K.SUCCESS, 0, intent=IntentKind.CANCEL, intent_at=ago(-5)),
    "cancel-after-failure": exited(K.CANCELLED, 1, intent=IntentKind.CANCEL, intent_at=ago(-5)),
    "time-out-after-failure": exited(K.TIME_OUT, 1, intent=IntentKind.TIME_OUT, intent_at=ago(-5)),
    "time-out-after-success": exited(K.SUCCESS, 0, intent=IntentKind.TIME_OUT, intent_at=ago(-5)),
    "time-out-after-the-machine-was-lost": Case(
        K.HOST_LOST,
        "TerminationNotice",
        HOST_TERMINATED,
        {"main": None},
        intent=IntentKind.TIME_OUT,
        intent_at=ago(-5),
    ),
    "time-out-after-an-interruption": Case(
        K.INTERRUPTION,
        "TerminationNotice",
        HOST_TERMINATED,
        {"main": None},
        intent=IntentKind.TIME_OUT,
        intent_at=ago(-5),
        warned_at=ago(60),
    ),
    "cancel-after-the-machine-was-lost": Case(
        K.CANCELLED,
        "TerminationNotice",
        HOST_TERMINATED,
        {"main": None},
        intent=IntentKind.CANCEL,
        intent_at=ago(-5),
    ),
    "interruption-long-after-success": exited(
        K.SUCCESS, 0, intent=IntentKind.INTERRUPTION, intent_at=ago(-60), warned_at=ago(-60)
    ),
    "interruption-after-failure": exited(
        K.USER_ERROR, 2, intent=IntentKind.INTERRUPTION, intent_at=ago(-60), warned_at=ago(-60)
    ),
    # nowhere to run
    "no-instance-for-another-reason-of-ec2": never_placed(K.NO_CAPACITY, "UnfulfillableCapacity: Unable to fulfill"),
    "no-address-free": never_placed(K.NO_CAPACITY, "InsufficientFreeAddressesInSubnet: the subnet is full"),
    "no-instance-in-time": never_placed(K.NO_CAPACITY, "Timed out waiting for an instance"),
    "no-reason-and-no-instance": never_placed(K.NO_CAPACITY, ""),
    "stopped-by-somebody-without-an-instance": Case(K.CANCELLED, "UserInitiated", "not today", has_node=False),
    "role-without-an-instance": never_placed(
        K.START_REFUSED, "ECS was unable to assume the role 'arn:aws:iam::111122223333:role/trainer' that was provided"
    ),
    "image-without-an-instance": never_placed(K.NO_CAPACITY, "CannotPullContainerError: manifest unknown"),
    "registry-without-an-instance": never_placed(K.NO_CAPACITY, "CannotPullContainerError: i/o timeout"),
    "start-error-without-an-instance": never_placed(
        K.NO_CAPACITY, "ResourceInitializationError: it is not known of what"
    ),
    "another-stop-code-without-an-instance": Case(
        K.NO_CAPACITY, EXITED, "CannotPullContainerError: i/o timeout", {"main": None}, has_node=False
    ),
    "no-stop-code-without-an-instance": Case(K.NO_CAPACITY, "", "Unexpected EC2 error", has_node=False),
    "no-gpu-free": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: RESOURCE:GPU"),
    "no-memory-free": failed_to_start(K.NO_CAPACITY, "RESOURCE:MEMORY"),
    "agent-disconnected-at-placement": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: AGENT"),
    "attribute-missing": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: ATTRIBUTE"),
    "constraint-unsatisfied": failed_to_start(
        K.NO_CAPACITY, "TaskFailedToStart: MemberOf placement constraint unsatisfied."
    ),
    "no-active-instances": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: NO ACTIVE INSTANCES"),
    "empty-capacity-provider": failed_to_start(K.NO_CAPACITY, "TaskFailedToStart: EMPTY CAPACITY PROVIDER"),
    "insufficient-capacity-from-ec2": failed_to_start(K.NO_CAPACITY, "InsufficientInstanceCapacity: no spot capacity"),
    "failed-to-start-said-in-the-reason-only": Case(
        K.NO_CAPACITY, "", "TaskFailedToStart: RESOURCE:GPU", {"main": None}
    ),
    # image
    "cannot-pull": failed_to_start(
        K.IMAGE, "Task failed to start", reasons={"main": "CannotPullContainerError: i/o timeout"}
    ),
    "cannot-pull-image-manifest": failed_to_start(K.IMAGE, "CannotPullImageManifestError: ref trainer:latest"),
    "manifest-unknown": failed_to_start(K.STARTS_NOWHERE, "manifest for trainer:abc not found: manifest unknown"),
    "wrong-architecture": failed_to_start(
        K.STARTS_NOWHERE, "no matching manifest for linux/arm64/v8 in the manifest list"
    ),
    "image-not-found": failed_to_start(K.STARTS_NOWHERE, "image trainer:latest not found"),
    "cannot-pull-with-the-word-attribute-is-still-image": failed_to_start(
        K.IMAGE, "CannotPullContainerError: unknown attribute in the registry's answer"
    ),
    "sidecar-cannot-be-pulled": Case(
        K.STARTS_NOWHERE,
        "TaskFailedToStart",
        "Task failed to start",
        {"main": None, "log": None},
        {"log": "CannotPullContainerError: pull access denied"},
    ),
    "sidecar-that-was-never-pulled-explains-no-exit-code": exited(
        K.USER_ERROR, 1, reasons={"log": "CannotPullContainerError: pull access denied"}
    ),
    # neither image nor capacity
    "secrets-not-readable": failed_to_start(
        K.START_REFUSED, "ResourceInitializationError: unable to pull secrets or registry auth: AccessDenied"
    ),
    "docker-timed-out": failed_to_start(K.UNKNOWN, "DockerTimeoutError: Could not transition to started"),
    "failed-to-start-though-main-ended-with-0": Case(K.UNKNOWN, "TaskFailedToStart", "volume", {"main": 0}),
    "command-not-found": Case(
        K.USER_ERROR, "TaskFailedToStart", "CannotStartContainerError: exec: no such file", {"main": 127}
    ),
    # it had a machine and never ran there
    "driver-not-loaded": never_ran(
        K.NOT_STARTED,
        "CannotStartContainerError: Error response from daemon: error running hook: nvml error: driver not loaded",
    ),
    "no-space-left": never_ran(
        K.NOT_STARTED, "CannotPullContainerError: write /var/lib/docker: no space left on device"
    ),
    "registry-out-of-reach-of-the-machine": never_ran(K.NOT_STARTED, "CannotPullContainerError: i/o timeout"),
    "docker-timed-out-on-the-machine": never_ran(K.NOT_STARTED, "DockerTimeoutError: Could not transition to created"),
    "logs-out-of-reach-of-the-machine": never_ran(
        K.NOT_STARTED, "ResourceInitializationError: failed to validate logger args: i/o timeout"
    ),
    "network-interface-timed-out": never_ran(
        K.NOT_STARTED, "Timeout waiting for network interface provisioning to complete."
    ),
    "volume-timed-out": never_ran(K.NOT_STARTED, "CannotCreateVolumeError: mount.nfs4: Connection timed out"),
    "no-such-image-wherever-it-starts": never_ran(
        K.STARTS_NOWHERE, "CannotPullContainerError: failed to resolve ref trainer:abc: not found"
    ),
    "secrets-not-readable-wherever-it-starts": never_ran(
        K.START_REFUSED, "ResourceInitializationError: unable to pull secrets: AccessDeniedException"
    ),
    "no-such-command-wherever-it-starts": Case(
        K.STARTS_NOWHERE,
        "TaskFailedToStart",
        'CannotStartContainerError: exec: "trian": executable file not found in $PATH',
        {"main": 127},
        was_starting=True,
    ),
    "no-such-command-that-has-nvidia-in-its-name": never_ran(
        K.STARTS_NOWHERE, 'CannotStartContainerError: exec: "nvidia-smi": executable file not found in $PATH'
    ),
    "no-hook-of-the-runtime-on-the-machine": never_ran(
        K.NOT_STARTED,
        'CannotStartContainerError: OCI runtime create failed: exec: "nvidia-container-runtime-hook": executable file '
        "not found in $PATH: unknown",
    ),
    "no-neuron-hook-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotStartContainerError: exec: "/opt/aws/neuron/bin/oci_neuron_hook": no such file'
    ),
    "no-runtime-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotCreateContainerError: exec: "runc": executable file not found in $PATH'
    ),
    "no-shim-on-the-machine": never_ran(
        K.NOT_STARTED, 'CannotStartContainerError: exec: "containerd-shim-runc-v2": file does not exist'
    ),
    "no-such-log-group-wherever-it-starts": never_ran(
        K.STARTS_NOWHERE,
        "CannotStartContainerError: failed to initialize logging driver: ResourceNotFoundException: The specified log "
        "group does not exist.",
    ),
    "no-such-secret-that-the-agent-tells-without-a-name": never_ran(
        K.STARTS_NOWHERE,
        "Fetching secret data from AWS Secrets Manager in region us-east-1: secret x: ResourceNotFoundException: "
        "Secrets Manager can't find the specified secret.",
    ),
    "an-error-that-nobody-knows": never_ran(K.UNKNOWN_START, UNKNOWN_ERROR),
    "an-error-that-nobody-knows-as-its-host-ended": never_ran(K.HOST_LOST, UNKNOWN_ERROR, host_ended_at=ago(5)),
    "an-error-that-nobody-knows-as-its-host-ended-after-a-warning": never_ran(
        K.INTERRUPTION, UNKNOWN_ERROR, host_ended_at=ago(5), warned_at=ago(125)
    ),
    "an-error-that-nobody-knows-before-its-host-ended": never_ran(
        K.UNKNOWN_START, UNKNOWN_ERROR, host_ended_at=ago(-11), warned_at=ago(20)
    ),
    "an-image-that-nobody-has-as-its-host-ended": never_ran(
        K.STARTS_NOWHERE, "CannotPullContainerError: manifest unknown", host_ended_at=ago(5)
    ),
    "what-it-waits-for-ended-with-its-host": Case(
        K.HOST_LOST,
        EXITED,
        EXITED_REASON,
        {"main": None, "init": 137},
        {"main": WAITED_IN_VAIN},
        was_starting=True,
        host_ended_at=ago(5),
    ),
    "no-error-at-all": never_ran(K.UNKNOWN_START, "Task failed to start"),
    "an-error-that-nobody-knows-of-a-container-that-another-one-waits-for": Case(
        K.STARTS_NOWHERE,
        EXITED,
        EXITED_REASON,
        {"main": 143, "init": None},
        {"main": WAITED_IN_VAIN, "init": "CannotPullContainerError: pull access denied"},
        was_starting=True,
    ),
    "init-container-failed": Case(
        K.USER_ERROR, EXITED, EXITED_REASON, {"main": 143, "init": 3}, {"main": WAITED_IN_VAIN}, was_starting=True
    ),
    "init-container-timed-out": Case(
        K.USER_ERROR,
        EXITED,
        EXITED_REASON,
        {"main": 143, "init": None},
        {"main": WAITED_IN_VAIN.replace("as dependency did not exit successfully", "has timed out")},
        was_starting=True,
    ),
    **{
        f"{error}-with-another-stop-code": Case(
            K.NOT_STARTED, EXITED, EXITED_REASON, {"main": None}, {"main": f"{error}: i/o timeout"}, was_starting=True
        )
        for error in (
            "CannotStartContainerError",
            "CannotCreateContainerError",
            "CannotPullContainerError",
            "CannotInspectContainerError",
            "ResourceInitializationError",
            "DockerTimeoutError",
            "ContainerRuntimeError",
            "ContainerRuntimeTimeoutError",
        )
    },
    "start-error-without-a-stop-code": Case(
        K.NOT_STARTED, "", "DockerTimeoutError: Could not transition to created", {"main": None}, was_starting=True
    ),
    "start-error-of-a-task-that-ran": Case(K.UNKNOWN, EXITED, "CannotStartContainerError: restarted", {"main": None}),
    "no-such-image-with-another-stop-code": Case(
        K.STARTS_NOWHERE, EXITED, "CannotPullContainerError: pull access denied", {"main": None}, was_starting=True
    ),
    "start-that-somebody-stopped": Case(
        K.CANCELLED,
        "UserInitiated",
        "Task stopped by user",
        {"main": None},
        {"main": "CannotStartContainerError: context canceled"},
        was_starting=True,
    ),
    "no-gpu-free-on-the-machine": never_ran(K.NO_CAPACITY, "RESOURCE:GPU"),
    # the host
    "managed-instance-drained": Case(
        K.HOST_LOST, "ServiceSchedulerInitiated", "Task stopped during instance draining", {"main": 0}
    ),
    "managed-instance-drained-with-the-stop-code-of-a-user": Case(
        K.HOST_LOST, "UserInitiated", "Task stopped during instance draining", {"main": 143}
    ),
    "managed-instance-drained-no-stop-code": Case(
        K.HOST_LOST, "", "Task stopped during instance draining", {"main": 0}
    ),
    "host-terminated": Case(K.HOST_LOST, "TerminationNotice", HOST_TERMINATED, {"main": None}),
    "host-terminated-after-a-warning": Case(
        K.INTERRUPTION, "TerminationNotice", HOST_TERMINATED, {"main": None}, warned_at=ago(125)
    ),
    "host-terminated-no-stop-code": Case(K.HOST_LOST, "", HOST_TERMINATED, {"main": None}),
    "host-stopped-no-stop-code": Case(K.HOST_LOST, "", "Host EC2 (instance i-0a1) stopped.", {}),
    "host-terminated-no-reason": Case(K.HOST_LOST, "TerminationNotice", "", {"main": 0}),
    "instance-deregistered-by-force": Case(
        K.HOST_LOST, "UserInitiated", "Container instance deregistration forced by user", {"main": None}
    ),
    "infrastructure-health": Case(K.HOST_LOST, "InfrastructureHealth", "", {"main": None}),
    "agent-lost": Case(K.HOST_LOST, "", "Agent disconnected", {"main": None}),
    "spot-interruption-code": Case(K.INTERRUPTION, "SpotInterruption", "", {"main": None}),
    "spot-task-interrupted-no-code": Case(K.INTERRUPTION, "", "Your Spot Task was interrupted.", {"main": 143}),
    "spot-task-interrupted-odd-code": Case(
        K.INTERRUPTION, "TerminationNotice", "Your Spot Task was interrupted.", {"main": None}
    ),
    # memory
    "oom-in-the-container-reason": exited(
        K.OUT_OF_MEMORY, 137, reasons={"main": "OutOfMemoryError: Container killed due to memory usage"}
    ),
    "oom-in-the-task-reason": Case(K.OUT_OF_MEMORY, EXITED, "OutOfMemoryError: Container killed", {"main": None}),
    "oom-of-a-sidecar-took-main-along": Case(
        K.OUT_OF_MEMORY, EXITED, EXITED_REASON, {"main": 143, "log": 137}, {"log": "OutOfMemoryError: killed"}
    ),
    "oom-of-a-child-that-main-survived": exited(K.SUCCESS, 0, reasons={"main": "OutOfMemoryError: Container killed"}),
    "137-alone": exited(K.USER_ERROR, 137),
    "137-of-a-host-that-ended": exited(K.HOST_LOST, 137, host_ended_at=ago(10)),
    "137-of-a-warned-host-that-ended": exited(K.INTERRUPTION, 137, host_ended_at=ago(10), warned_at=ago(130)),
    # exit codes
    "exit-0": exited(K.SUCCESS, 0),
    "exit-0-no-stop-code": Case(K.SUCCESS, "", "", {"main": 0}),
    "exit-0-unheard-of-stop-code": Case(K.UNKNOWN, "SolarFlare", "", {"main": 0}),
    "exit-0-at-once-after-the-warning": exited(K.INTERRUPTION, 0, warned_at=STOPPED_AT),
    "exit-0-at-the-end-of-the-window": exited(K.INTERRUPTION, 0, warned_at=STOPPED_AT - NOTICE_WINDOW),
    "exit-0-after-the-window": exited(K.SUCCESS, 0, warned_at=ago(181)),
    "exit-0-just-ahead-of-the-warning": exited(K.INTERRUPTION, 0, warned_at=STOPPED_AT + NOTICE_LEAD),
    "exit-0-well-before-the-warning": exited(K.SUCCESS, 0, warned_at=ago(-11)),
    "exit-0-of-a-host-that-ended": exited(K.HOST_LOST, 0, host_ended_at=ago(60)),
    "exit-0-long-before-the-host-ended": exited(K.SUCCESS, 0, host_ended_at=ago(-600)),
    "143-after-the-warning": exited(K.INTERRUPTION, 143, warned_at=ago(60)),
    "143-without-a-warning": exited(K.USER_ERROR, 143),
    "1-after-the-warning": exited(K.USER_ERROR, 1, warned_at=ago(60)),
    "1-while-the-host-shut-down": exited(K.HOST_LOST, 1, host_ended_at=ago(5)),
    "non-zero": exited(K.USER_ERROR, 2),
    "non-zero-no-stop-code": Case(K.USER_ERROR, "", "", {"main": 2}),
    "missing-exit-code": exited(K.UNKNOWN, None),
    "missing-exit-code-of-a-host-that-ended": exited(K.HOST_LOST, None, host_ended_at=ago(600)),
    "missing-exit-code-of-a-warned-host-that-ended": exited(
        K.INTERRUPTION, None, host_ended_at=ago(600), warned_at=ago(720)
    ),
    "container-that-is-not-in-the-task": exited(K.UNKNOWN, 0, container="trainer"),
    "no-containers-at-all": Case(K.UNKNOWN, EXITED, EXITED_REASON, {}),
    "nothing-said": Case(K.UNKNOWN),
    # other essential containers
    "exit-0-after-a-sidecar-had-ended": sidecar_and_main(K.SIDECAR, 139, 0, ended_first="log"),
    "exit-0-after-a-sidecar-had-ended-with-0": sidecar_and_main(K.SIDECAR, 0, 0, ended_first="log"),
    "143-after-a-sidecar-had-ended": sidecar_and_main(K.SIDECAR, 139, 143, ended_first="log"),
    "1-after-a-sidecar-had-ended": sidecar_and_main(K.SIDECAR, 139, 1, ended_first="log"),
    "exit-0-beside-a-failed-sidecar-in-an-unknown-order": sidecar_and_main(K.SIDECAR, 139, 0),
    "143-beside-a-failed-sidecar-in-an-unknown-order": sidecar_and_main(K.SIDECAR, 139, 143),
    "no-exit-code-beside-a-failed-sidecar": sidecar_and_main(K.SIDECAR, 139, None),
    "no-exit-code-beside-a-failed-sidecar-on-a-host-that-ended": sidecar_and_main(
        K.HOST_LOST, 139, None, host_ended_at=ago(-60)
    ),
    "143-beside-a-sidecar-that-was-stopped": sidecar_and_main(K.USER_ERROR, 143, 143),
    "137-beside-a-failed-sidecar-in-an-unknown-order": sidecar_and_main(K.USER_ERROR, 139, 137),
    "1-beside-a-failed-sidecar-in-an-unknown-order": sidecar_and_main(K.USER_ERROR, 139, 1),
    "exit-0-beside-a-sidecar-out-of-memory": sidecar_and_main(
        K.SIDECAR, 137, 0, reasons={"log": "OutOfMemoryError: Container killed due to memory usage"}
    ),
    "exit-0-beside-a-failed-container-that-is-not-essential": sidecar_and_main(
        K.SUCCESS, 139, 0, essential=frozenset({"main"})
    ),
    "exit-0-beside-a-failed-container-of-an-earlier-version": sidecar_and_main(
        K.SUCCESS, 139, 0, essential=frozenset()
    ),
    "exit-0-before-the-sidecar-failed": sidecar_and_main(K.SUCCESS, 139, 0, ended_first="main"),
    **{
        f"exit-0-beside-a-sidecar-that-was-stopped-{code}": sidecar_and_main(K.SUCCESS, code, 0)
        for code in (0, 130, 131, 137, 143, None)
    },
    "sidecar-ended-while-the-host-shut-down": sidecar_and_main(
        K.HOST_LOST, 139, 0, ended_first="log", host_ended_at=ago(5)
    ),
    "sidecar-ended-after-the-warning": sidecar_and_main(K.INTERRUPTION, 139, 0, ended_first="log", warned_at=ago(60)),
    "sidecar-ended-while-we-stopped-it": sidecar_and_main(
        K.CANCELLED, 139, 0, ended_first="log", intent=IntentKind.CANCEL
    ),
    "sidecar-ended-beside-one-that-is-not-in-the-task": sidecar_and_main(K.SIDECAR, 143, 0, ended_first="gone"),
    # no container named: all count
    "only-container-unnamed": exited(K.SUCCESS, 0, container=None),
    "all-containers-ended-with-0": Case(K.SUCCESS, EXITED, EXITED_REASON, {"a": 0, "b": 0}, container=None),
    "one-of-several-failed": Case(K.USER_ERROR, EXITED, EXITED_REASON, {"a": None, "b": 3}, container=None),
    "one-of-several-unknown": Case(K.UNKNOWN, EXITED, EXITED_REASON, {"a": 0, "b": None}, container=None),
    # the machine, as the program or the driver says
    "exit-code-of-the-machine": exited(K.MACHINE_FAULT, 79, machine_exit_codes=frozenset({79})),
    "exit-code-of-the-machine-in-no-definition": exited(K.USER_ERROR, 79),
    "exit-code-of-the-machine-after-the-host-ended": exited(
        K.HOST_LOST, 79, machine_exit_codes=frozenset({79}), host_ended_at=ago(5)
    ),
    "gpu-that-fell-off-the-bus": exited(
        K.MACHINE_FAULT, 1, reasons={"main": "NVRM: Xid (PCI:0000:00:1e): 79, GPU has fallen off the bus."}
    ),
    "gpu-fault-without-an-exit-code": exited(K.MACHINE_FAULT, None, reasons={"main": "Xid 48"}),
    "gpu-fault-that-the-program-survived": exited(K.SUCCESS, 0, reasons={"main": "Xid 63"}),
    "memory-fault-of-the-program-on-a-gpu": exited(K.USER_ERROR, 1, reasons={"main": "NVRM: Xid (PCI:0): 31, MMU"}),
    # somebody else
    "stopped-by-somebody-else": Case(K.CANCELLED, "UserInitiated", "Task stopped by user", {"main": 0}),
    "stopped-by-a-service": Case(K.CANCELLED, "ServiceSchedulerInitiated", "Scaling activity", {"main": 143}),
}


def classify(case: Case, stopped_at: datetime | None = STOPPED_AT) -> Stop:
    observation = make_observation(
        "STOPPED", desired_status="STOPPED", stop_code=case.code, stopped_reason=case.reason,
        container_exit_codes=case.exits, container_reasons=case.reasons, stopped_at=stopped_at,
    )  # fmt: skip
    intent = None if case.intent is None else StopIntent(case.intent, case.intent_at, "as a test says")
    attempt = make_running_attempt(
        intent=intent,
        warned_at=case.warned_at,
        host_ended_at=case.host_ended_at,
        started_at=None if case.was_starting else ago(60),
        ended_first=case.ended_first,
    )
    attempt = attempt if case.has_node else replace(attempt, node=None, instance_id=None, started_at=None)
    codes = case.machine_exit_codes
    return classify_stop(observation, case.container, attempt, NOW, essential=case.essential, machine_exit_codes=codes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_stop_is_classified(case: Case) -> None:
    assert classify(case).kind is case.expected


def test_every_kind_of_stop_has_a_golden_case() -> None:
    assert {case.expected for case in CASES.values()} == set(StopKind)


def test_the_exit_code_of_a_failed_init_container_is_that_of_the_stop() -> None:
    assert classify(CASES["init-container-failed"]).exit_code == 3
    assert classify(CASES["init-container-timed-out"]).exit_code is None


def test_stop_keeps_the_words_of_ecs() -> None:
    stop = classify(CASES["oom-in-the-container-reason"])

    assert (stop.at, stop.stop_code, stop.exit_code) == (STOPPED_AT, EXITED, 137)
    assert stop.stopped_reason == f"{EXITED_REASON}; OutOfMemoryError: Container killed due to memory usage"


def test_stop_without_a_time_happened_now() -> None:
    assert classify(CASES["non-zero"], stopped_at=None).at == NOW


@pytest.mark.parametrize("notice", ["warned_at", "host_ended_at"])
@pytest.mark.parametrize(("minutes_earlier", "kind"), [(4, StopKind.SUCCESS), (0, None)], ids=["long-before", "after"])
def test_a_program_that_left_its_machine_is_told_from_one_that_had_finished_by_when_it_ended(
    notice: str, minutes_earlier: int, kind: StopKind | None
) -> None:
    ended_at = STOPPED_AT - timedelta(minutes=5)
    observation = make_observation(
        "STOPPED", desired_status="STOPPED", stop_code=EXITED, stopped_reason=EXITED_REASON,
        container_exit_codes={"main": 0}, stopped_at=STOPPED_AT,
        execution_stopped_at=ended_at - timedelta(minutes=minutes_earlier),
    )  # fmt: skip
    noticed_at = ended_at - timedelta(seconds=2)

    stop = classify_stop(observation, "main", make_running_attempt(**{notice: noticed_at}), NOW)

    lost = StopKind.INTERRUPTION if notice == "warned_at" else StopKind.HOST_LOST
    assert stop.kind is (kind or lost)
    assert stop.at == STOPPED_AT


def test_stop_by_somebody_else_says_so() -> None:
    reason = classify(CASES["stopped-by-somebody-else"]).stopped_reason

    assert reason == "stopped by somebody outside Relaunch: Task stopped by user"
    named = classify(Case(K.CANCELLED, "UserInitiated", "maintenance of rack X")).stopped_reason
    assert named == "stopped by somebody outside Relaunch: maintenance of rack X"


def test_stop_by_somebody_else_says_so_beside_a_later_time_out() -> None:
    reason = classify(CASES["time-out-after-somebody-else-had-stopped-it"]).stopped_reason

    assert reason == "stopped by somebody outside Relaunch: not today"


def test_stop_by_somebody_else_without_a_reason_says_so() -> None:
    assert classify(Case(K.CANCELLED, "UserInitiated")).stopped_reason == "stopped by somebody outside Relaunch"


def test_our_own_cancellation_keeps_its_reason() -> None:
    assert classify(CASES["cancel-answered-with-exit-0"]).stopped_reason == "cancelled"


def test_a_reason_said_twice_is_kept_once() -> None:
    case = Case(K.IMAGE, "TaskFailedToStart", "CannotPull: x", {"main": None}, {"main": "CannotPull: x"})

    assert classify(case).stopped_reason == "CannotPull: x"


BOTH = {"main": "main: went wrong", "log": "log: went wrong"}


@pytest.mark.parametrize(
    ("container", "exit_code", "words"),
    [
        pytest.param("main", 1, "main: went wrong", id="it ended by itself"),
        pytest.param("main", 0, "main: went wrong", id="it finished"),
        pytest.param("main", 137, "main: went wrong; log: went wrong", id="it was killed, perhaps with the others"),
        pytest.param("main", 143, "main: went wrong; log: went wrong", id="it was ended, perhaps with the others"),
        pytest.param("main", None, "main: went wrong; log: went wrong", id="nobody knows how it ended"),
        pytest.param("log", 1, "log: went wrong", id="another one counts"),
        pytest.param(None, 1, "main: went wrong; log: went wrong", id="all of them count"),
    ],
)
def test_other_containers_explain_only_an_end_that_was_not_its_own(
    container: str | None, exit_code: int | None, words: str
) -> None:
    case = Case(K.UNKNOWN, EXITED, EXITED_REASON, dict.fromkeys(BOTH, exit_code), BOTH, container)

    assert classify(case).stopped_reason == f"{EXITED_REASON}; {words}"


@pytest.mark.parametrize(
    ("case", "name"),
    [
        pytest.param("driver-not-loaded", "CannotStartContainerError", id="the reason begins with it"),
        pytest.param("cannot-pull", "CannotPullContainerError", id="it is a container's"),
        pytest.param("network-interface-timed-out", "", id="none"),
    ],
)
def test_error_of_a_stop_has_a_name(case: str, name: str) -> None:
    assert classify(CASES[case]).error == name


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        pytest.param("image ", K.UNKNOWN_START, id="of-every-machine"),
        pytest.param("CannotPull", K.UNKNOWN_START, id="names-of-errors"),
        pytest.param("Insufficient", K.UNKNOWN_START, id="no-capacity"),
        pytest.param("ordering dependency [", K.UNKNOWN_START, id="init-containers"),
    ],
)
def test_a_reason_that_repeats_itself_is_read_in_time_proportional_to_its_length(word: str, kind: K) -> None:
    assert classify(Case(kind, "TaskFailedToStart", word * 50_000, {"main": None}, was_starting=True)).kind is kind


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("exit-0-after-a-sidecar-had-ended", "log (exit code 139) ended before main did"),
        ("sidecar-ended-beside-one-that-is-not-in-the-task", "gone ended before main did"),
        (
            "exit-0-beside-a-failed-sidecar-in-an-unknown-order",
            "log (exit code 139) ended with an error, and nothing tells whether before main: "
            "let it exit with 0 on SIGTERM, or make it not essential",
        ),
        (
            "exit-0-beside-a-sidecar-out-of-memory",
            "log (exit code 137; OutOfMemoryError: Container killed due to memory usage) ended with an error, and "
            "nothing tells whether before main: let it exit with 0 on SIGTERM, or make it not essential",
        ),
    ],
)
def test_a_stop_for_a_sidecar_names_it(case: str, words: str) -> None:
    assert classify(CASES[case]).stopped_reason == f"{EXITED_REASON}; {words}"


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        pytest.param({"log"}, "log", id="a sidecar"),
        pytest.param({"log", "proxy"}, "log, proxy", id="two sidecars"),
        pytest.param({"main"}, "main", id="the main one"),
        pytest.param({"main", "log"}, "", id="the main one and another: nobody knows"),
        pytest.param({"setup"}, "", id="one that is not essential"),
        pytest.param(set(), "", id="none yet"),
    ],
)
def test_the_container_that_ended_first_is_found_while_others_run(ended: set[str], expected: str) -> None:
    essential = frozenset({"main", "log", "proxy"})
    statuses = {name: "STOPPED" if name in ended else "RUNNING" for name in (*essential, "setup")}
    words = {"stop_code": EXITED, "stopped_reason": EXITED_REASON, "container_statuses": statuses}

    stopping = make_observation("RUNNING", desired_status="STOPPED", **words)

    assert find_first_ended(stopping, "main", essential) == expected
    assert find_first_ended(stopping, None, essential) == ""
    assert find_first_ended(make_observation("RUNNING", **words), "main", essential) == ""
    assert find_first_ended(make_observation("STOPPED", **words), "main", essential) == ""


def test_a_task_that_somebody_stops_tells_nothing_by_the_order_of_its_containers() -> None:
    stopping = make_observation(
        "RUNNING", desired_status="STOPPED", stop_code="UserInitiated", stopped_reason="enough",
        container_statuses={"main": "RUNNING", "log": "STOPPED"},
    )  # fmt: skip

    assert find_first_ended(stopping, "main", frozenset({"main", "log"})) == ""


def test_of_a_revision_of_an_earlier_version_any_container_may_have_ended_first() -> None:
    stopping = make_observation(
        "RUNNING", desired_status="STOPPED", stop_code=EXITED, stopped_reason=EXITED_REASON,
        container_statuses={"main": "RUNNING", "log": "STOPPED"},
    )  # fmt: skip

    assert find_first_ended(stopping, "main", frozenset()) == "log"
