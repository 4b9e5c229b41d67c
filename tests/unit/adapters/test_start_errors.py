"""Every error of the Amazon ECS agent that keeps a task from starting is known, and what the next start comes to."""

import pytest

from relaunch.adapters.aws.ecs.stop_reports import report_of_container
from relaunch.adapters.start_errors import NAMES, meaning_of
from relaunch.core.launches.launch import ReportedCause as C
from unit.adapters import agent_errors

SAID = [
    pytest.param(text, meaning, id=text[:60])
    for texts in (agent_errors.TEXTS, agent_errors.FOREIGN)
    for meaning, of_meaning in texts.items()
    for text in of_meaning
]


def test_every_error_name_of_the_agent_is_in_the_table() -> None:
    assert set(agent_errors.NAMES) - agent_errors.NO_START_ERRORS <= set(NAMES)


@pytest.mark.parametrize("name", sorted(set(agent_errors.NAMES) - agent_errors.NO_START_ERRORS))
def test_every_error_name_of_the_agent_tells_of_an_error_of_a_start(name: str) -> None:
    assert C.START_ERROR in report_of_container(f"{name}: something new").causes


@pytest.mark.parametrize(("text", "meaning"), SAID)
def test_what_the_agent_says_tells_what_the_next_start_comes_to(text: str, meaning: C) -> None:
    assert meaning_of(text) is meaning
    assert meaning in report_of_container(text).causes


@pytest.mark.parametrize("text", agent_errors.UNKNOWN)
def test_what_is_in_no_table_is_not_known(text: str) -> None:
    assert meaning_of(text) is None


@pytest.mark.parametrize("name", [name for name, meaning in NAMES.items() if meaning is not None])
def test_an_error_name_that_says_enough_needs_no_text(name: str) -> None:
    assert meaning_of(f"{name}: something new") is NAMES[name]


@pytest.mark.parametrize(
    "condition",
    ["as dependency did not exit successfully.", "has timed out.", "because dependency will never start"],
)
def test_a_container_that_waits_for_another_one_in_vain_says_so(condition: str) -> None:
    reason = (
        "CannotStartContainerError: dependency graph: failed to resolve container ordering dependency [{init SUCCESS}] "
        f"for target [main] {condition}"
    )
    assert {C.DEPENDENCY_FAILED, C.START_ERROR} <= report_of_container(reason).causes


@pytest.mark.parametrize(
    ("text", "is_fault"),
    [
        ("NVRM: Xid (PCI:0000:00:1e): 79, GPU has fallen off the bus.", True),
        ("RuntimeError: Xid 48", True),
        ("Xid 31, and then Xid 79", True),
        ("NVRM: Xid (PCI:0000:00:1e): 31, MMU Fault", False),
        ("Xid: 13", False),
        ("oxide", False),
    ],
)
def test_an_xid_is_a_fault_of_the_gpu_unless_it_is_one_of_the_program(text: str, is_fault: bool) -> None:
    assert (C.GPU_FAULT in report_of_container(text).causes) is is_fault
