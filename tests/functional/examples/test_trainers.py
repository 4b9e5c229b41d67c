"""The callbacks for Hugging Face's Trainer and PyTorch Lightning, with the real libraries on CPU."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from functional.examples.attempts import EXAMPLES
from functional.examples.saving import steps_in

pytestmark = [pytest.mark.trainers]
PROGRAMS = Path(__file__).parent / "programs"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
ENDED = re.compile(r"^ended at ([0-9]+) with ([0-9a-f]{64})$", re.MULTILINE)


def train(library: str, folder: Path, *, attempt: int = 0, launcher: list[str] | None = None, **more: str) -> str:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(EXAMPLES), "HF_HUB_OFFLINE": "1", **more}
    if attempt:
        environment["RELAUNCH_CHECKPOINT_URI"] = f"file://{folder}/job-1/attempt-{attempt}/"
        environment["RELAUNCH_ATTEMPT"] = str(attempt)
    command = [sys.executable, *(launcher or []), str(PROGRAMS / f"{library}_training.py"), str(folder / f"{attempt}")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize("library", ["transformers", "lightning"])
def test_a_training_interrupted_in_a_step_ends_with_the_weights_of_one_that_was_not(
    tmp_path: Path, library: str
) -> None:
    whole = train(library, tmp_path)
    interrupted = train(library, tmp_path, attempt=1, STOP_IN="7")
    saved = steps_in(tmp_path)
    resumed = train(library, tmp_path, attempt=2)

    assert saved == [(7, 1), (4, 1)]
    assert ENDED.findall(interrupted)[0][0] == "7"
    assert re.search(r"^relaunch: step=7 of=12 loss=[0-9.]+ .*save_seconds=[0-9.e-]+$", interrupted, re.MULTILINE)
    assert steps_in(tmp_path) == [(12, 2), (8, 2), *saved]
    assert ENDED.findall(resumed) == ENDED.findall(whole)
    assert ENDED.findall(whole)[0][0] == "12"
    assert ["published" in each for each in (whole, interrupted, resumed)] == [True, False, True]


def test_the_best_checkpoint_of_an_earlier_machine_is_loaded_at_the_end(tmp_path: Path) -> None:
    whole = train("transformers", tmp_path, BEST="1")
    # The third step after the seventh.
    for attempt, step in ((1, "7"), (2, "3")):
        train("transformers", tmp_path, attempt=attempt, STOP_IN=step, BEST="1")
        shutil.rmtree(tmp_path / str(attempt))  # its machine is gone
    saved = steps_in(tmp_path)
    resumed = train("transformers", tmp_path, attempt=3, BEST="1")

    assert saved == [(10, 2), (8, 2), (7, 1), (4, 1)]
    assert ENDED.findall(resumed) == ENDED.findall(whole)
    assert ENDED.findall(train("transformers", tmp_path)) != ENDED.findall(whole)
    best = tmp_path / "job-1" / "attempt-2" / "step-0000010" / "best" / "checkpoint"
    assert (best / "model.safetensors").is_file()
    assert not (best / "optimizer.pt").exists()


def test_lightning_saves_what_sigterm_finds_between_two_steps(tmp_path: Path) -> None:
    interrupted = train("lightning", tmp_path, attempt=1, STOP_IN="6", STOP_WHEN="after the step")

    assert ENDED.findall(interrupted)[0][0] == "6"
    assert steps_in(tmp_path) == [(6, 1), (4, 1)]


def test_processes_of_which_one_gets_sigterm_end_after_the_same_step(tmp_path: Path) -> None:
    whole = train("transformers", tmp_path, launcher=TORCHRUN)
    interrupted = train("transformers", tmp_path, attempt=1, launcher=TORCHRUN, STOP_IN="7")
    saved = steps_in(tmp_path)
    resumed = train("transformers", tmp_path, attempt=2, launcher=TORCHRUN)

    assert saved == [(7, 1), (4, 1)]
    assert ENDED.findall(resumed) == ENDED.findall(whole)
    assert [each.count("published") for each in (whole, interrupted, resumed)] == [2, 0, 2]
