"""What the callbacks for Lightning and Hugging Face's Trainer ask of their libraries, which are not there."""

import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from relaunch_training import Checkpoints


def callback_for(library: str, monkeypatch: pytest.MonkeyPatch, **modules: dict[str, Any]) -> Any:
    """Import the callback with modules that have these attributes, for this test alone."""
    for name, attributes in modules.items():
        module = ModuleType(name)
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, f"relaunch_{library}", raising=False)
    found = importlib.import_module(f"relaunch_{library}").RelaunchCallback
    monkeypatch.delitem(sys.modules, f"relaunch_{library}")
    return found


def test_lightning_says_which_rank_a_process_has_that_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    callback = callback_for("lightning", monkeypatch, pytorch_lightning={"Callback": object})
    checkpoints = Checkpoints()

    callback(checkpoints, every_steps=4).setup(SimpleNamespace(global_rank=9), None, "fit")

    assert checkpoints.rank == 9


@pytest.mark.parametrize("heard_at", [1, 2], ids=["before the save", "during the save"])
def test_a_process_of_lightning_knows_of_the_stop_that_another_one_heard(
    monkeypatch: pytest.MonkeyPatch, heard_at: int
) -> None:
    given: list[bool] = []

    def reduce(decision: bool, *, all: bool) -> bool:  # noqa: A002 - as Lightning calls it
        given.append(decision)
        return decision or len(given) >= heard_at

    callback = callback_for("lightning", monkeypatch, pytorch_lightning={"Callback": object})(Checkpoints(), 1)
    strategy = SimpleNamespace(reduce_boolean_decision=reduce)
    trainer = SimpleNamespace(strategy=strategy, global_step=1, world_size=2, estimated_stepping_batches=9)
    trainer.save_checkpoint = lambda _path: None
    trainer.should_stop = False

    callback.on_train_batch_end(trainer, None, None)

    assert not callback.checkpoints.stop_requested
    assert callback.stopped
    assert trainer.should_stop
    # All ask equally often, for else they would wait for each other.
    assert given == [False, heard_at == 1]


def trainers_callback(monkeypatch: pytest.MonkeyPatch, heard: int, *, newest: Any = None) -> tuple[Any, list[int]]:
    """Return the callback of a process that heard nothing, while another one heard that signal; and what it asked."""
    tensors: list[int] = []

    def make_tensor(value: int, device: str) -> Any:
        tensors.append(value)
        return SimpleNamespace(item=lambda: heard)

    names = {"all_reduce": lambda *_: None, "barrier": lambda: None, "ReduceOp": SimpleNamespace(MAX="max")}
    torch = {"tensor": make_tensor, "distributed": SimpleNamespace(**names)}
    make = callback_for("transformers", monkeypatch, torch=torch, transformers={"TrainerCallback": object})
    checkpoints = Checkpoints()
    monkeypatch.setattr(checkpoints, "request_stop", lambda number: setattr(checkpoints, "stop_requested", number))
    return make(checkpoints, newest), tensors


def trainer_of(processes: int, folder: Path = Path()) -> Any:
    given = {"device": "cuda:0", "load_best_model_at_end": True, "output_dir": str(folder)}
    return SimpleNamespace(world_size=processes, process_index=processes - 1, **given)


@pytest.mark.parametrize("processes", [1, 2])
def test_the_trainer_says_which_rank_a_process_has_and_one_alone_agrees_with_nobody(
    monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    callback, tensors = trainers_callback(monkeypatch, heard=15)
    control = SimpleNamespace(should_save=False, should_training_stop=False)

    callback.on_train_begin(trainer_of(processes), None, control)
    callback.on_step_end(trainer_of(processes), None, control)

    assert callback.checkpoints.rank == processes - 1
    assert callback.stopped == control.should_training_stop
    assert (tensors, control.should_training_stop) == (([], False) if processes == 1 else ([0], True))
    assert callback.checkpoints.stop_requested == (0 if processes == 1 else 15)


def test_the_trainer_ends_after_a_save_during_which_another_process_was_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    callback, _ = trainers_callback(monkeypatch, heard=15)
    control = SimpleNamespace(should_training_stop=False)
    state = SimpleNamespace(global_step=4, max_steps=9, best_model_checkpoint=None)

    callback.on_save(trainer_of(2, tmp_path), state, control)

    assert callback.stopped
    assert control.should_training_stop


def test_a_best_checkpoint_that_was_not_saved_is_said_and_the_best_from_here_on_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    callback, _ = trainers_callback(monkeypatch, 0, newest=SimpleNamespace(folder=tmp_path))
    best = {"best_metric": 0.9, "best_global_step": 4}
    (tmp_path / "trainer_state.json").write_text('{"best_model_checkpoint": "/gone/checkpoint-4"}')

    callback.on_train_begin(trainer_of(1), itself := SimpleNamespace(global_step=4, **best), None)
    assert itself.best_model_checkpoint == str(tmp_path)
    assert capsys.readouterr().err == ""

    callback.on_train_begin(trainer_of(1), other := SimpleNamespace(global_step=8, **best), None)
    assert (other.best_model_checkpoint, other.best_metric, other.best_global_step) == (None, None, None)
    assert "relaunch: the best checkpoint, /gone/checkpoint-4, was not saved: " in capsys.readouterr().err
