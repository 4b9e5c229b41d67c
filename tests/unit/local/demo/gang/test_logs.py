"""What a rank ends with."""

from relaunch_local.demo.gang.logs import find_result
from relaunch_local.demo.outcome import RankResult


def test_the_result_of_a_rank_is_its_last_line_and_not_what_resembles_it() -> None:
    lines = [
        "it finished with loss 1 and weights 2",
        "resumed at step 70",
        "finished with loss 0x1.8p-2 and weights 1fc2",
    ]

    assert find_result(2, lines) == RankResult(2, "0x1.8p-2", "1fc2")
    assert find_result(2, lines[:2]) is None
