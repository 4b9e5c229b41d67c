"""The causes that stop codes and reasons report; tests/unit/core/lifecycle/test_stop_reason.py has whole stops."""

import pytest

from relaunch.adapters.aws.ecs.stop_reports import StopCode, report_of_container, report_of_task
from relaunch.core.launches.launch import ReportedCause as C
from relaunch.core.launches.launch import StopReport


@pytest.mark.parametrize(
    ("stop_code", "cause"),
    [
        ("", C.ENDED),
        ("TaskFailedToStart", C.NOT_STARTED),
        ("EssentialContainerExited", C.ENDED),
        ("UserInitiated", C.STOP_CALLED),
        ("ServiceSchedulerInitiated", C.STOP_SCHEDULED),
        ("SpotInterruption", C.INTERRUPTED),
        ("TerminationNotice", C.NODE_LOST),
        ("InfrastructureHealth", C.NODE_LOST),
    ],
)
def test_every_stop_code_reports_one_cause(stop_code: str, cause: C) -> None:
    assert report_of_task(stop_code, "") == StopReport(causes=frozenset({cause}))


def test_no_stop_code_is_left_out() -> None:
    assert all(report_of_task(code, "").causes for code in StopCode)


def test_a_stop_code_that_is_not_documented_reports_nothing() -> None:
    assert report_of_task("SolarFlare", "") == StopReport()


@pytest.mark.parametrize(
    ("reason", "causes", "error"),
    [
        pytest.param("", set(), "", id="nothing"),
        pytest.param("Essential container in task exited", set(), "", id="nothing that is not in the stop code"),
        pytest.param("TaskFailedToStart: RESOURCE:GPU", {C.NOT_STARTED, C.NO_CAPACITY}, "", id="no room"),
        pytest.param("Host EC2 (instance i-0a1) stopped.", {C.NODE_LOST}, "", id="the host"),
        pytest.param("Your Spot Task was interrupted.", {C.INTERRUPTED}, "", id="spot"),
        pytest.param(
            "CannotPullContainerError: pull access denied",
            {C.IMAGE, C.START_ERROR, C.STARTS_NOWHERE},
            "CannotPullContainerError",
            id="an image that nobody may pull",
        ),
        pytest.param(
            "CannotPullContainerError: i/o timeout",
            {C.IMAGE, C.START_ERROR, C.UNREACHABLE},
            "CannotPullContainerError",
            id="a pull",
        ),
        pytest.param(
            "OutOfMemoryError: Container killed", {C.OUT_OF_MEMORY}, "OutOfMemoryError", id="memory has an error's name"
        ),
    ],
)
def test_a_reason_reports_all_the_causes_it_tells_of(reason: str, causes: set[C], error: str) -> None:
    assert report_of_container(reason) == StopReport(reason, frozenset(causes), error)
