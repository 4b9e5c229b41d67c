"""The environment that a container of a gang has: which rank it is, of how many, and where the others meet.

The names that begin with `PET_` are those that torchrun reads its options from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address
from typing import Any, Protocol

from relaunch_local.ecs import ProcessSpec

_NAMES = (
    "RELAUNCH_JOB_ID", "RELAUNCH_ATTEMPT", "RELAUNCH_NODES", "RELAUNCH_NODE_RANK", "RELAUNCH_MASTER_ADDR",
    "RELAUNCH_MASTER_PORT", "RELAUNCH_GROUP",
)  # fmt: skip
_OPTIONS_OF_TORCHRUN = {
    "PET_NNODES": "RELAUNCH_NODES",
    "PET_NODE_RANK": "RELAUNCH_NODE_RANK",
    "PET_MASTER_ADDR": "RELAUNCH_MASTER_ADDR",
    "PET_MASTER_PORT": "RELAUNCH_MASTER_PORT",
}
RANK_VARIABLES = (*_NAMES, *_OPTIONS_OF_TORCHRUN)
SHUTDOWN_VARIABLE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
"""How long torchrun lets its workers save after SIGTERM, from version 2.12 on."""
PROCESSES_VARIABLE = "PET_NPROC_PER_NODE"
"""How many processes torchrun starts; one without it, whatever GPUs there are (torch/distributed/run.py)."""
_SHUTDOWN_SECONDS = 30.0
_PORTS = range(1, 65_536)


@dataclass(frozen=True, slots=True)
class RankEnvironment:
    """A rank's place in its gang."""

    job_id: str
    attempt: int
    nodes: int
    rank: int
    store: tuple[str, int]
    """The address and the port at which rank 0 listens and the ranks meet."""
    group: str
    """The generation: no other one of any job has this name."""
    shutdown_seconds: float = _SHUTDOWN_SECONDS
    """How long after SIGTERM torchrun kills its workers."""
    processes: int = 1
    """How many workers torchrun starts."""
    gpus: int = 1
    """How many GPUs the agent of ECS gave the container; 1 where it does not say so, as in a pod."""


class Network(Protocol):
    """How the ranks of a gang find the first one."""

    may_change: bool
    """Whether what leads nowhere now may lead somewhere later."""

    def check_address(self, address: str) -> None:
        """Check that this may be where rank 0 is.

        Raises:
            ValueError: it may not.
        """

    def is_reached(self, spec: ProcessSpec) -> bool:
        """Return whether others reach a rank."""

    def leads_to(self, address: str, spec: ProcessSpec) -> bool:
        """Return whether this address is that of a rank."""


class HostNetwork:
    """Implements Network for containers with the network of their machines, which have its address."""

    may_change = False

    def check_address(self, address: str) -> None:
        try:
            IPv4Address(address)
        except AddressValueError as error:
            raise ValueError(f"RELAUNCH_MASTER_ADDR: {error}") from error

    def is_reached(self, spec: ProcessSpec) -> bool:
        return bool(spec.address)

    def leads_to(self, address: str, spec: ProcessSpec) -> bool:
        return spec.address == address


HOST_NETWORK = HostNetwork()


def is_of_gang(environment: Mapping[str, str]) -> bool:
    """Return whether a container is one of several that train together."""
    return environment.get("RELAUNCH_NODES", "1") != "1"


def has_next_rank(run_task: Mapping[str, Any]) -> bool:
    """Return whether a RunTask is to launch a rank that another one follows."""
    containers = run_task.get("overrides", {}).get("containerOverrides", ())
    given = {pair["name"]: pair["value"] for each in containers for pair in each.get("environment", ())}
    return int(given.get("RELAUNCH_NODE_RANK", 0)) + 1 < int(given.get("RELAUNCH_NODES", 1))


def read_rank(environment: Mapping[str, str], network: Network = HOST_NETWORK) -> RankEnvironment:
    """Return a rank's place in its gang.

    Raises:
        ValueError: what is missing, contradicts itself, or is no number or address.
    """
    missing = [name for name in RANK_VARIABLES if not environment.get(name)]
    if missing:
        raise ValueError(f"{', '.join(missing)} not set")
    for name, source in _OPTIONS_OF_TORCHRUN.items():
        if environment[name] != environment[source]:
            raise ValueError(f"{name} is {environment[name]}, {source} is {environment[source]}")
    nodes = int(environment["RELAUNCH_NODES"])
    rank = int(environment["RELAUNCH_NODE_RANK"])
    port = int(environment["RELAUNCH_MASTER_PORT"])
    if rank not in range(nodes) or port not in _PORTS:
        raise ValueError(f"rank {rank} of {nodes} at port {port}")
    address = environment["RELAUNCH_MASTER_ADDR"]
    network.check_address(address)
    return RankEnvironment(
        environment["RELAUNCH_JOB_ID"],
        int(environment["RELAUNCH_ATTEMPT"]),
        nodes,
        rank,
        (address, port),
        environment["RELAUNCH_GROUP"],
        float(environment.get(SHUTDOWN_VARIABLE) or _SHUTDOWN_SECONDS),
        int(environment.get(PROCESSES_VARIABLE) or 1),
        len(environment.get("NVIDIA_VISIBLE_DEVICES", "").split(",")),
    )
