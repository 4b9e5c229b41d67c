"""A callback that keeps the checkpoints of a Hugging Face Trainer where Relaunch finds them.

Copy it with relaunch_training.py:

    with Checkpoints.from_environment() as checkpoints:
        newest = checkpoints.resume("resumed")
        callback = RelaunchCallback(checkpoints)
        trainer = Trainer(model, arguments, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=str(newest.folder) if newest else None)
    if callback.stopped:
        sys.exit(0)  # `train` returns after a stop, too: the model is saved, and half trained
    trainer.save_model()

The Trainer saves as its arguments say (`save_steps`), and on SIGTERM; what it saves goes to the store, and its logs are
the progress. Tested with transformers 5.18 and torch 2.13.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

if TYPE_CHECKING:
    from relaunch_training import Checkpoints


class RelaunchCallback(TrainerCallback):
    """Saves what the Trainer saves, and lets it save and end once a stop is requested.

    `stopped` says, in all processes alike, that a stop ended it.
    """

    def __init__(self, checkpoints: Checkpoints) -> None:
        self.checkpoints = checkpoints
        self.metrics: dict[str, Any] = {}
        self.stopped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        # Not every launcher gives its processes a RANK.
        self.checkpoints.rank = args.process_index

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
        self.checkpoints.save(state.global_step, folder, total_steps=state.max_steps, **self.metrics)
        if self._agree_to_stop(args):
            control.should_training_stop = True
