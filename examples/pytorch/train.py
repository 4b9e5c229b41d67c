"""A small PyTorch training that goes on where it was interrupted, on CPU too: `python -m pytorch.train --epochs 3`."""

import argparse
import hashlib
import io
import os
import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from relaunch_training import Checkpoints

SAMPLES = 4096
FEATURES = 32
BATCH = 64
STEPS_PER_EPOCH = SAMPLES // BATCH
SAVE_EVERY = 50  # steps
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Training:
    """Everything that the next step depends on."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        layers = nn.Linear(FEATURES, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1)
        rate = float(os.environ.get("RELAUNCH_INPUT_LEARNING_RATE", "1e-3"))
        self.model = nn.Sequential(*layers).to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.order = torch.Generator().manual_seed(2)
        self.permutation = torch.randperm(SAMPLES, generator=self.order)
        self.step = 0

    def to_files(self) -> dict[str, bytes]:
        """Return the files of a checkpoint: the state, with the random generators and the place in the data."""
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.order.get_state(),
            "permutation": self.permutation,
            "random": torch.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state() if DEVICE == "cuda" else None,
            "step": self.step,
        }
        torch.save(state, body := io.BytesIO())
        return {"state.pt": body.getvalue()}

    def restore(self, folder: Path) -> None:
        """Go back to the state in the folder of a checkpoint."""
        state = torch.load(folder / "state.pt", map_location="cpu", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.order.set_state(state["order"])
        self.permutation = state["permutation"]
        self.step = state["step"]
        torch.set_rng_state(state["random"])
        # A checkpoint of a machine without a GPU has no state of one.
        if DEVICE == "cuda" and state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"])

    def take_step(self, points: Tensor, labels: Tensor) -> float:
        """Train on the next batch; return its loss."""
        if self.step and self.step % STEPS_PER_EPOCH == 0:
            self.permutation = torch.randperm(SAMPLES, generator=self.order)
        batch = self.permutation[self.step * BATCH % SAMPLES :][:BATCH].to(DEVICE)
        loss = nn.functional.binary_cross_entropy_with_logits(self.model(points[batch]).squeeze(1), labels[batch])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        return loss.item()

    def weights_sha256(self) -> str:
        """Return a digest of the weights."""
        weights = (each.detach().cpu().contiguous().numpy().tobytes() for each in self.model.state_dict().values())
        return hashlib.sha256(b"".join(weights)).hexdigest()


def make_data() -> tuple[Tensor, Tensor]:
    """Return points, and whether they lie outside of a ball: the same on every machine."""
    points = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1))
    return points.to(DEVICE), (points.norm(dim=1) > FEATURES**0.5).float().to(DEVICE)


def main() -> int:
    """Train; save on SIGTERM, every SAVE_EVERY steps and at the end."""
    parser = argparse.ArgumentParser(description="Train a small network that survives interruptions.")
    parser.add_argument("--epochs", type=int, default=5)
    steps = parser.parse_args().epochs * STEPS_PER_EPOCH
    training = Training()
    (points, labels) = make_data()
    with Checkpoints.from_environment() as checkpoints:
        if (newest := checkpoints.resume("resumed")) is not None:
            training.restore(newest.folder)
            print(f"resumed at step {training.step}", flush=True)
        while training.step < steps and not checkpoints.stopped:
            loss = training.take_step(points, labels)
            checkpoints.report(training.step, steps, loss=loss)
            if checkpoints.stop_requested or training.step == steps or training.step % SAVE_EVERY == 0:
                checkpoints.save(training.step, training.to_files, loss=loss, total_steps=steps)
    if training.step == steps:
        print(f"finished with weights {training.weights_sha256()}", flush=True)
    # To be stopped and to have saved is no failure: Relaunch knows that it asked for it.
    return 0


if __name__ == "__main__":
    sys.exit(main())
