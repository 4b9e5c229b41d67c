"""What each rank runs, and who listens where."""

import socket
from pathlib import Path

import pytest

from relaunch_local.demo.gang import training
from relaunch_local.demo.gang.training import TRAINING, NoRanksError, listening, require_ranks, task_definition


def test_who_listens_at_an_address_of_its_own_is_found_and_who_listens_everywhere_is_not() -> None:
    with socket.create_server(("127.77.0.4", 0)) as one, socket.create_server(("", 0)):
        found = listening(["127.77.0.4", "127.77.0.5"])

        assert found == {"127.77.0.4": one.getsockname()[1]}


def test_a_connection_is_nobody_who_listens(tmp_path: Path) -> None:
    file = tmp_path / "tcp"
    file.write_text("  sl  local_address rem_address   st\n   0: 0400107F:7148 0100007F:9C40 01 0\n")

    assert listening(["127.16.0.4"], file) == {}


def test_the_task_definition_is_that_of_the_example_but_for_what_the_demo_adds() -> None:
    (container,) = task_definition(TRAINING)["containerDefinitions"]
    torchrun, *programs, steps_option, steps = container["command"]

    assert torchrun == "torchrun"
    assert programs.pop() == "ddp/train.py"
    assert all(Path(each).is_file() for each in programs)
    assert (steps_option, steps) == ("--steps", str(TRAINING.steps))
    assert {"name": "HOLD_AT_STEP", "value": str(TRAINING.hold_at_step)} in container["environment"]
    assert container["linuxParameters"] == {"initProcessEnabled": True, "sharedMemorySize": 4096}


@pytest.mark.parametrize(
    ("platform", "found", "problem"), [("darwin", object(), "which Linux alone has"), ("linux", None, "runs PyTorch")]
)
def test_where_ranks_cannot_run_it_is_said_why(
    monkeypatch: pytest.MonkeyPatch, platform: str, found: object, problem: str
) -> None:
    monkeypatch.setattr(training.sys, "platform", platform)
    monkeypatch.setattr(training, "find_spec", lambda _name: found)

    with pytest.raises(NoRanksError, match=problem):
        require_ranks()
