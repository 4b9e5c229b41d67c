"""Fully sharded data parallel over several machines that goes on where it was interrupted: `torchrun train.py` on each.

Relaunch lets torchrun start a process for each GPU of a machine. No process has the whole state. Each saves its shards
by torch.distributed.checkpoint (DCP), and fetches those that it needs; they may be those of another number of machines,
because DCP shards what it loads as the model is sharded.
"""

import argparse
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

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
        self.model = nn.Sequential(*layers).to(DEVICE)
        for layer in layers[::2]:
            fully_shard(layer)
        fully_shard(self.model)
        rate = float(os.environ.get("RELAUNCH_INPUT_LEARNING_RATE", "1e-3"))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.step = 0
        self.points = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1)).to(DEVICE)
        self.labels = (self.points.norm(dim=1) > FEATURES**0.5).float()

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

    def state(self) -> dict[str, Any]:
        """Return the state, of which this process has its shards."""
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def to_files(self) -> Path:
        """Write the shards of this process, and on rank 0 what is where, into a folder; return it."""
        folder = Path(f"saving-{dist.get_rank()}")
        shutil.rmtree(folder, ignore_errors=True)
        dcp.save(self.state(), storage_writer=dcp.FileSystemWriter(folder))
        return folder

    def needs(self, fetch: Callable[[str], Path]) -> Iterable[str]:
        """Return in which files of a checkpoint the shards of this process are."""
        metadata = dcp.FileSystemReader(fetch(".metadata").parent).read_metadata()
        planner = dcp.DefaultLoadPlanner()
        planner.set_up_planner(self.state(), metadata, is_coordinator=False)
        return {metadata.storage_data[each.storage_index].relative_path for each in planner.create_local_plan().items}

    def restore(self, folder: Path) -> None:
        """Go back to the state in the folder of a checkpoint."""
        state = self.state()
        dcp.load(state, storage_reader=dcp.FileSystemReader(folder))
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.step = state["step"]

    def result(self) -> str:
        """Return the loss on all samples, and a digest of the weights."""
        with torch.no_grad():
            loss = self.compute_loss(torch.arange(SAMPLES))
        whole = (each.full_tensor().cpu().numpy().tobytes() for each in self.model.state_dict().values())
        return f"loss {loss.item().hex()} and weights {hashlib.sha256(b''.join(whole)).hexdigest()}"


def main() -> int:
    """Train; save when a machine is asked to stop, every SAVE_EVERY steps and at the end."""
    parser = argparse.ArgumentParser(description="Train a small network on several machines that may be interrupted.")
    parser.add_argument("--steps", type=int, default=500)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    if DEVICE.type == "cuda":
        # all_gather_object and fully_shard take the current device: else the first of the machine in all its processes.
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if DEVICE.type == "cuda" else "gloo")
    training = Training()
    stop = False
    with Checkpoints.from_environment(gather=gather, any_nodes=True) as checkpoints:
        if (newest := checkpoints.resume("resumed", needs=training.needs)) is not None:
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
