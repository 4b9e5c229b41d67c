"""Which of the containers of a task is the job's."""

from relaunch.core.definitions.containers import main_of


def test_the_named_container_counts_else_the_only_one():
    assert main_of("train", ["proxy", "other"]) == "train"
    assert main_of(None, ["train"]) == "train"
    assert main_of(None, ["train", "proxy"]) is None
