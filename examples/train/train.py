"""The program: trains, prints one JSON line per step, saves checkpoints, stops on SIGTERM, resumes.

relaunch_training, which it lies beside, knows how checkpoints are saved, and prints lines of its own.

Exit status: 0 when the training has finished, and also when it has saved and stopped on SIGTERM, as most trainers do
(Relaunch knows that it asked for the stop and does not take that 0 for success); 1 when the training failed;
2 when an argument or variable is invalid.
"""

import argparse
import hashlib
import json
import math
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO

from relaunch_training import Checkpoints, CheckpointUnusableError, open_store

from .model import WEIGHTS_OBJECT, Learner, compute_loss, make_examples

TRAINING_EXAMPLES = 256
VALIDATION_EXAMPLES = 64
SEED_OF_WEIGHTS = 3
SEED_OF_TRAINING = 1
SEED_OF_VALIDATION = 2
DEFAULT_LEARNING_RATE = "0.05"
SLICE_SECONDS = 0.05  # the longest that SIGTERM waits for a delay to end
HOLD_SECONDS = 0.1  # between two looks for the object that holds the training


@dataclass(frozen=True)
class Plan:
    """The settings of the training, from arguments and environment.

    While there is the object `hold_while`, it waits at the step `hold_at_step`, and on SIGTERM before it saves.
    """

    steps: int
    step_delay_seconds: float
    checkpoint_every: int
    learning_rate: float
    stop_delay_seconds: float = 0.0
    hold_at_step: int | None = None
    hold_while: str | None = None


def main(arguments: Sequence[str]) -> int:
    """Run the training; return the exit status."""
    try:
        checkpoints = Checkpoints.from_environment(signals=(signal.SIGTERM, signal.SIGINT))
        with checkpoints:
            plan = read_plan(arguments, os.environ)
            return run(plan, checkpoints)
    except ValueError as error:
        print(f"train: {error}", file=sys.stderr)
        return 2


def run(plan: Plan, checkpoints: Checkpoints) -> int:
    """Train from the newest checkpoint on; return the exit status.

    Raises:
        ValueError: a URI is of an unknown kind, or the checkpoint belongs to a training with another learning rate.
    """
    learner = start_or_resume(plan, checkpoints)
    try:
        train(plan, learner, checkpoints)
    except (ArithmeticError, ValueError) as error:
        print(f"train: the training failed after step {learner.step}: {error}", file=sys.stderr)
        return 1
    return 0


def read_plan(arguments: Sequence[str], environment: Mapping[str, str]) -> Plan:
    """Parse the arguments, with defaults from `environment`; exit with status 2 if they are invalid."""
    parser = argparse.ArgumentParser(prog="train", description="Train a small network that survives interruptions.")
    parser.add_argument("--steps", type=whole_number, default=environment.get("TRAIN_STEPS", "200"))
    parser.add_argument("--step-delay-seconds", type=seconds, default=environment.get("TRAIN_STEP_DELAY_SECONDS", "0"))
    # Stands for the minutes that the checkpoint of a large model takes.
    parser.add_argument("--stop-delay-seconds", type=seconds, default=environment.get("TRAIN_STOP_DELAY_SECONDS", "0"))
    parser.add_argument(
        "--checkpoint-every", type=whole_number, default=environment.get("TRAIN_CHECKPOINT_EVERY", "20")
    )
    parser.add_argument(
        "--learning-rate",
        type=learning_rate,
        default=environment.get("RELAUNCH_INPUT_LEARNING_RATE") or DEFAULT_LEARNING_RATE,
    )
    # Stand for the hours that a training takes, and a save: whoever interrupts it need not be faster than it is.
    parser.add_argument("--hold-at-step", type=whole_number, default=environment.get("TRAIN_HOLD_AT_STEP") or None)
    parser.add_argument("--hold-while", default=environment.get("TRAIN_HOLD_WHILE") or None)
    return Plan(**vars(parser.parse_args(arguments)))


