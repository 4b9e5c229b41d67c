"""What the callbacks for Lightning and Hugging Face's Trainer ask of their libraries, which are not there."""

import importlib
import sys
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


@pytest.mark.parametrize("processes", [1, 2])
def test_the_trainer_says_which_rank_a_process_has_and_one_alone_agrees_with_nobody(
    monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    tensors: list[int] = []

    def make_tensor(value: int, device: str) -> Any:
        tensors.append(value)
        return SimpleNamespace(item=lambda: 1)

    distributed = SimpleNamespace(all_reduce=lambda *_: None, ReduceOp=SimpleNamespace(MAX="max"))
    torch = {"tensor": make_tensor, "distributed": distributed}
    make = callback_for("transformers", monkeypatch, torch=torch, transformers={"TrainerCallback": object})
    checkpoints = Checkpoints()
    callback = make(checkpoints)
    arguments = SimpleNamespace(world_size=processes, process_index=processes - 1, device="cuda:0")
    control = SimpleNamespace(should_save=False, should_training_stop=False)

    callback.on_train_begin(arguments, None, control)
    callback.on_step_end(arguments, None, control)

    assert checkpoints.rank == processes - 1
    assert (tensors, control.should_training_stop) == (([], False) if processes == 1 else ([0], True))
