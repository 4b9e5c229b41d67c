"""The same training without an interruption, to compare with."""

import json
import subprocess
import sys
from typing import Any

from relaunch_local.stack.containers import EXAMPLES
from relaunch_local.stack.training_cluster import Training


def train_uninterrupted(training: Training) -> dict[str, Any]:
    """Run the training of examples/ from its first step to its last; return what it says when it has finished."""
    result = subprocess.run(
        [sys.executable, "-m", "train", "--steps", str(training.steps)],
        cwd=EXAMPLES,
        env={"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    finished: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return finished
