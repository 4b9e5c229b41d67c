"""Classification of stops by reported cause, exit code, stop intent and EC2 events of the instance.

A target reports what it knows as causes (core.launches.launch.ReportedCause), several of which may come at once.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import Attempt, IntentKind, Stop, StopIntent, StopKind
from relaunch.core.launches.launch import ContainerObservation, ReportedCause, StopReport, TaskObservation, TaskPhase
from relaunch.core.records import dataclass

NOTICE_WINDOW = Target.ECS.capabilities.notice_window
"""A stop within this time after a warning of EC2 is attributed to it."""

NOTICE_LEAD = timedelta(seconds=10)
"""A training that polls the instance metadata may stop this long before the EC2 event arrives, and one on an instance
that is shut down from within before EC2 knows of that."""

CLOCK_SKEW = timedelta(seconds=10)
"""How far the clock of a target may be behind ours: a longer time before the intent was saved, somebody else stopped
the task."""

EXIT_SIGKILL = 137
EXIT_SIGTERM = 143
_EXITS_BY_STOP = frozenset({0, 130, 131, EXIT_SIGKILL, EXIT_SIGTERM})
"""How a container exits that ECS stops: with 0, or by its STOPSIGNAL (SIGINT, SIGQUIT, SIGTERM), or by SIGKILL."""
BY_RELAUNCH = "Relaunch: "
"""How the reason begins with which Relaunch stops a task (core.lifecycle.decision)."""
STOPPED_FROM_OUTSIDE = "stopped by somebody outside Relaunch"
# An attempt is one item under 4 KB, and each container of its task may have words of its own.
_MAX_WORDS = 1_000
_MAX_REASON = 2_000

_START_ERRORS = frozenset({ReportedCause.START_ERROR, ReportedCause.IMAGE})
_ELSEWHERE = frozenset({ReportedCause.NODE_FAULT, ReportedCause.UNREACHABLE, ReportedCause.REJECTED})
_STOPPED_BY_SOMEBODY = frozenset({ReportedCause.STOP_CALLED, ReportedCause.STOP_SCHEDULED})


@dataclass(frozen=True, slots=True)
class _Facts:
    """The arguments of the rules; `causes` are those of the task and of the relevant containers.

    `at` is when the containers had ended: a task whose instance ends is taken down for minutes after that.
    `was_starting`: the task had an instance and never ran. `had_node`: it had one, whether it ran or not. `sidecar`
    says which other essential container ended the task, or may have, in words; empty if none did.
    `machine_exit_codes` are those of the job definition. `target` is where it ran. `stop_text` is the reason of whoever
    called for the stop, empty if nobody did. `is_in_vain`: it waited for other nodes of the job.
    """

    causes: frozenset[ReportedCause]
    exit_code: int | None
    at: datetime
    warned_at: datetime | None
    host_ended_at: datetime | None
    was_starting: bool
    had_node: bool
    sidecar: str
    machine_exit_codes: frozenset[int] = frozenset()
    target: Target = Target.ECS
    stop_text: str = ""
    is_in_vain: bool = False

    def tells(self, cause: ReportedCause) -> bool:
        return cause in self.causes

    @property
    def loss(self) -> StopKind:
        return StopKind.HOST_LOST if self.warned_at is None else StopKind.INTERRUPTION

    @property
    def is_stopped_by_somebody(self) -> bool:
        return bool(self.causes & _STOPPED_BY_SOMEBODY)

    @property
    def did_not_start(self) -> bool:
        """Return whether the task had an instance and never ran there; a start that somebody stops fails too."""
        return self.was_starting and self.is_start_error

    @property
    def is_start_error(self) -> bool:
        has_error = bool(self.causes & _START_ERRORS) and not self.is_stopped_by_somebody
        return self.tells(ReportedCause.NOT_STARTED) or has_error

    @property
    def starts_nowhere(self) -> bool:
        """Return whether no other instance would start it either."""
        return self.is_start and self.had_node and self.tells(ReportedCause.STARTS_NOWHERE)

    @property
    def start_is_refused(self) -> bool:
        """Return whether no instance would start it before somebody grants something."""
        return self.is_start and self.tells(ReportedCause.START_REFUSED)

    @property
    def is_start(self) -> bool:
        """Return whether the task failed before its program ran."""
        return self.did_not_start or (self.exit_code is None and self.is_start_error)

    @property
    def is_known_elsewhere(self) -> bool:
        """Return whether the error is known to be of the instance, or of the moment."""
        return bool(self.causes & _ELSEWHERE)

    @property
    def is_machine_fault(self) -> bool:
        """Return whether the program failed by its machine: by a GPU of it, or as the definition says."""
        return self.exit_code != 0 and (
            self.tells(ReportedCause.GPU_FAULT) or self.exit_code in self.machine_exit_codes
        )

    @property
    def got_no_node(self) -> bool:
        """Return whether the task ended without an instance, whatever ECS says of why it got none.

        ECS says it in the words of EC2 and of Auto Scaling, which have codes for it by the dozen. No agent has seen the
        task: nothing that sounds like an error of its image or its secrets is known to be one.
        """
        return not self.had_node and self.exit_code is None and not self.is_stopped_by_somebody

    @property
    def follows_warning(self) -> bool:
        return follows(self.at, self.warned_at, self.target.capabilities.notice_window)

    @property
    def is_exit_by_warning(self) -> bool:
        """Return whether a program may exit so for a warning.

        A cluster gives one for a pod that is being taken away, with SIGTERM: programs exit with any code for that, as
        torchrun does with 1 (pytorch/pytorch#61602), and what takes a pod away may say nothing of its end.
        """
        return self.target.capabilities.runs_pods or self.exit_code in {0, EXIT_SIGTERM, EXIT_SIGKILL}

    @property
    def follows_host_end(self) -> bool:
        # What ran on an instance that shuts down, for up to six minutes, did not outlive it.
        return self.host_ended_at is not None and self.at - self.host_ended_at >= -NOTICE_LEAD


def follows(at: datetime, notice: datetime | None, window: timedelta = NOTICE_WINDOW) -> bool:
    """Return whether the end of a program is attributed to a warning: `window` after it at the latest."""
    return notice is not None and -NOTICE_LEAD <= at - notice <= window


_Rule = tuple[Callable[[_Facts], bool], Callable[[_Facts], StopKind]]

# The first rule that applies decides.
_RULES: tuple[_Rule, ...] = (
    (
        lambda f: f.tells(ReportedCause.NOT_STARTED) and f.tells(ReportedCause.NO_CAPACITY),
        lambda _: StopKind.NO_CAPACITY,
    ),
    (lambda f: f.tells(ReportedCause.INTERRUPTED), lambda _: StopKind.INTERRUPTION),
    (lambda f: f.tells(ReportedCause.NODE_LOST), lambda f: f.loss),
    (lambda f: f.tells(ReportedCause.REJECTED) and not f.was_starting, lambda f: f.loss),
    (lambda f: f.starts_nowhere, lambda _: StopKind.STARTS_NOWHERE),
    (lambda f: f.start_is_refused, lambda _: StopKind.START_REFUSED),
    (lambda f: f.did_not_start and f.is_known_elsewhere, lambda _: StopKind.NOT_STARTED),
    (lambda f: f.got_no_node, lambda _: StopKind.NO_CAPACITY),
    # The shutdown of a host breaks a start with any words, and ends what the start waits for.
    (lambda f: f.did_not_start and f.follows_host_end, lambda f: f.loss),
    # A container that has to succeed before another one starts is a part of the program.
    (lambda f: f.tells(ReportedCause.DEPENDENCY_FAILED), lambda _: StopKind.USER_ERROR),
    (lambda f: f.did_not_start, lambda _: StopKind.UNKNOWN_START),
    (lambda f: f.exit_code is None and f.tells(ReportedCause.IMAGE), lambda _: StopKind.IMAGE),
    # A child process killed by the kernel marks the container too, even if its main process exits with 0.
    (lambda f: f.exit_code != 0 and f.tells(ReportedCause.OUT_OF_MEMORY), lambda _: StopKind.OUT_OF_MEMORY),
    (lambda f: f.is_stopped_by_somebody, lambda _: StopKind.CANCELLED),
    # The others of a job of several nodes fail when one is lost. A rank that never ran is gone without a word too.
    (lambda f: f.tells(ReportedCause.PEER_LOST) and f.had_node and not f.was_starting, lambda f: f.loss),
    # On shutdown Docker ends containers with SIGTERM, then SIGKILL; a program may exit with any code.
    (lambda f: f.exit_code is not None and f.follows_host_end, lambda f: f.loss),
    (
        lambda f: f.is_exit_by_warning and f.follows_warning,
        lambda _: StopKind.INTERRUPTION,
    ),
    # Whichever container ended first: what the driver reports about its GPU is no less true.
    (lambda f: f.is_machine_fault, lambda _: StopKind.MACHINE_FAULT),
    # ECS sends SIGTERM to the others when an essential container ends, and most trainings save then and exit with 0.
    (
        lambda f: f.exit_code is not None and bool(f.sidecar) and f.tells(ReportedCause.ENDED),
        lambda _: StopKind.SIDECAR,
    ),
    (lambda f: f.exit_code == 0 and f.tells(ReportedCause.ENDED), lambda _: StopKind.SUCCESS),
    # 137 without OutOfMemory and without a lost host: the container's own doing, or the host is out of memory. Both
    # recur on the next instance, so it counts against max_failures.
    (lambda f: f.exit_code is not None and f.exit_code != 0, lambda _: StopKind.USER_ERROR),
    (lambda f: f.exit_code is None and f.host_ended_at is not None, lambda f: f.loss),
    # ECS does not always know how a container ended that it stopped.
    (lambda f: bool(f.sidecar) and f.tells(ReportedCause.ENDED), lambda _: StopKind.SIDECAR),
)

_BY_INTENT = {
    IntentKind.CANCEL: StopKind.CANCELLED,
    IntentKind.TIME_OUT: StopKind.TIME_OUT,
    IntentKind.INTERRUPTION: StopKind.INTERRUPTION,
    IntentKind.MOVE: StopKind.MOVED,
    IntentKind.BUDGET: StopKind.OVER_BUDGET,
    # The rank that decides was stopped too: it did not end with the others, which had finished.
    IntentKind.RANK_ENDED: StopKind.USER_ERROR,
    IntentKind.PLACEMENT_WITHDRAWN: StopKind.NO_CAPACITY,
    IntentKind.START_WITHDRAWN: StopKind.NOT_STARTED,
    IntentKind.START_REFUSED: StopKind.START_REFUSED,
    IntentKind.STARTS_NOWHERE: StopKind.STARTS_NOWHERE,
}

_OF_A_PROGRAM = frozenset(
    {StopKind.SUCCESS, StopKind.USER_ERROR, StopKind.OUT_OF_MEMORY, StopKind.SIDECAR, StopKind.UNKNOWN}
)
"""What a program that only waits for others does not do: torchrun's ends with 1 after ten minutes."""

_FINAL_INTENTS = frozenset({IntentKind.CANCEL, IntentKind.TIME_OUT})

# An intent applies to a task that had stopped before, except for these kinds of stops. After a lost instance the
# restart policy decides whether the job has time left.
_APPLIES_EXCEPT = {
    IntentKind.CANCEL: {StopKind.SUCCESS},
    IntentKind.TIME_OUT: {StopKind.SUCCESS, StopKind.CANCELLED, StopKind.HOST_LOST, StopKind.INTERRUPTION},
}


def classify_stop(  # noqa: PLR0913 - the last one is named at every call
    observation: TaskObservation,
    container: str | None,
    attempt: Attempt,
    now: datetime,
    essential: frozenset[str] = frozenset(),
    machine_exit_codes: frozenset[int] = frozenset(),
    *,
    target: Target = Target.ECS,
    is_part: bool = False,
) -> Stop:
    """Classify the stop of a task; every stop has exactly one kind.

    The intent of the attempt decides first, whatever the exit code: most trainings save on SIGTERM and exit with 0. An
    intent saved after the task had stopped did not stop it: a success remains a success, and only a cancellation, or a
    time-out if neither the instance was lost nor somebody else stopped the task, applies to other stops.

    What an error of a task that never ran means for the next start is known to the target, by its name and its text. A
    container that another one waits for (`dependsOn`) is a part of the program: its exit code is that of the job. A
    missing exit code is never treated as 0.

    Args:
        observation: The stopped task.
        container: The container whose exit code is used; None: all, a non-zero code before a missing one.
        attempt: Its attempt, with the intent saved before the stop was asked for, and what EC2 reported of the
            instance.
        now: The time of the stop if the target does not report one.
        essential: The containers for whose end the target stops the task, if that is known.
        machine_exit_codes: The exit codes with which the program says that its machine is at fault.
        target: Where the task ran.
        is_part: The nodes of the job could not all meet: whatever the code it exited with, it waited for the others.
    """
    exit_code = exit_code_of(observation, container)
    at = observation.stopped_at or now
    reports = _relevant_reports(observation, container, exit_code)
    causes = frozenset(cause for each in reports for cause in each.causes)
    intent = attempt.intent
    was_starting = attempt.node is not None and attempt.started_at is None
    had_node = attempt.node is not None
    sidecar = _describe_sidecar(observation, container, exit_code, attempt.ended_first, essential)
    facts = _Facts(
        causes,
        exit_code,
        ended_at(observation, now),
        attempt.warned_at,
        attempt.host_ended_at,
        was_starting,
        had_node,
        sidecar,
        machine_exit_codes,
        target,
        next((each.text for each in reports if ReportedCause.STOP_CALLED in each.causes), ""),
        is_part or (observation.waited_in_vain and attempt.started_at is None),
    )
    kind = _kind(facts, intent)
    if kind is StopKind.USER_ERROR and ReportedCause.DEPENDENCY_FAILED in causes:
        exit_code = _dependency_exit_code(observation)
    texts = [_cut(each.text, _MAX_WORDS) for each in reports] + ([sidecar] if kind is StopKind.SIDECAR else [])
    text = "; ".join(dict.fromkeys(filter(None, texts)))
    if kind is StopKind.CANCELLED and (intent is None or intent.kind is not IntentKind.CANCEL):
        text = f"{STOPPED_FROM_OUTSIDE}: {text}".rstrip(": ")
    error = next((_cut(each.error, _MAX_WORDS) for each in reports if each.error), "")
    return Stop(
        kind, at, observation.stop_code, _cut(text, _MAX_REASON), exit_code, error, was_refused=facts.start_is_refused
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def ended_at(observation: TaskObservation, now: datetime) -> datetime:
    """Return when the containers of a stopped task had ended, `now` if the target does not tell it."""
    return observation.containers_ended_at or observation.stopped_at or now


def _kind(facts: _Facts, intent: StopIntent | None) -> StopKind:
    skew = CLOCK_SKEW if facts.tells(ReportedCause.STOP_CALLED) else timedelta()
    is_for_peers = BY_RELAUNCH in facts.stop_text and not facts.tells(ReportedCause.INTERRUPTED)
    if intent is not None and intent.kind is IntentKind.RANK_ENDED and not is_for_peers:
        # The rank that decides ended before the others were stopped for it, or was stopped for a warning.
        intent = None
    if intent is not None and intent.at <= facts.at + skew:
        # It would not start on the machine that the job goes on to either.
        is_known = facts.starts_nowhere and intent.kind not in _FINAL_INTENTS
        return StopKind.STARTS_NOWHERE if is_known else _BY_INTENT[intent.kind]
    kind = next((decide(facts) for applies, decide in _RULES if applies(facts)), StopKind.UNKNOWN)
    kind = StopKind.NOT_STARTED if facts.is_in_vain and kind in _OF_A_PROGRAM else kind
    if intent is not None and intent.kind in _APPLIES_EXCEPT and kind not in _APPLIES_EXCEPT[intent.kind]:
        return _BY_INTENT[intent.kind]
    return kind


def exit_code_of(observation: TaskObservation, container: str | None) -> int | None:
    """Return the exit code of a container; of all: one that is not 0 before a missing one. None: it is not known."""
    if container is not None:
        found = observation.containers.get(container)
        return found.exit_code if found else None
    codes = tuple(each.exit_code for each in observation.containers.values())
    failed = next((code for code in codes if code), None)
    if failed is not None:
        return failed
    return 0 if codes and None not in codes else None


def _dependency_exit_code(observation: TaskObservation) -> int | None:
    """Return the exit code of the container that others wait for, which have a code of the agent's own."""
    codes = (
        each.exit_code
        for each in observation.containers.values()
        if ReportedCause.DEPENDENCY_FAILED not in each.report.causes
    )
    return next((code for code in codes if code), None)


def _relevant_reports(observation: TaskObservation, container: str | None, exit_code: int | None) -> list[StopReport]:
    """Return the reports of the task, of the container, and of others if one of them can have ended the task.

    The report of another container does not explain a container that exited by itself.
    """
    others_count = container is None or exit_code in {None, EXIT_SIGTERM, EXIT_SIGKILL}
    containers = observation.containers.items()
    return [observation.report, *(each.report for name, each in containers if name == container or others_count)]


def find_first_ended(observation: TaskObservation, container: str | None, essential: frozenset[str]) -> str:
    """Return the essential container for whose end the target stops a task, while others still run; empty if unknown.

    The agent reports the end of a container with that of its task, or else after up to 20 seconds
    (aws/amazon-ecs-agent, agent/eventhandler/task_handler.go): where the containers of a task end together, no
    observation tells their order.
    """
    is_ended = observation.phase is TaskPhase.STOPPING and ReportedCause.ENDED in observation.report.causes
    if container is None or not is_ended:
        return ""
    essential = essential or frozenset(observation.containers)
    ended = sorted(name for name, each in observation.containers.items() if each.has_ended and name in essential)
    return ", ".join(ended) if ended == [container] or container not in ended else ""


def _describe_sidecar(
    observation: TaskObservation,
    container: str | None,
    exit_code: int | None,
    ended_first: str,
    essential: frozenset[str],
) -> str:
    """Return which essential container beside the main one ended the task, or may have; empty if none did."""
    if container is None or ended_first == container:
        return ""
    others = {name: each for name, each in observation.containers.items() if name != container}
    if ended_first:
        named = (_with_end(name, others[name]) for name in ended_first.split(", ") if name in others)
        return f"{', '.join(named) or ended_first} ended before {container} did"
    failed = [_with_end(name, each) for name, each in others.items() if name in essential and _is_error(each)]
    # A program that ignores SIGTERM is killed after its stop time-out; the agent has reported the other one by then.
    if not failed or exit_code not in {None, *_EXITS_BY_STOP} - {EXIT_SIGKILL}:
        return ""
    # Nothing tells the order. Hardly any program sends itself a SIGTERM; and a training that exits with 0 loses less by
    # being relaunched from its checkpoint than by being taken for finished.
    return (
        f"{', '.join(failed)} ended with an error, and nothing tells whether before {container}: "
        "let it exit with 0 on SIGTERM, or make it not essential"
    )


def _is_error(container: ContainerObservation) -> bool:
    """Return whether a container ended otherwise than by the stop of its task."""
    code = container.exit_code
    return code is not None and (code not in _EXITS_BY_STOP or ReportedCause.OUT_OF_MEMORY in container.report.causes)


def _with_end(name: str, container: ContainerObservation) -> str:
    facts = [
        *([] if container.exit_code is None else [f"exit code {container.exit_code}"]),
        *([container.report.text] if container.report.text else []),
    ]
    return f"{name} ({'; '.join(facts)})" if facts else name
