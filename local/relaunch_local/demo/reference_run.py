"""The uninterrupted training that interrupted ones are compared with."""

import json
import subprocess
import sys
from typing import Any

from relaunch_local.stack.containers import EXAMPLES
from relaunch_local.stack.training_cluster import Training


def train_uninterrupted(training: Training) -> dict[str, Any]:
    """Run the training of examples/ from the first step to the last; return its last log entry."""
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
