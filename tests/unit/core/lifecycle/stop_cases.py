"""Golden cases of how a task stops that ran, and how a test has them classified."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from fakes.builders import make_observation, make_running_attempt
from relaunch.core.jobs.attempt import IntentKind, Stop, StopIntent, StopKind
from relaunch.core.lifecycle.stop_reason import NOTICE_LEAD, NOTICE_WINDOW, classify_stop

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


K = StopKind

STOP_CASES = {
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
    "over-budget-answered-with-exit-1": Case(
        K.OVER_BUDGET, "UserInitiated", "budget", {"main": 1}, intent=IntentKind.BUDGET
    ),
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
    "gpu-fault-after-a-sidecar-had-ended": sidecar_and_main(
        K.MACHINE_FAULT, 139, 134, ended_first="log", reasons={"main": "NVRM: Xid (PCI:0000:00:1e): 48, DBE"}
    ),
    "exit-code-of-the-machine-after-a-sidecar-had-ended": sidecar_and_main(
        K.MACHINE_FAULT, 139, 79, ended_first="log", machine_exit_codes=frozenset({79})
    ),
    "gpu-fault-that-the-program-survived-after-a-sidecar-had-ended": sidecar_and_main(
        K.SIDECAR, 139, 0, ended_first="log", reasons={"main": "Xid 63"}
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
