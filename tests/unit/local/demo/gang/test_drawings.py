"""The tables of several machines, in 80 columns."""

from io import StringIO

from rich.console import Console, RenderableType

from relaunch_local.demo.gang.drawings import draw_comparison, draw_ends, draw_machines
from relaunch_local.demo.outcome import RankResult


def lines_of(what: RenderableType) -> list[str]:
    console = Console(file=StringIO(), width=76, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(what)
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def test_machines_are_in_the_order_of_the_ranks() -> None:
    instances = [
        {"InstanceId": f"i-{n}", "InstanceType": "g5", "Placement": {"AvailabilityZone": "a"}, "PrivateIpAddress": n}
        for n in ("127.16.0.5", "127.16.0.4")
    ]

    assert lines_of(draw_machines(instances))[1:] == [
        "0 i-127.16.0.5 g5 a 127.16.0.5",
        "1 i-127.16.0.4 g5 a 127.16.0.4",
    ]


def test_the_machine_that_was_warned_is_marked_and_a_lost_task_has_no_exit_code() -> None:
    assert lines_of(draw_ends([1, None], 1, 70))[1:] == ["0 is not warned saved step 70 1", "1 warned saved step 70"]


def test_every_bit_of_both_trainings_is_shown() -> None:
    one = RankResult(0, "0x1.018a280000000p-2", "1fc29733ad3ee3c6aaaa")
    shown = lines_of(draw_comparison([one], [one], 70))

    assert shown[1:] == [
        "interrupted at 70 0 0x1.018a280000000p-2 1fc29733ad3ee3c6…",
        "never interrupted 0 0x1.018a280000000p-2 1fc29733ad3ee3c6…",
    ]