def start_or_resume(plan: Plan, checkpoints: Checkpoints) -> Learner:
    """Restore the learner from the newest usable checkpoint, or start at step 0 if there is none.

    Raises:
        ValueError: a URI is of an unknown kind, or the checkpoint belongs to a training with another learning rate.
    """
    attempt = checkpoints.attempt
    report(attempt, "started", job_id=checkpoints.job_id, steps=plan.steps, learning_rate=plan.learning_rate)
    if plan.hold_while:
        open_store(plan.hold_while)  # fail now if the URI is invalid, not after the first hours
    with tempfile.TemporaryDirectory() as folder:
        newest = checkpoints.resume(
            folder, lambda uri, reason: report(attempt, "checkpoint_rejected", uri=uri, reason=reason)
        )
        if newest is None:
            return Learner.start(plan.learning_rate, SEED_OF_WEIGHTS)
        learner = Learner.from_objects({path.name: path.read_bytes() for path in newest.folder.iterdir()})
    if learner.learning_rate != plan.learning_rate:
        raise ValueError(
            f"{newest.uri} was trained with a learning rate of {learner.learning_rate}, not {plan.learning_rate}"
        )
    report(attempt, "resumed", step=learner.step, loss=newest.manifest["loss"], uri=newest.uri)
    return learner


def train(plan: Plan, learner: Learner, checkpoints: Checkpoints) -> None:
    """Take steps until the last one or a stop request; save checkpoints periodically and at the end.

    Raises:
        ArithmeticError, ValueError: the loss is no longer finite.
    """
    examples = make_examples(TRAINING_EXAMPLES, SEED_OF_TRAINING)
    validation = make_examples(VALIDATION_EXAMPLES, SEED_OF_VALIDATION)
    saved_step = learner.step
    while learner.step < plan.steps and not checkpoints.stop_requested:
        learner.take_step(examples)
        loss = _finite(compute_loss(learner.weights, validation))
        report(checkpoints.attempt, "step", step=learner.step, loss=loss)
        checkpoints.report(learner.step, plan.steps, loss=loss)
        if learner.step % plan.checkpoint_every == 0 or learner.step == plan.steps:
            save(plan, learner, loss, checkpoints)
            saved_step = learner.step
        if learner.step == plan.hold_at_step:
            hold(plan, lambda: not checkpoints.stop_requested)
        wait(plan.step_delay_seconds, checkpoints)
    loss = compute_loss(learner.weights, validation)
    if checkpoints.stop_requested:
        time.sleep(plan.stop_delay_seconds)
        hold(plan, lambda: True)
    if learner.step != saved_step:
        save(plan, learner, loss, checkpoints)
    if learner.step < plan.steps:
        name = signal.Signals(checkpoints.stop_requested).name
        report(checkpoints.attempt, "stopped", step=learner.step, signal=name)
    else:
        weights_sha256 = hashlib.sha256(learner.to_objects()[WEIGHTS_OBJECT]).hexdigest()
        report(checkpoints.attempt, "finished", step=learner.step, loss=loss, weights_sha256=weights_sha256)


def wait(seconds: float, checkpoints: Checkpoints) -> None:
    """Sleep, or until shortly after the stop request."""
    end = time.monotonic() + seconds
    while not checkpoints.stop_requested and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, SLICE_SECONDS))


def hold(plan: Plan, is_wanted: Callable[[], bool]) -> None:
    """Wait while the object `hold_while` exists, as long as that is wanted."""
    if plan.hold_while is None:
        return
    folder, _, key = plan.hold_while.rpartition("/")
    with suppress(CheckpointUnusableError):
        while is_wanted():
            open_store(folder).fetch(key, BytesIO())
            time.sleep(HOLD_SECONDS)


def save(plan: Plan, learner: Learner, loss: float, checkpoints: Checkpoints) -> None:
    """Save a checkpoint of the learner if there is a checkpoint URI."""
    if uri := checkpoints.save(learner.step, learner.to_objects, loss=loss, total_steps=plan.steps):
        report(checkpoints.attempt, "checkpoint", step=learner.step, uri=uri)


def report(attempt: int, event: str, **fields: object) -> None:
    """Print a log entry as a line of JSON, flushed at once."""
    print(json.dumps({"event": event, "attempt": attempt, **fields}), flush=True)


def _finite(loss: float) -> float:
    if not math.isfinite(loss):
        raise ArithmeticError(f"the loss is {loss}; try a smaller learning rate")
    return loss


def whole_number(text: str) -> int:
    """Parse a whole number of at least 1 (argparse names this function in its message)."""
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def seconds(text: str) -> float:
    """Parse a finite number of seconds of at least 0."""
    if not 0 <= (value := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def learning_rate(text: str) -> float:
    """Parse a finite learning rate above 0."""
    if not 0 < (value := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a learning rate above 0")
    return value
