"""The program: trains, prints one JSON line per step, saves checkpoints, stops on SIGTERM, resumes.

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
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType

from .checkpoint import Manifest, describe_object, load_newest_checkpoint, save_checkpoint
from .model import WEIGHTS_OBJECT, Learner, compute_loss, make_examples
from .object_store import open_store

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
    """The settings of the training, from arguments and environment; without `checkpoint_uri` nothing is saved.

    While there is the object `hold_while`, it waits at the step `hold_at_step`, and on SIGTERM before it saves.
    """

    steps: int
    step_delay_seconds: float
    checkpoint_every: int
    learning_rate: float
    job_id: str
    attempt: int
    checkpoint_uri: str | None
    resume_uri: str | None
    stop_delay_seconds: float = 0.0
    hold_at_step: int | None = None
    hold_while: str | None = None


class StopRequest:
    """Records SIGTERM or SIGINT, so that the current step ends before the state is saved."""

    def __init__(self) -> None:
        self.signal_name: str | None = None

    def listen(self) -> None:
        """Handle both signals; the first process of a container ignores signals without a handler."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._remember)

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        self.signal_name = signal.Signals(number).name

    def wait(self, seconds: float) -> None:
        """Sleep for `seconds`, or until shortly after the signal."""
        end = time.monotonic() + seconds
        while self.signal_name is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_SECONDS))


def main(arguments: Sequence[str]) -> int:
    """Run the training; return the exit status."""
    stop = StopRequest()
    stop.listen()
    try:
        plan = read_plan(arguments, os.environ)
        learner = start_or_resume(plan)
    except ValueError as error:
        print(f"train: {error}", file=sys.stderr)
        return 2
    try:
        train(plan, learner, stop)
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
    options = parser.parse_args(arguments)
    return Plan(
        **vars(options),
        job_id=environment.get("RELAUNCH_JOB_ID", "by-hand"),
        attempt=int(environment.get("RELAUNCH_ATTEMPT", "1")),
        checkpoint_uri=environment.get("RELAUNCH_CHECKPOINT_URI") or None,
        resume_uri=environment.get("RELAUNCH_RESUME_URI") or None,
    )


def start_or_resume(plan: Plan) -> Learner:
    """Restore the learner from the newest usable checkpoint, or start at step 0 if there is none.

    Raises:
        ValueError: a URI is of an unknown kind, or the checkpoint belongs to a training with another learning rate.
    """
    report(plan, "started", job_id=plan.job_id, steps=plan.steps, learning_rate=plan.learning_rate)
    for uri in filter(None, (plan.checkpoint_uri, plan.hold_while)):
        open_store(uri)  # fail now if the URI is invalid, not after the first hours
    checkpoint = plan.resume_uri and load_newest_checkpoint(
        plan.resume_uri, lambda uri, reason: report(plan, "checkpoint_rejected", uri=uri, reason=reason)
    )
    if not checkpoint:
        return Learner.start(plan.learning_rate, SEED_OF_WEIGHTS)
    learner = Learner.from_objects(checkpoint.objects)
    if learner.learning_rate != plan.learning_rate:
        raise ValueError(
            f"{checkpoint.uri} was trained with a learning rate of {learner.learning_rate}, not {plan.learning_rate}"
        )
    report(plan, "resumed", step=learner.step, loss=checkpoint.manifest.loss, uri=checkpoint.uri)
    return learner


def train(plan: Plan, learner: Learner, stop: StopRequest) -> None:
    """Take steps until the last one or a stop request; save checkpoints periodically and at the end.

    Raises:
        ArithmeticError, ValueError: the loss is no longer finite.
    """
    examples = make_examples(TRAINING_EXAMPLES, SEED_OF_TRAINING)
    validation = make_examples(VALIDATION_EXAMPLES, SEED_OF_VALIDATION)
    saved_step = learner.step
    while learner.step < plan.steps and stop.signal_name is None:
        learner.take_step(examples)
        loss = _finite(compute_loss(learner.weights, validation))
        report(plan, "step", step=learner.step, loss=loss)
        if learner.step % plan.checkpoint_every == 0 or learner.step == plan.steps:
            save(plan, learner, loss)
            saved_step = learner.step
        if learner.step == plan.hold_at_step:
            hold(plan, lambda: stop.signal_name is None)
        stop.wait(plan.step_delay_seconds)
    loss = compute_loss(learner.weights, validation)
    if stop.signal_name is not None:
        time.sleep(plan.stop_delay_seconds)
        hold(plan, lambda: True)
    if learner.step != saved_step:
        save(plan, learner, loss)
    if learner.step < plan.steps:
        report(plan, "stopped", step=learner.step, signal=stop.signal_name)
    else:
        weights_sha256 = hashlib.sha256(learner.to_objects()[WEIGHTS_OBJECT]).hexdigest()
        report(plan, "finished", step=learner.step, loss=loss, weights_sha256=weights_sha256)


def hold(plan: Plan, is_wanted: Callable[[], bool]) -> None:
    """Wait while the object `hold_while` exists, as long as that is wanted."""
    if plan.hold_while is None:
        return
    folder, _, key = plan.hold_while.rpartition("/")
    with suppress(FileNotFoundError):
        while is_wanted():
            open_store(folder).get(key)
            time.sleep(HOLD_SECONDS)


def save(plan: Plan, learner: Learner, loss: float) -> None:
    """Save a checkpoint of the learner if there is a checkpoint URI."""
    if plan.checkpoint_uri is None:
        return
    objects = learner.to_objects()
    described = tuple(describe_object(key, body) for key, body in objects.items())
    manifest = Manifest(plan.job_id, plan.attempt, learner.step, described, loss, datetime.now(UTC))
    uri = save_checkpoint(plan.checkpoint_uri, manifest, objects)
    report(plan, "checkpoint", step=learner.step, uri=uri)


def report(plan: Plan, event: str, **fields: object) -> None:
    """Print a log entry as a line of JSON, flushed at once."""
    print(json.dumps({"event": event, "attempt": plan.attempt, **fields}), flush=True)


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
