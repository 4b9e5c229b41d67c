"""Tables on terminals of any width, and in pipes."""

from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from relaunch_cli.views.table import PlainTable, key_values

ARN = "arn:aws:ecs:eu-central-1:111122223333:task/relaunch/d24bace4307bf3262f1205544a5308cc"


def shown(table: PlainTable, width: int = 0) -> list[str]:
    """Return the lines of a table on a terminal of this width, in a pipe without one."""
    console = Console(file=StringIO(), width=width or 40, color_system=None)
    console.print(table, crop=False, soft_wrap=not width)
    return console.file.getvalue().splitlines()


def jobs(reason: str = "it waits for a slot of its definition", **layout) -> PlainTable:
    table = PlainTable("JOB", "COST", "ZONE", "REASON", right=("COST",), **layout)
    table.add_row("resnet-fuptdcp3wlfn", "$1.20", "us-east-1a", reason)
    table.add_row("b-1", Text("$12.00"), "-", "")
    return table


def test_a_wide_terminal_shows_everything_in_columns():
    assert shown(jobs(prose="wrapped"), 100) == [
        "JOB                    COST  ZONE        REASON",
        "resnet-fuptdcp3wlfn   $1.20  us-east-1a  it waits for a slot of its definition",
        "b-1                  $12.00  -",
    ]


def test_prose_is_wrapped_at_words_below_where_it_begins():
    assert shown(jobs(prose="wrapped"), 70)[1:3] == [
        "resnet-fuptdcp3wlfn   $1.20  us-east-1a  it waits for a slot of its",
        "                                         definition",
    ]


def test_a_narrow_terminal_leaves_out_columns_in_their_order():
    table = jobs(optional=("ZONE", "COST"), prose="wrapped")

    assert shown(table, 54)[:2] == [
        "JOB                    COST  REASON",
        "resnet-fuptdcp3wlfn   $1.20  it waits for a slot of",
    ]
    assert shown(table, 46)[1] == "resnet-fuptdcp3wlfn  it waits for a slot of"


def test_prose_without_room_is_put_below_its_record():
    assert shown(jobs(optional=("ZONE", "COST"), prose="wrapped"), 30)[2:] == [
        "resnet-fuptdcp3wlfn",
        "    it waits for a slot of its",
        "    definition",
        "b-1",
    ]


def test_brief_prose_is_cut_to_the_line_or_left_out():
    table = jobs(optional=("REASON", "ZONE"), prose="cut")

    assert shown(table, 70)[1] == "resnet-fuptdcp3wlfn   $1.20  us-east-1a  it waits for a slot of its d…"
    assert shown(table, 60)[0].split() == ["JOB", "COST", "ZONE"]


def test_a_column_that_is_too_wide_does_not_take_narrower_ones_with_it():
    table = PlainTable("JOB", "STARTED BY", "REASON", optional=("REASON", "STARTED BY"), prose="cut")
    table.add_row("resnet-fuptdcp3wlfn", f"image trainer:{40 * 'a'} pushed", "exit code 1")

    assert shown(table, 50) == ["JOB                  REASON", "resnet-fuptdcp3wlfn  exit code 1"]


def test_what_is_never_left_out_is_never_cut_either():
    assert shown(jobs(optional=("REASON", "ZONE", "COST"), prose="cut"), 10)[1] == "resnet-fuptdcp3wlfn"


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_words_that_people_copy_are_whole_at_any_width(width):
    assert any(ARN in line for line in shown(jobs(f"the task {ARN} is gone", prose="wrapped"), width))


def test_in_a_pipe_every_record_is_one_line_with_all_columns():
    table = jobs(f"{ARN}\nis gone", optional=("ZONE", "COST"), prose="cut")

    lines = shown(table)

    assert lines[0].split() == ["JOB", "COST", "ZONE", "REASON"]
    assert lines[1].endswith(f"  {ARN}; is gone")
    assert len(lines) == 3


def test_values_are_shown_beside_their_names():
    table = key_values()
    table.add_row("Waits for", "the training to finish")
    table.add_row("Next", "it ends")

    assert shown(table, 24) == ["Waits for", "    the training to", "    finish", "Next", "    it ends"]
    assert shown(table, 60) == ["Waits for  the training to finish", "Next       it ends"]


def test_cells_are_as_wide_as_a_terminal_shows_them():
    table = PlainTable("NAME", "COUNT")
    table.add_row("学習", "1")
    table.add_row("b", "2")

    assert shown(table, 40)[1:] == ["学習  1", "b     2"]


def test_a_table_may_have_no_rows():
    assert shown(PlainTable("NAME", "REASON", prose="wrapped"), 80) == ["NAME  REASON"]
