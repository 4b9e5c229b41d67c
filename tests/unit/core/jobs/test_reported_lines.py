"""The lines that a training prints, among whatever else is in a log."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.jobs.reported_lines import ReportedStep, read_line, read_lines

SECOND = timedelta(seconds=1)


def test_a_line_says_how_far_a_training_is():
    line = "relaunch: step=120 of=200 loss=0.00810423 lr=1e-05 tokens=12345678 eval/f1=-0.5 save_seconds=3.412\n"

    said = read_line(line, NOW)

    metrics = {"lr": 1e-05, "tokens": 12_345_678.0, "eval/f1": -0.5}
    assert said == ReportedStep(120, NOW, 200, 0.00810423, metrics)
    assert read_line("relaunch: step=4", NOW) == ReportedStep(4, NOW)


@pytest.mark.parametrize(
    "line",
    [
        "step=1",
        " relaunch: step=1",
        "relaunch: of=2 step=1",
        "relaunch: step=",
        "relaunch: step=1.5",
        "relaunch: step=-1",
        "relaunch: step=٣",
        "relaunch: step=" + "9" * 41,
        "relaunch: step=" + "9" * 19,
        "relaunch: step=1  of=2",
        "relaunch: step=3 of=2",
        "relaunch: step=1 of=" + "9" * 30,
        "relaunch: step=1 loss=nan",
        "relaunch: step=1 loss=1 loss=2",
        "relaunch: step=1 \x1b[2J=2",
        "relaunch: step=1 lr=1e400",
        "relaunch: step=1 " + " ".join(f"m{number}=1" for number in range(50)),
        "relaunch: step=1 " + "a" * 4_000,
    ],
    ids=lambda line: ascii(line[:40]),
)
def test_a_line_of_another_form_says_nothing(line):
    assert read_line(line, NOW) is None


def test_lines_out_of_order_and_those_of_others_are_left_out():
    lines = [(NOW, "relaunch: step=10 of=50"), (NOW + 2 * SECOND, "Epoch 1"), (NOW + 3 * SECOND, "relaunch: step=30")]
    late = [(NOW + 4 * SECOND, "relaunch: step=20"), (NOW + SECOND, "relaunch: step=40")]

    assert [each.step for each in read_lines([*lines, *late])] == [10, 30]
