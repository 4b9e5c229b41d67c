"""Runs a training as if its steps took longer, and says what the demo reads: `slow_training.py PROGRAM …`.

What examples/relaunch_training.py does at the end of a step is extended: rank 0 writes the loss as JSON, as
examples/train does, and all wait for a moment. The first attempt waits at the step HOLD_AT_STEP until it is to stop: a
training of seconds could be over before the warning, on a machine that has other things to do.
"""

import json
import os
import runpy
import sys
import time
from typing import Any

from relaunch_training import Checkpoint, Checkpoints

POLL_SECONDS = 0.02
HOLD_SECONDS = 900.0
"""The demo has failed by then."""

DELAY_SECONDS = float(os.environ.get("STEP_DELAY_SECONDS", "0"))
HOLD_AT_STEP = int(os.environ.get("HOLD_AT_STEP", "0"))


class SlowCheckpoints(Checkpoints):
    """Those of the training, with slower steps."""

    def resume(self, *arguments: Any, **options: Any) -> Checkpoint | None:
        """Resume, and say where."""
        if (found := super().resume(*arguments, **options)) is not None:
            _say("resumed", rank=self.rank, step=found.step)
        return found

    def report(self, step: int, total_steps: int | None = None, **metrics: Any) -> None:
        """Report the loss, and wait."""
        super().report(step, total_steps, **metrics)
        if self.rank == 0:
            _say("step", step=step, loss=float(metrics["loss"]))
        if self.attempt == 1 and step == HOLD_AT_STEP:
            _say("held", rank=self.rank, step=step)
            self._wait(HOLD_SECONDS)
        self._wait(DELAY_SECONDS)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.stop_requested and time.monotonic() < end:
            time.sleep(POLL_SECONDS)


def _say(event: str, **facts: object) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


if __name__ == "__main__":
    sys.modules["relaunch_training"].Checkpoints = SlowCheckpoints  # type: ignore[attr-defined]
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
