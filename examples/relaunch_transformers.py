"""A callback that keeps the checkpoints of a Hugging Face Trainer where Relaunch finds them.

Copy it with relaunch_training.py:

    with Checkpoints.from_environment() as checkpoints:
        newest = checkpoints.resume("resumed")
        callback = RelaunchCallback(checkpoints, newest)
        trainer = Trainer(model, arguments, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=str(newest.folder) if newest else None)
    if callback.stopped:
        sys.exit(0)  # `train` returns after a stop, too: the model is saved, and half trained
    trainer.save_model()

The Trainer saves as its arguments say (`save_steps`), and on SIGTERM; what it saves goes to the store, and its logs are
the progress. With `load_best_model_at_end` the best checkpoint goes there with each other one, without its optimizer.
Tested with transformers 5.18 and torch 2.13.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

if TYPE_CHECKING:
    from relaunch_training import Checkpoint, Checkpoints

BEST = "best/checkpoint"  # a folder with adapters in it, directly in a checkpoint, would be one more adapter of PEFT's


class RelaunchCallback(TrainerCallback):
    """Saves what the Trainer saves, and lets it save and end once a stop is requested.

    `newest` is what the training resumes from. `stopped` says, in all processes alike, that a stop ended it.
    """

    def __init__(self, checkpoints: Checkpoints, newest: Checkpoint | None) -> None:
        self.checkpoints = checkpoints
        self.newest = newest
        self.metrics: dict[str, Any] = {}
        self.stopped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Not every launcher gives its processes a RANK.
        self.checkpoints.rank = args.process_index
        if args.load_best_model_at_end and self.newest:
            self._find_best(state, self.newest.folder)

    def _find_best(self, state: Any, folder: Path) -> None:
        """Tell the Trainer where the best checkpoint is on this machine: it recorded where it was on another one."""
        recorded = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))["best_model_checkpoint"]
        if (folder / BEST).is_dir():
            state.best_model_checkpoint = str(folder / BEST)
        elif recorded and Path(recorded).name == f"checkpoint-{state.global_step}":
            state.best_model_checkpoint = str(folder)
        elif recorded:
            text = (
                f"the best checkpoint, {recorded}, was not saved: the best of those from here on is loaded at the end"
            )
            print(f"relaunch: {text}", file=sys.stderr, flush=True)
            # Else none of these is loaded that is not better than the one that is lost.
            state.best_model_checkpoint = state.best_metric = state.best_global_step = None

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self._agree_to_stop(args):
            control.should_save = True
            control.should_training_stop = True

    def _agree_to_stop(self, args: Any) -> bool:
        stop = self.checkpoints.stop_requested
        if args.world_size > 1:
            # SIGTERM reaches the processes one after the other, and they have to end after the same step.
            stops = torch.tensor(stop, device=args.device)
            torch.distributed.all_reduce(stops, torch.distributed.ReduceOp.MAX)
            if stop := int(stops.item()):
                self.checkpoints.request_stop(stop)
        self.stopped = bool(stop)
        return self.stopped

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
        numbers = {name: each for name, each in logs.items() if isinstance(each, (int, float))}
        self.metrics = {re.sub("[^A-Za-z0-9_./-]", "_", name): each for name, each in numbers.items()}
        self.checkpoints.report(state.global_step, state.max_steps, **self.metrics)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if args.world_size > 1:
            torch.distributed.barrier()  # each process writes its random generators
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        files = _files_in(folder)
        if args.load_best_model_at_end and state.best_model_checkpoint:
            best = Path(state.best_model_checkpoint)
            if best.resolve() != folder.resolve():
                files.update((f"{BEST}/{key}", path) for key, path in _files_in(best).items() if key != "optimizer.pt")
        self.checkpoints.save(state.global_step, files, total_steps=state.max_steps, **self.metrics)
        if self._agree_to_stop(args):
            control.should_training_stop = True


def _files_in(folder: Path) -> dict[str, Path]:
    return {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}
