"""A training over three machines with what stands for torchrun: interrupted, it ends with the same bits of the loss."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from functional.examples.attempts import EXAMPLES
from functional.examples.gangs import Gang, Machine
from functional.examples.saving import steps_in
from relaunch_local.ecs.processes import torchrun
from relaunch_training import find_complete

PROGRAM = str(Path(__file__).parent / "programs" / "gang_training.py")


def gang_in(folder: Path) -> Gang:
    gang = Gang(folder, [sys.executable, torchrun.__file__, PROGRAM])
    gang.environment["PYTHONPATH"] = f"{EXAMPLES}:{Path(torchrun.__file__).parent}"
    return gang


@pytest.fixture(name="gang")
def _gang(tmp_path: Path) -> Iterator[Gang]:
    yield (gang := gang_in(tmp_path))
    gang.close()


@pytest.fixture(name="whole", scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The losses at the end of a training that nobody interrupts."""
    gang = gang_in(tmp_path_factory.mktemp("whole"))
    yield losses_of(gang.start())
    gang.close()


def losses_of(machines: list[Machine]) -> list[str]:
    assert [each.end() for each in machines] == [0, 0, 0], [each.text for each in machines]
    return [re.findall("finished with loss (.*)", each.text)[0] for each in machines]


def stop_one(machines: list[Machine]) -> list[int]:
    machines[2].stop()
    codes = [machines[2].end()]
    # All workers have saved and ended; the agents of the others wait for the one that has gone, until they are stopped.
    for machine in machines[:2]:
        machine.stop()
    return codes + [each.end() for each in machines[:2]]


def lose_one(machines: list[Machine]) -> list[int]:
    machines[2].lose()
    return [each.end() for each in machines[:2]]


@pytest.mark.parametrize(
    ("interrupt", "codes", "step"), [(stop_one, [1, 1, 1], 50), (lose_one, [1, 1], 40)], ids=["stopped", "lost"]
)
def test_an_interrupted_gang_ends_with_the_loss_of_one_that_was_not(
    gang: Gang,
    whole: list[str],
    tmp_path: Path,
    interrupt: Callable[[list[Machine]], list[int]],
    codes: list[int],
    step: int,
) -> None:
    gang.environment["HOLD_AT_STEP"] = "50"
    machines = gang.start()
    for machine in machines:
        machine.wait_for("held")
    assert interrupt(machines) == codes
    assert steps_in(tmp_path)[0] == (step, 1)
    del gang.environment["HOLD_AT_STEP"]
    resumed = gang.start(2, next(find_complete(f"file://{tmp_path}/job-1")))

    assert losses_of(resumed) == whole
    assert len(set(whole)) == 1
    assert [f"resumed at step {step}\n" in each.text for each in resumed] == [True] * 3


def test_all_gpus_of_all_machines_train(gang: Gang, tmp_path: Path) -> None:
    gang.gpus = 2
    machines = gang.start()

    assert [each.end() for each in machines] == [0, 0, 0], [each.text for each in machines]
    losses = [re.findall("finished with loss (0x.*?p-?[0-9]+)", each.text) for each in machines]
    assert [len(each) for each in losses] == [2, 2, 2]
    assert len({loss for each in losses for loss in each}) == 1
    assert steps_in(tmp_path)[0] == (60, 1)
