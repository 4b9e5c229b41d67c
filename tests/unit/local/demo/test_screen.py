import io

from rich.console import Console
from rich.text import Text

from relaunch_cli.views.table import PlainTable
from relaunch_local.demo.screen import Screen


def make_screen(width: int = 40, *, seconds: float = 0.0, **members: bool) -> tuple[Screen, io.StringIO]:
    """Return a screen, on which this time has passed, and where it prints."""
    out, moments = io.StringIO(), iter([0.0, seconds, seconds, seconds])
    return Screen(Console(file=out, width=width, **members), clock=lambda: next(moments)), out


class TestScreen:
    def test_lines_carry_the_time_since_the_start_and_fold_right_of_it(self) -> None:
        screen, out = make_screen(30, seconds=12.34)
        screen.line("the newest ACTIVE revision is pinned")

        assert [line.rstrip() for line in out.getvalue().splitlines()] == [
            "   12.3s the newest ACTIVE",
            "         revision is pinned",
        ]

    def test_a_value_that_is_longer_than_a_line_is_whole(self) -> None:
        uri = "s3://relaunch-checkpoints/demo/demo-psgnbiubif3b/attempt-1/step-66"
        table = PlainTable("STATE", "EVENT", prose="wrapped")
        table.add_row("RUNNING", f"resuming from {uri} of attempt 1")
        screen, out = make_screen()
        screen.show(table)

        lines = out.getvalue().splitlines()
        assert uri in " ".join(out.getvalue().split())
        assert all(line.startswith("    ") for line in lines)

    def test_markup_in_what_others_wrote_is_text(self) -> None:
        screen, out = make_screen()
        screen.line("push by [bold]me[/bold]")

        assert "[bold]me[/bold]" in out.getvalue()

    def test_without_a_terminal_nothing_moves(self) -> None:
        screen, out = make_screen()
        with screen.status_line("waiting") as change:
            change(Text("still waiting"))

        assert not screen.is_live
        assert out.getvalue() == ""

    def test_on_a_terminal_what_moves_is_gone_afterwards(self) -> None:
        screen, out = make_screen(force_terminal=True)
        with screen.status_line("waiting") as change:
            change("still waiting")
        cleared = "\x1b[2K"

        assert screen.is_live
        assert "still waiting" in out.getvalue()
        assert out.getvalue().rindex(cleared) > out.getvalue().rindex("still waiting")

    def test_chapters_are_numbered(self) -> None:
        screen, out = make_screen()
        screen.heading("A push")
        screen.heading("An upload")

        assert out.getvalue() == "\n 1  A push\n\n 2  An upload\n"
