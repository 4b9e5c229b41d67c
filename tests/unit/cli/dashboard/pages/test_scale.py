import pytest

from relaunch_cli.dashboard.pages.scale import Scale


@pytest.mark.parametrize(
    ("most", "labels"),
    [
        (0.0, ["$0"]),
        (1.0, ["$0.00", "$0.25", "$0.50", "$0.75", "$1.00"]),
        (0.03, ["$0.00", "$0.01", "$0.02", "$0.03"]),
        (0.1, ["$0.000", "$0.025", "$0.050", "$0.075", "$0.100"]),
        (0.006, ["$0.000", "$0.002", "$0.004", "$0.006"]),
        (265.0, ["$0", "$100", "$200"]),
        (4_000.0, ["$0", "$1,000", "$2,000", "$3,000", "$4,000"]),
    ],
)
def test_lines_of_a_drawing_are_at_round_amounts(most, labels):
    assert [line.label for line in Scale(most).lines] == labels
