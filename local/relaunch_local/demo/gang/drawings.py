"""What the demo draws of several machines: where the ranks are, how they ended, and what they end with."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from relaunch_cli.views.table import PlainTable
from relaunch_local.demo.outcome import RankResult

SHOWN_ENVIRONMENT = (
    *("PET_NNODES", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"),
    *("RELAUNCH_CHECKPOINT_URI", "RELAUNCH_RESUME_URI"),
)
_SHOWN_DIGITS = 16


def draw_machines(instances: Sequence[Mapping[str, Any]]) -> PlainTable:
    """Return a table of the machines of all ranks, as EC2 describes their instances."""
    table = PlainTable("RANK", "INSTANCE", "TYPE", "ZONE", "ADDRESS")
    for rank, each in enumerate(instances):
        place = (each["InstanceType"], each["Placement"]["AvailabilityZone"], each["PrivateIpAddress"])
        table.add_row(str(rank), each["InstanceId"], *place)
    return table


def draw_ends(exit_codes: Sequence[int | None], warned: int, step: int) -> PlainTable:
    """Return a table of how the tasks of all ranks ended; one of the machines was `warned`."""
    table = PlainTable("RANK", "ITS MACHINE", "ITS WORKER", "TORCHRUN ENDS WITH")
    for rank, code in enumerate(exit_codes):
        machine = Text("warned", style="yellow") if rank == warned else "is not warned"
        table.add_row(str(rank), machine, f"saved step {step}", "" if code is None else str(code))
    return table


def draw_comparison(results: Sequence[RankResult], others: Sequence[RankResult], step: int) -> PlainTable:
    """Return a table of what all ranks end with, interrupted at a step and not."""
    table = PlainTable("TRAINING", "RANK", "LOSS, EVERY BIT OF IT", "WEIGHTS")
    for name, ranks in ((f"interrupted at {step}", results), ("never interrupted", others)):
        for each in ranks:
            weights = f"{each.weights_sha256[:_SHOWN_DIGITS]}…"
            table.add_row(name, str(each.rank), Text(each.loss, style="bold green"), Text(weights, style="bold green"))
    return table
