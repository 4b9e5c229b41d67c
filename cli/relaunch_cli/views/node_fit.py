"""Which nodes of a cluster have room for a pod."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.kubernetes.node_fit import NodeFit
from relaunch_cli.views.table import PlainTable


def render_fits(fits: Sequence[NodeFit], definition: JobDefinition) -> RenderableType:
    """Return the nodes in the order in which the pods of a definition would go to them, and why they would not."""
    if not fits:
        return Text("the cluster has no nodes")
    table = PlainTable("NODE", "FITS", "", prose="wrapped")
    for fit in fits:
        left = ", ".join(f"{count} {name} free" for name, count in fit.free.items())
        table.add_row(Text(fit.node), Text("yes" if fit.fits else "no"), Text(fit.reason or left))
    return Group(Text(summarize(fits, definition)), table)


def summarize(fits: Sequence[NodeFit], definition: JobDefinition) -> str:
    """Return in a line where the pods fit now."""
    where = [fit.node for fit in fits if fit.fits]
    if definition.nodes > 1:
        room = _room(fits, definition)
        rest = "" if room >= definition.nodes else ": the job would wait"
        pods = f"{min(room, definition.nodes)} of {definition.nodes} pods"
        return f"{pods} fit now, on {len(where)} of {len(fits)} nodes{rest}"
    if where:
        return f"fits now on {len(where)} of {len(fits)} nodes, first on {where[0]}"
    return f"fits on none of {len(fits)} nodes now: its pod would wait"


def _room(fits: Sequence[NodeFit], definition: JobDefinition) -> int:
    """Return how many pods of a job of several nodes, which have whole GPUs, have room on the nodes together."""
    gpu = definition.accelerator.gpu
    count = gpu.count if gpu is not None else 1
    return sum(min(fit.free.values(), default=0) // count for fit in fits if fit.fits)


def fits_json(fits: Sequence[NodeFit]) -> list[Mapping[str, Any]]:
    """Return the nodes as JSON."""
    return [{"node": fit.node, "fits": fit.fits, "reason": fit.reason or None, "free": dict(fit.free)} for fit in fits]
