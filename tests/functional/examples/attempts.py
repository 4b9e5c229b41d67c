"""Runs the attempts of a job of the example training as real processes and reads what they print."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.repository import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
PATIENCE_SECONDS = 300

Event = dict[str, Any]


@dataclass
class Training:
    """One attempt: its process and what it has printed so far."""

    process: subprocess.Popen[str]
    events: list[Event] = field(default_factory=list)
    complaint: str = ""

    def read_until(self, step: int) -> None:
        for event in self._read():
            if event["event"] == "step" and event["step"] == step:
                return
        pytest.fail(f"the training ended before step {step}: {self.events[-1:]}")

    def interrupt_after(self, step: int) -> int:
        self.read_until(step)
        self.process.send_signal(signal.SIGTERM)
        return self.finish()

    def finish(self) -> int:
        """Read to the end and answer the exit status; what the training complained about is then in `complaint`."""
        list(self._read())
        assert self.process.stderr is not None
        self.complaint = self.process.stderr.read()
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def named(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    @property
    def result(self) -> tuple[float, str]:
        """The final loss and the digest of the final weights."""
        (finished,) = self.named("finished")
        return finished["loss"], finished["weights_sha256"]

    def _read(self) -> Iterator[Event]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # relaunch_training prints lines of its own.
            if line.startswith("relaunch: "):
                continue
            self.events.append(json.loads(line))
            yield self.events[-1]


@dataclass
class Job:
    """Starts the attempts of one job, with the environment that Relaunch gives them."""

    uri: str
    running: list[Training] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, *arguments: str, resume: str | None = None, **environment: str) -> Training:
        attempt = len(self.running) + 1
        contract = {
            "RELAUNCH_JOB_ID": "job-1",
            "RELAUNCH_ATTEMPT": str(attempt),
            "RELAUNCH_CHECKPOINT_URI": f"{self.uri}attempt-{attempt}/",
        }
        if resume:
            contract["RELAUNCH_RESUME_URI"] = resume
        process = subprocess.Popen(
            [sys.executable, "-m", "train", *arguments],
            cwd=EXAMPLES,
            env={"PATH": os.environ["PATH"], **self.environment, **contract, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(Training(process))
        return self.running[-1]

    def run(self, *arguments: str, resume: str | None = None, **environment: str) -> Training:
        training = self.start(*arguments, resume=resume, **environment)
        training.finish()
        return training

    def run_alone(self, *arguments: str, **environment: str) -> Training:
        """Run a training that saves nothing, and so resumes from nothing."""
        return self.run(*arguments, RELAUNCH_CHECKPOINT_URI="", **environment)

    def close(self) -> None:
        for training in self.running:
            with training.process as process:
                process.kill()
