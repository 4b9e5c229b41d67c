"""What each rank runs: examples/ddp by torchrun, in a world where loopback is the network of the machines."""

import json
import queue
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from relaunch.core.definitions.definition import JobDefinition
from relaunch_local.ecs import LocalProcesses, LogTarget, ProcessSpec
from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.containers import EXAMPLES, MACHINE_ADDRESS, base_environment
from relaunch_local.stack.training_cluster import Training

DEFINITION = EXAMPLES / "ddp" / "relaunch.yaml"
TASK_DEFINITION = EXAMPLES / "ddp" / "task-definition.json"
TRAINING = Training(steps=240, step_delay_seconds=0.02, checkpoint_every=50, hold_at_step=70)
"""It is held early, and between two checkpoints; examples/ddp saves every 50 steps."""

_LOCAL = REPOSITORY / "local" / "relaunch_local"
_PROGRAMS = [_LOCAL / "ecs" / "processes" / "gloo_address.py", _LOCAL / "demo" / "gang" / "slow_training.py"]
_PROGRAM = "ddp/train.py"
_FIRST_ADDRESS = "127.48.0.{}"
"""Outside of the network of the local world, which knows nothing of these."""
_SECONDS = 600.0


class NoRanksError(Exception):
    """Ranks cannot run here; the message says what to do."""


def require_ranks() -> None:
    """Check that ranks can run.

    Raises:
        NoRanksError: they cannot.
    """
    if sys.platform != "linux":
        raise NoRanksError("the ranks listen at addresses of 127.0.0.0/8, which Linux alone has")
    if find_spec("torch") is None:
        raise NoRanksError("a training over several machines runs PyTorch: `make demo NODES=3` installs it, once")


def command_of(training: Training) -> list[str]:
    """Return the command of each rank."""
    return ["torchrun", *map(str, _PROGRAMS), _PROGRAM, "--steps", str(training.steps)]


def task_definition(training: Training) -> dict[str, Any]:
    """Return the task definition of examples/ddp with the settings of the training."""
    definition: dict[str, Any] = json.loads(TASK_DEFINITION.read_text())
    (container,) = definition["containerDefinitions"]
    variables = {**_environment(training), "HOLD_AT_STEP": str(training.hold_at_step)}
    container["environment"] += [{"name": name, "value": value} for name, value in variables.items()]
    container["command"] = command_of(training)
    return definition


def _environment(training: Training) -> dict[str, str]:
    return {"PYTHONPATH": ".", "STEP_DELAY_SECONDS": str(training.step_delay_seconds)}


def train_uninterrupted(training: Training, definition: JobDefinition) -> Sequence[Sequence[str]]:
    """Run the training from the first step to the last, without Relaunch; return what each rank has printed.

    Raises:
        OSError: an address of loopback cannot be used.
        RuntimeError: it failed.
    """
    nodes = definition.nodes
    lines: list[list[str]] = [[] for _ in range(nodes)]
    exits: queue.Queue[int] = queue.Queue()
    inputs = {f"RELAUNCH_INPUT_{name.upper()}": each.default or "" for name, each in definition.inputs.items()}
    meeting = _meeting_of(nodes)

    def take_line(target: LogTarget | None, _at: int, text: str) -> None:
        lines[int(target.stream) if target else 0].append(text)

    processes = LocalProcesses(take_line, base_environment=base_environment())
    with closing(processes):
        for rank in range(nodes):
            own = {"PET_NODE_RANK": str(rank), MACHINE_ADDRESS: _address_of(rank)}
            environment = {**_environment(training), **inputs, **meeting, **own}
            processes.start(_rank(rank, command_of(training), environment, exits), EXAMPLES)
        codes = [exits.get(timeout=_SECONDS) for _ in range(nodes)]
    if any(codes):
        raise RuntimeError("the training that nobody interrupts failed:\n" + "\n".join(map("\n".join, lines)))
    return lines


def _rank(rank: int, command: Sequence[str], environment: Mapping[str, str], exits: "queue.Queue[int]") -> ProcessSpec:
    def take_exit(code: int, _reason: str | None) -> None:
        exits.put(code)

    target = LogTarget("uninterrupted", str(rank))
    return ProcessSpec("", "", "main", "", tuple(command), environment, take_exit, target)


def _address_of(rank: int) -> str:
    return _FIRST_ADDRESS.format(rank + 4)


def _meeting_of(nodes: int) -> dict[str, str]:
    """Return what torchrun needs to find the others, as Relaunch gives it."""
    address = _address_of(0)
    with socket.socket() as free:
        free.bind((address, 0))
        port = free.getsockname()[1]
    return {"PET_NNODES": str(nodes), "PET_MASTER_ADDR": address, "PET_MASTER_PORT": str(port)}


def listening(addresses: Sequence[str], file: Path = Path("/proc/net/tcp")) -> dict[str, int]:
    """Return which of these addresses somebody listens on by name, with one of its ports (proc_net_tcp of Linux)."""
    rows = [line.split() for line in file.read_text().splitlines()[1:]]
    sockets = [row[1].split(":") for row in rows if row[3] == "0A"]
    by_address = {socket.inet_ntoa(bytes.fromhex(place)[::-1]): int(port, 16) for place, port in sockets}
    return {each: by_address[each] for each in addresses if each in by_address}
