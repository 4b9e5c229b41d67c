"""Runs a training over several machines, each an agent of torchrun at an address of loopback of its own."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fakes.builders import make_attempt, make_definition, make_job, make_placement
from functional.examples.attempts import EXAMPLES
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.jobs.attempt import Rank
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch_plan import rank_environment

PATIENCE_SECONDS = 300


@dataclass
class Machine:
    """One machine of a gang: its agent, and what its processes have printed."""

    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)

    def wait_for(self, text: str) -> None:
        """Read until a line has the text."""
        for line in self._read():
            if text in line:
                return
        raise AssertionError(f"the machine ended without {text!r}:\n" + "".join(self.output)[-4000:])

    def stop(self) -> None:
        """Send SIGTERM to the agent, as ECS does to the first process of a container."""
        self.process.send_signal(signal.SIGTERM)

    def lose(self) -> None:
        """Kill all its processes at once, as the loss of the host does."""
        doomed = [self.process.pid, *_descendants(self.process.pid)]
        for number in (signal.SIGSTOP, signal.SIGKILL):  # none sees another one die
            for pid in doomed:
                os.kill(pid, number)

    def wait_for_exit_barrier(self) -> None:
        """Wait until the worker has ended and its agent waits for those of the others."""
        while self.children:
            os.sched_yield()
        ignored = 1 << signal.SIGTERM - 1
        if "torch.distributed.run" in self.process.args:
            time.sleep(2)  # real torchrun shows nothing outside
        else:
            while (
                not int(re.findall("SigIgn:\t(.*)", Path(f"/proc/{self.process.pid}/status").read_text())[0], 16)
                & ignored
            ):
                os.sched_yield()

    def end(self) -> int:
        """Read to the end; return the exit code."""
        list(self._read())
        return self.process.wait(PATIENCE_SECONDS)

    @property
    def children(self) -> list[int]:
        """The processes that its agent has started."""
        return _children(self.process.pid)

    @property
    def text(self) -> str:
        return "".join(self.output)

    def _read(self) -> Iterator[str]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            yield line


@dataclass
class Gang:
    """Starts the machines of each attempt of a job, with what Relaunch gives their containers."""

    folder: Path
    command: list[str]
    nodes: int = 3
    gpus: int = 1
    """What the definition asks for on each; there are none here, which neither torchrun nor gloo asks."""
    environment: dict[str, str] = field(default_factory=dict)
    machines: list[Machine] = field(default_factory=list)
    port: int = 0

    def start(self, attempt: int = 1, resume: str | None = None) -> list[Machine]:
        self.port = _free_port()
        return [self.start_machine(rank, attempt, resume) for rank in range(self.nodes)]

    def start_machine(self, rank: int, attempt: int = 1, resume: str | None = None) -> Machine:
        folder = self.folder / f"attempt-{attempt}-machine-{rank}"
        folder.mkdir(parents=True)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(EXAMPLES),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "MACHINE_ADDRESS": f"127.0.0.{11 + rank}",
            "RELAUNCH_JOB_ID": "job-1",
            "RELAUNCH_ATTEMPT": str(attempt),
            "RELAUNCH_CHECKPOINT_URI": f"file://{self.folder}/job-1/attempt-{attempt}/",
        }
        environment |= rank_environment(self._job(attempt), rank)
        environment |= {name: str(self.port) for name in environment if name.endswith("_MASTER_PORT")}
        environment |= {"RELAUNCH_RESUME_URI": resume} if resume else {}
        environment |= self.environment
        process = subprocess.Popen(
            self.command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.machines.append(Machine(process))
        return self.machines[-1]

    def _job(self, attempt: int) -> Job:
        followers = tuple(Rank(f"m-{rank}", f"i-{rank}") for rank in range(1, self.nodes))
        placement = make_placement(followers=followers, master_address="127.0.0.11")
        accelerator = AcceleratorRequirement(gpu=GpuRequirement(count=self.gpus))
        definition = make_definition(nodes=self.nodes, accelerator=accelerator)
        return make_job("job-1", definition=definition, attempt=make_attempt(attempt, placement=placement))

    def close(self) -> None:
        for machine in self.machines:
            with machine.process:
                if machine.process.poll() is None:
                    machine.lose()


def _descendants(pid: int) -> list[int]:
    return [each for child in _children(pid) for each in (child, *_descendants(child))]


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.11", 0))
        return int(one.getsockname()[1])
