from relaunch.core.machines.events import MachineDue, MachineEvent
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.table import TABLE
from relaunch_local.pages.transitions import diagram, events_section, section, transitions_section, words


def test_a_diagram_has_an_arrow_for_each_change_of_state_and_none_for_what_stays():
    lines = list(diagram(MachineState, TABLE, ("REQUESTED: claimed",), ("GONE",)))

    assert lines[2] == "  [*] --> REQUESTED: claimed"
    assert lines[-2] == "  GONE --> [*]"
    assert "  STARTING --> READY: node seen" in lines
    assert not [line for line in lines if " --> " in line and len({*line.partition(":")[0].split(" --> ")}) == 1]


def test_a_row_without_a_change_of_state_stays():
    rows = list(transitions_section(MachineState, TABLE))

    assert any(row.endswith(" | stays |") for row in rows)
    assert any(" | always | " in row for row in rows)


def test_events_are_named_in_words_and_say_what_they_say():
    assert words(MachineDue) == "machine due"
    assert "| machine due | The `wake_at` of the machine is reached. |" in list(events_section(MachineEvent))


def test_a_section_is_one_table():
    assert list(section("A", ("b", "c"), [("1", "2")])) == ["## A\n", "| b | c |", "|---|---|", "| 1 | 2 |", ""]
