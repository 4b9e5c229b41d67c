from itertools import count

from rich.text import Text

from relaunch_local.demo.recording import RecordingConsole


def test_what_is_printed_is_remembered_with_its_time_and_its_styles():
    console = RecordingConsole(20, clock=count(5).__next__)

    console.print(Text("a spot warning", style="bold yellow"))
    console.print("two\nlines")

    first, second = console.printed
    assert (first.at, second.at) == (5, 6)
    assert [line.plain for line in second.lines] == ["two", "lines"]
    (line,) = first.lines
    assert line.plain == "a spot warning"
    assert "bold" in str(line.spans[0].style)


def test_nothing_moves_on_it_and_lines_are_as_long_as_it_is_wide():
    console = RecordingConsole(10)

    console.print("a line of more than ten columns")

    assert not console.is_terminal
    assert max(len(line.plain) for line in console.printed[0].lines) <= 10
