import re
from xml.etree import ElementTree

import pytest
from rich.text import Text

from relaunch_local.demo.picture import (
    END_SECONDS,
    LINE_HEIGHT,
    LINE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    ROWS,
    ShownLine,
    draw,
    pace,
)
from relaunch_local.demo.recording import Printed

SVG = "{http://www.w3.org/2000/svg}"


def printed(at: float, *lines: str) -> Printed:
    return Printed(at, tuple(Text(line) for line in lines))


def drawn(*lines: str) -> str:
    shown = [ShownLine(float(second), Text(line)) for second, line in enumerate(lines)]
    return draw(shown, 80, "make demo", "a <story>")


def test_long_waits_are_cut_and_lines_of_one_print_come_one_after_the_other():
    shown = pace([printed(10.0, "a", "b"), printed(10.5, "c"), printed(90.0, "d")])

    times = [line.at for line in shown]
    assert times == pytest.approx([0.0, LINE_SECONDS, 0.5, 0.5 + LONGEST_PAUSE_SECONDS])


def test_a_line_never_comes_before_the_one_above_it():
    shown = pace([printed(0.0, *"abcdefgh"), printed(0.1, "i")])

    assert [line.text.plain for line in shown] == [*"abcdefgh", "i"]
    assert shown[-1].at > shown[-2].at


def test_nothing_printed_is_an_empty_picture():
    assert pace([]) == []
    assert ElementTree.fromstring(draw([], 80, "make demo", "")) is not None  # noqa: S314 - it is our own


def test_the_picture_is_a_document_that_says_what_it_is_and_has_no_script():
    root = ElementTree.fromstring(drawn("a & b", "<c>"))  # noqa: S314 - it is our own

    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "make demo"
    assert root.findtext(f"{SVG}desc") == "a <story>"
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        *("svg", "title", "desc", "style", "rect", "circle", "text", "g"),
    }
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert texts == ["make demo", "a & b", "<c>"]


def test_words_that_are_apart_are_put_at_their_columns():
    root = ElementTree.fromstring(drawn("JOB    STATE"))  # noqa: S314 - it is our own

    job, state = list(root.iter(f"{SVG}text"))[1:]
    assert (job.text, state.text) == ("JOB", "STATE")
    assert float(state.attrib["x"]) == pytest.approx(7 * 8.4)


def test_styles_are_kept():
    picture = draw([ShownLine(0.0, Text().append("gone", style="bold red"))], 80, "t", "d")

    assert re.search(r'fill="#[0-9a-f]{6}" font-weight="bold">gone<', picture)
    assert 'opacity="0.6"' in draw([ShownLine(0.0, Text().append("note", style="dim"))], 80, "t", "d")


def test_more_lines_than_rows_scroll_away_and_begin_anew():
    picture = drawn(*(f"line {number}" for number in range(ROWS + 2)))

    assert f".lines{{transform:translateY(-{2 * LINE_HEIGHT}px)}}" in picture
    assert f"animation:scroll {ROWS + 1 + END_SECONDS:.1f}s step-end infinite" in picture
    assert picture.count("{transform:translateY(-19px)}") == 2  # once scrolled by a line, once a line still covered


def test_it_moves_only_where_motion_is_wanted():
    picture = drawn("a", "b")

    assert picture.index("prefers-reduced-motion:no-preference") < picture.index("animation:scroll")
    # Else nothing is covered, and the last screen is seen.
    assert 'class="rest" y="38"' in picture
