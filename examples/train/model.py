"""What is trained: a small network that learns how far from the centre the points of a square lie.

Only additions, multiplications and divisions of IEEE doubles are used, and sums are correctly rounded (`math.fsum`;
the built-in `sum` of floats changed in Python 3.12). So the same seed gives the same bits on every machine, and an
attempt that resumes on another instance type, or another architecture, ends exactly where the first would have.
"""

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

HIDDEN_UNITS = 8
BATCH_SIZE = 16
MOMENTUM = 0.9

STATE_OBJECT = "state.json"
WEIGHTS_OBJECT = "weights.json"


class Example(NamedTuple):
    """One labelled point: `target` is its squared distance from the centre."""

    x: float
    y: float
    target: float


def make_generator(seed: int) -> random.Random:
    """Return a generator of which only `random()` is used, whose sequence Python guarantees."""
    return random.Random(seed)  # noqa: S311 - a training must be repeatable, not unpredictable


def make_examples(count: int, seed: int) -> list[Example]:
    """Draw `count` labelled points of the square from -1 to 1; the same seed gives the same points."""
    generator = make_generator(seed)
    points = [(2 * generator.random() - 1, 2 * generator.random() - 1) for _ in range(count)]
    return [Example(x, y, x * x + y * y) for x, y in points]


@dataclass
class Learner:
    """The whole state of the training, which checkpoints save.

    `weights` and `velocity` hold, for each hidden unit, its two input weights, its bias and its output weight,
    and at the end the output's bias.
    """

    learning_rate: float
    step: int
    weights: list[float]
    velocity: list[float]
    generator: random.Random

    @classmethod
    def start(cls, learning_rate: float, seed: int) -> Self:
        """Make a learner at step 0 with small random weights."""
        generator = make_generator(seed)
        weights = [generator.random() - 0.5 for _ in range(4 * HIDDEN_UNITS)] + [0.0]
        return cls(learning_rate, 0, weights, [0.0] * len(weights), generator)

    @classmethod
    def from_objects(cls, objects: Mapping[str, bytes]) -> Self:
        """Restore a learner from the objects of a checkpoint; the inverse of `to_objects`."""
        state = json.loads(objects[STATE_OBJECT])
        weights = json.loads(objects[WEIGHTS_OBJECT])["weights"]
        generator = make_generator(0)
        version, internal_state, next_gaussian = state["generator"]
        generator.setstate((version, tuple(internal_state), next_gaussian))
        return cls(state["learning_rate"], state["step"], weights, state["velocity"], generator)

    def to_objects(self) -> dict[str, bytes]:
        """Render the whole state as the objects of a checkpoint; JSON keeps every bit of a float."""
        state = {
            "step": self.step,
            "learning_rate": self.learning_rate,
            "velocity": self.velocity,
            "generator": self.generator.getstate(),
        }
        return {
            STATE_OBJECT: json.dumps(state).encode(),
            WEIGHTS_OBJECT: json.dumps({"weights": self.weights}).encode(),
        }

    def take_step(self, examples: Sequence[Example]) -> None:
        """Draw a batch and move the weights by one step of gradient descent with momentum."""
        batch = [examples[int(self.generator.random() * len(examples))] for _ in range(BATCH_SIZE)]
        gradient = compute_gradient(self.weights, batch)
        self.velocity = [MOMENTUM * v + g for v, g in zip(self.velocity, gradient, strict=True)]
        self.weights = [w - self.learning_rate * v for w, v in zip(self.weights, self.velocity, strict=True)]
        self.step += 1


def compute_loss(weights: Sequence[float], examples: Sequence[Example]) -> float:
    """Compute the mean squared error over `examples`."""
    errors = [predict(weights, example)[0] - example.target for example in examples]
    return math.fsum(error * error for error in errors) / len(examples)


def predict(weights: Sequence[float], example: Example) -> tuple[float, list[float]]:
    """Return the network's output for a point, and the rectified activation of each hidden unit."""
    activations = [
        max(0.0, weights[i] * example.x + weights[i + 1] * example.y + weights[i + 2])
        for i in range(0, 4 * HIDDEN_UNITS, 4)
    ]
    output = math.fsum(weights[4 * unit + 3] * activation for unit, activation in enumerate(activations))
    return output + weights[-1], activations


def compute_gradient(weights: Sequence[float], batch: Sequence[Example]) -> list[float]:
    """Compute the gradient of the batch's mean squared error by back-propagation, in the order of `weights`."""
    per_example = [_gradient_of_one(weights, example) for example in batch]
    return [math.fsum(column) / len(batch) for column in zip(*per_example, strict=True)]


def _gradient_of_one(weights: Sequence[float], example: Example) -> list[float]:
    output, activations = predict(weights, example)
    slope = 2 * (output - example.target)
    gradient: list[float] = []
    for unit, activation in enumerate(activations):
        through_unit = slope * weights[4 * unit + 3] if activation > 0 else 0.0
        gradient += [through_unit * example.x, through_unit * example.y, through_unit, slope * activation]
    return [*gradient, slope]
