"""The texts of the simulated errors mean what the application takes them for."""

import pytest

from relaunch.adapters.start_errors import meaning_of, tells_gpu_fault
from relaunch.core.launches.launch import ReportedCause
from relaunch_local.simulation.checks.failed_tasks import Cause
from relaunch_local.simulation.faults.failed_tasks import TEXTS

MEANINGS = {
    Cause.EVERYWHERE: ReportedCause.STARTS_NOWHERE,
    Cause.MACHINE: ReportedCause.NODE_FAULT,
    Cause.TRANSIENT: ReportedCause.UNREACHABLE,
    Cause.UNKNOWN: None,
}


@pytest.mark.parametrize(("cause", "text"), [(cause, text) for cause in MEANINGS for text in TEXTS[cause]])
def test_an_error_of_a_start_means_what_it_stands_for(cause: Cause, text: str) -> None:
    assert meaning_of(text) is MEANINGS[cause]


@pytest.mark.parametrize("text", TEXTS[Cause.XID])
def test_an_xid_is_one_of_a_gpu(text: str) -> None:
    assert tells_gpu_fault(text)


def test_every_cause_has_words() -> None:
    assert set(TEXTS) == set(Cause)
