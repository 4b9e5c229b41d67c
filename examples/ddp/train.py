"""DistributedDataParallel over several machines that goes on where it was interrupted: `torchrun train.py` on each.

Relaunch lets torchrun start a process for each GPU of a machine. The lines that several machines need, beside those of
any training, are in `gather`, `agree_to_stop` and `main`.
"""

import argparse
import hashlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from relaunch_training import Checkpoints

SAMPLES = 4096
FEATURES = 32
BATCH = 96  # of all processes together
SAVE_EVERY = 50  # steps
DEVICE = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")


def gather(value: Any) -> list[Any]:
    """Return what each process gave, in order of rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def agree_to_stop(checkpoints: Checkpoints) -> bool:
    """Return whether any process was asked to stop: SIGTERM may reach one machine alone, and all have to save."""
    stop = torch.tensor(checkpoints.stop_requested, device=DEVICE)
    dist.all_reduce(stop, dist.ReduceOp.MAX)
    if stop:
        checkpoints.request_stop(int(stop))
    return bool(stop)


class Training:
    """Everything that the next step depends on. The batch of a step follows from its number alone."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)
        self.model = DistributedDataParallel(nn.Sequential(*layers).to(DEVICE))
        rate = float(os.environ.get("RELAUNCH_INPUT_LEARNING_RATE", "1e-3"))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.step = 0
        self.points = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        self.labels = (self.points.norm(dim=1) > FEATURES**0.5).float()
        # After its first step DistributedDataParallel orders the gradients otherwise, and three machines add them in
        # another order then: an attempt that resumes takes that step before it restores, for the same bits.
        self.compute_loss(torch.arange(BATCH)).backward()

    def compute_loss(self, rows: Tensor) -> Tensor:
        """Return the loss on some of the samples."""
        answers = self.model(self.points[rows]).squeeze(1)
        return nn.functional.binary_cross_entropy_with_logits(answers, self.labels[rows])

    def take_step(self) -> Tensor:
        """Train on this process's part of the next batch; return the loss on it."""
        batch = torch.randint(SAMPLES, (BATCH,), generator=torch.Generator().manual_seed(self.step))
        loss = self.compute_loss(batch[dist.get_rank() :: dist.get_world_size()])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.detach()

    def to_files(self) -> dict[str, bytes]:
        """Return the files of a checkpoint: one from rank 0, for all processes have the same state."""
        if dist.get_rank():
            return {}
        state = {"model": self.model.module.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        torch.save(state, body := io.BytesIO())
        return {"state.pt": body.getvalue()}

    def restore(self, folder: Path) -> None:
        """Go back to the state in the folder of a checkpoint."""
        state = torch.load(folder / "state.pt", map_location="cpu", weights_only=True)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = state["step"]

    def result(self) -> str:
        """Return the loss on all samples, and a digest of the weights."""
        with torch.no_grad():
            loss = self.compute_loss(torch.arange(SAMPLES))
        weights = b"".join(each.cpu().numpy().tobytes() for each in self.model.module.state_dict().values())
        return f"loss {loss.item().hex()} and weights {hashlib.sha256(weights).hexdigest()}"


def main() -> int:
    """Train; save when a machine is asked to stop, every SAVE_EVERY steps and at the end."""
    parser = argparse.ArgumentParser(description="Train a small network on several machines that may be interrupted.")
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        # all_gather_object takes the current device: else the first of the machine in all its processes.
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    training = Training()
    stop = False
    with Checkpoints.from_environment(gather=gather) as checkpoints:
        if (newest := checkpoints.resume("resumed")) is not None:
            training.restore(newest.folder)
            print(f"resumed at step {training.step}", flush=True)
        # What all agreed on decides, and not what one process knows: they have to save and to end after the same step.
        while training.step < steps and not stop:
            loss = training.take_step()
            checkpoints.report(training.step, steps, loss=loss)
            stop = agree_to_stop(checkpoints)
            if stop or training.step == steps or training.step % SAVE_EVERY == 0:
                checkpoints.save(training.step, training.to_files, loss=loss, total_steps=steps)
    if training.step == steps:
        print(f"finished with {training.result()}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
