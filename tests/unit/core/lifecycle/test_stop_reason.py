from datetime import timedelta

import pytest

from fakes.builders import make_observation, make_running_attempt
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.lifecycle.stop_reason import classify_stop, find_first_ended
from unit.core.lifecycle.failed_start_cases import FAILED_START_CASES
from unit.core.lifecycle.stop_cases import EXITED, EXITED_REASON, NOW, STOP_CASES, STOPPED_AT, Case, K, classify

CASES = {**STOP_CASES, **FAILED_START_CASES}


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


def test_words_without_end_are_cut_and_what_others_say_is_kept() -> None:
    said = {"main": "x" * 4_000, "log": "the log is full", **{f"more-{number}": f"{number}" * 900 for number in "12"}}
    case = Case(K.USER_ERROR, EXITED, EXITED_REASON, dict.fromkeys(said), said)

    reason = classify(case).stopped_reason

    assert reason.startswith(f"{EXITED_REASON}; {'x' * 999}…; the log is full; 111")
    assert len(reason) == 2_000


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


@pytest.mark.parametrize(
    ("target", "minutes", "code", "expected"),
    [
        (Target.ECS, 2, 1, K.USER_ERROR),
        (Target.ECS, 5, 143, K.USER_ERROR),
        (Target.ACS, 5, 1, K.INTERRUPTION),
        (Target.ACS, 10, 137, K.INTERRUPTION),
        (Target.ACS, 11, 137, K.USER_ERROR),
        (Target.ACK, 2, None, K.INTERRUPTION),
    ],
)
def test_each_target_has_its_window_and_a_pod_exits_with_any_code(target, minutes, code, expected) -> None:
    attempt = make_running_attempt(warned_at=STOPPED_AT - timedelta(minutes=minutes))
    stopped = make_observation(
        "STOPPED", stop_code=EXITED, stopped_reason=EXITED_REASON, stopped_at=STOPPED_AT,
        container_exit_codes={"main": code},
    )  # fmt: skip

    assert classify_stop(stopped, "main", attempt, NOW, target=target).kind is expected
