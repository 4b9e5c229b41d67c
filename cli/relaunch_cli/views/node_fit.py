"""Which nodes of a cluster have room for a pod."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.kubernetes.node_fit import NodeFit
from relaunch_cli.views.table import PlainTable


def render_fits(fits: Sequence[NodeFit]) -> RenderableType:
    """Return the nodes in the order in which the pod would go to them, and why it would not."""
    if not fits:
        return Text("the cluster has no nodes")
    table = PlainTable("NODE", "FITS", "", prose="wrapped")
    for fit in fits:
        left = ", ".join(f"{count} {name} free" for name, count in fit.free.items())
        table.add_row(Text(fit.node), Text("yes" if fit.fits else "no"), Text(fit.reason or left))
    return Group(Text(summarize(fits)), table)


def summarize(fits: Sequence[NodeFit]) -> str:
    """Return in a line where the pod fits now."""
    where = [fit.node for fit in fits if fit.fits]
    if where:
        return f"fits now on {len(where)} of {len(fits)} nodes, first on {where[0]}"
    return f"fits on none of {len(fits)} nodes now: its pod would wait"


def fits_json(fits: Sequence[NodeFit]) -> list[Mapping[str, Any]]:
    """Return the nodes as JSON."""
    return [{"node": fit.node, "fits": fit.fits, "reason": fit.reason or None, "free": dict(fit.free)} for fit in fits]
