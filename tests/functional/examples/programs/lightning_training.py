"""A model that PyTorch Lightning trains on CPU; SIGTERM comes in the middle of the step STOP_IN, or after its save."""

import atexit
import hashlib
import os
import signal
import sys

import pytorch_lightning as lightning
import torch

from relaunch_lightning import CHECKPOINT, RelaunchCallback
from relaunch_training import Checkpoints

STEPS = 12


class Batches:
    """Eight batches an epoch, of which a checkpoint knows the place."""

    def __init__(self):
        generator = torch.Generator().manual_seed(2)
        self.batches = [torch.randn(4, 8, generator=generator) for _ in range(8)]
        self.place = 0

    def __iter__(self):
        while self.place < len(self.batches):
            self.place += 1
            yield self.batches[self.place - 1]
        self.place = 0

    def __len__(self):
        return len(self.batches)

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        self.interrupt("in the step")
        return (self.layer(batch).squeeze(1) - batch.sum(dim=1)).square().mean()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        self.interrupt("after the step")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)

    def interrupt(self, when):
        step = self.trainer.global_step + (when == "in the step")
        if step == int(os.environ.get("STOP_IN", "0")) and os.environ.get("STOP_WHEN", "in the step") == when:
            os.kill(os.getpid(), signal.SIGTERM)


def main(output):
    lightning.seed_everything(1)
    model = Model()

    # Lightning ends the program by an exception when SIGTERM comes.
    @atexit.register
    def say_result():
        weights = b"".join(each.detach().numpy().tobytes() for each in model.state_dict().values())
        print(f"ended at {trainer.global_step} with {hashlib.sha256(weights).hexdigest()}", flush=True)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    with Checkpoints.from_environment(report_seconds=0) as checkpoints:
        newest = checkpoints.resume(f"{output}/resumed")
        callback = RelaunchCallback(checkpoints, every_steps=4)
        trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", devices=1, callbacks=[callback], **quiet)
        trainer.fit(model, Batches(), ckpt_path=str(newest.folder / CHECKPOINT) if newest else None)
    if callback.stopped:
        sys.exit(0)
    print("published", flush=True)


main(sys.argv[1])
