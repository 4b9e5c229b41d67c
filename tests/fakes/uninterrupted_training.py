"""The training of examples/train, from its start to its end in one process."""

import hashlib
from typing import Any

from train.model import WEIGHTS_OBJECT, Learner, compute_loss, make_examples
from train.train import (
    DEFAULT_LEARNING_RATE,
    SEED_OF_TRAINING,
    SEED_OF_VALIDATION,
    SEED_OF_WEIGHTS,
    TRAINING_EXAMPLES,
    VALIDATION_EXAMPLES,
)


def train_alone(steps: int) -> dict[str, Any]:
    """Train without interruption; return the loss after each step, and the weights at the end."""
    learner = Learner.start(float(DEFAULT_LEARNING_RATE), SEED_OF_WEIGHTS)
    examples = make_examples(TRAINING_EXAMPLES, SEED_OF_TRAINING)
    validation = make_examples(VALIDATION_EXAMPLES, SEED_OF_VALIDATION)
    losses = {}
    while learner.step < steps:
        learner.take_step(examples)
        losses[learner.step] = compute_loss(learner.weights, validation)
    return {"losses": losses, "weights_sha256": hashlib.sha256(learner.to_objects()[WEIGHTS_OBJECT]).hexdigest()}
