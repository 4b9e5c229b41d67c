"""Trains the network of examples/train on several machines with the standard library alone.

The processes meet at the store of what stands for torchrun. With HOLD_AT_STEP they wait at that step for SIGTERM.
"""

import math
import os
import sys

from torchrun import meeting_of_worker

from relaunch_training import Checkpoints
from train.model import BATCH_SIZE, MOMENTUM, Learner, compute_gradient, compute_loss, make_examples

STEPS = 60
SAVE_EVERY = 20
LEARNING_RATE = 0.05


def take_step(learner, examples, meeting):
    batch = [examples[int(learner.generator.random() * len(examples))] for _ in range(BATCH_SIZE)]
    size = int(os.environ["WORLD_SIZE"])
    gradients = meeting.gather(compute_gradient(learner.weights, batch[meeting.rank :: size]))
    gradient = [math.fsum(each) / size for each in zip(*gradients, strict=True)]
    learner.velocity = [MOMENTUM * v + g for v, g in zip(learner.velocity, gradient, strict=True)]
    learner.weights = [w - LEARNING_RATE * v for w, v in zip(learner.weights, learner.velocity, strict=True)]
    learner.step += 1


def agree_to_stop(checkpoints, *, wait):
    while True:
        if found := max(checkpoints.gather(checkpoints.stop_requested)):
            checkpoints.request_stop(found)
        if found or not wait:
            return found


def train(learner, meeting, checkpoints):
    examples = make_examples(64, 1)
    hold = int(os.environ.get("HOLD_AT_STEP", "0"))
    stop = 0
    while learner.step < STEPS and not stop:
        take_step(learner, examples, meeting)
        loss = compute_loss(learner.weights, examples)
        checkpoints.report(learner.step, STEPS, loss=loss)
        if learner.step == hold:
            print("held", flush=True)
        stop = agree_to_stop(checkpoints, wait=learner.step == hold)
        if stop or learner.step == STEPS or learner.step % SAVE_EVERY == 0:
            files = {} if meeting.rank else learner.to_objects()
            checkpoints.save(learner.step, files, loss=loss, total_steps=STEPS)
    if learner.step == STEPS:
        print(f"finished with loss {loss.hex()}", flush=True)


def main():
    meeting = meeting_of_worker()
    learner = Learner.start(LEARNING_RATE, 3)
    with Checkpoints.from_environment(gather=meeting.gather) as checkpoints:
        if newest := checkpoints.resume("resumed"):
            learner = Learner.from_objects({path.name: path.read_bytes() for path in newest.folder.iterdir()})
            print(f"resumed at step {learner.step}", flush=True)
        train(learner, meeting, checkpoints)
    return 0


sys.exit(main())
