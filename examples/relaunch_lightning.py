"""A callback that keeps the checkpoints of PyTorch Lightning where Relaunch finds them.

Copy it with relaunch_training.py:

    with Checkpoints.from_environment() as checkpoints:
        newest = checkpoints.resume("resumed")
        callback = RelaunchCallback(checkpoints, every_steps=500)
        trainer = Trainer(callbacks=[callback], enable_checkpointing=False, ...)
        trainer.fit(model, loader, ckpt_path=str(newest.folder / CHECKPOINT) if newest else None)
    if callback.stopped:
        sys.exit(0)  # `fit` returns after a stop, too, if SIGTERM came to another process: the model is half trained
    trainer.save_checkpoint("model.ckpt", weights_only=True)

Lightning saves no random generators, and the place in the data only of loaders that have `state_dict`. Tested with
pytorch-lightning 2.6 and torch 2.13.
"""

from __future__ import annotations

import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Two packages have the same classes: that of the program is taken.
if "pytorch_lightning" in sys.modules:
    from pytorch_lightning import Callback
else:
    from lightning.pytorch import Callback

if TYPE_CHECKING:
    from relaunch_training import Checkpoints

CHECKPOINT = "lightning.ckpt"


class RelaunchCallback(Callback):
    """Saves every `every_steps` steps, at the end and when a stop is requested, after which it ends the training.

    `stopped` says, in all processes alike, that a stop ended it.
    """

    def __init__(self, checkpoints: Checkpoints, every_steps: int) -> None:
        self.checkpoints = checkpoints
        self.every_steps = every_steps
        self.loss: Any = None
        self.saved_step = 0
        self.stopped = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        # The processes that Lightning starts itself have no RANK.
        self.checkpoints.rank = trainer.global_rank

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *_: Any) -> None:
        self.loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        self.checkpoints.report(trainer.global_step, _total_steps(trainer), loss=self.loss)
        if self._agree_to_stop(trainer) or trainer.global_step % self.every_steps == 0:
            self._save(trainer)
            if self._agree_to_stop(trainer):
                trainer.should_stop = True

    def _agree_to_stop(self, trainer: Any) -> bool:
        # SIGTERM reaches the processes one after the other, and they have to end after the same step.
        stop = self.stopped or bool(self.checkpoints.stop_requested)
        self.stopped = bool(trainer.strategy.reduce_boolean_decision(stop, all=False))
        return self.stopped

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._save(trainer)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # Lightning raises SystemExit after a step in which SIGTERM came, which may have been after it was saved.
        if isinstance(exception, SystemExit) and self.checkpoints.stop_requested and trainer.world_size == 1:
            self._save(trainer)

    def _save(self, trainer: Any) -> None:
        step = trainer.global_step
        if step == self.saved_step:
            return
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, CHECKPOINT)

            def write() -> dict[str, Path]:
                trainer.save_checkpoint(path)
                return {CHECKPOINT: path}

            # All processes write together; of one alone the time counts.
            files = write if trainer.world_size == 1 else write()
            self.checkpoints.save(step, files, total_steps=_total_steps(trainer), loss=self.loss)
        self.saved_step = step


def _total_steps(trainer: Any) -> int | None:
    total = trainer.estimated_stepping_batches
    return int(total) if math.isfinite(total) else None
