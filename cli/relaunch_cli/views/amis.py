"""Table of the recommended machine images."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.core.offerings.instance_types import Ami
from relaunch_cli.views.table import PlainTable


def render_amis(images: Sequence[Ami]) -> RenderableType:
    """Return the images, without columns of which nothing is known, and their parameters below."""
    columns = {
        "KIND": [str(each.kind) for each in images],
        "IMAGE": [each.image_id or "?" for each in images],
        "AGENT": [each.agent_version or "" for each in images],
        "DRIVER": [each.driver_version or "" for each in images],
        "NAME": [each.image_name or "" for each in images],
    }
    known = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = PlainTable(*known, optional=("NAME", "DRIVER", "AGENT"))
    for row in zip(*known.values(), strict=True):
        table.add_row(*row)
    return Group(table, *(Text(f"{each.kind}: {each.parameter}", style="dim") for each in images))
