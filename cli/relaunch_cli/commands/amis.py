"""amis: the machine images that ECS recommends."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.options import DEFAULT_STACK, Json
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.core.offerings.amis import Ami, AmiKind, AmiSystem
    from relaunch.core.offerings.instance_types import InstanceType
    from relaunch_cli.aws.connection import Connection

commands = typer.Typer()


@commands.command()
@reported
def amis(
    context: typer.Context,
    types: Annotated[list[str] | None, typer.Argument(metavar="[TYPE]...", help="Only what these types need.")] = None,
    region: Annotated[str, typer.Option("--region", help="Of this region; default: the one you work in.")] = "",
    is_old: Annotated[bool, typer.Option("--amazon-linux-2", help="Of Amazon Linux 2 instead of 2023.")] = False,
    as_json: Json = False,
) -> None:
    """Show the ECS-optimized images for GPU and Neuron machines.

    No stack is needed. A launch template can name the parameter itself: `resolve:ssm:PARAMETER/image_id`.
    """
    from relaunch.core.offerings.amis import AmiKind, AmiSystem, ami_kind, system_notice
    from relaunch_cli.views.json_output import dump
    from relaunch_cli.views.screen import remark, say

    machines = [find_type(name) for name in types or ()]
    kinds = sorted({kind for machine in machines if (kind := ami_kind(machine))}) if machines else list(AmiKind)
    system = AmiSystem.AMAZON_LINUX_2 if is_old else AmiSystem.AMAZON_LINUX_2023
    found = ask_for_images(connect(context, DEFAULT_STACK), region, kinds, system)
    if as_json:
        say(dump({"images": [image_shape(each) for each in found], "misfits": misfits(machines)}))
    else:
        show_images(found)
    for name, rejection in misfits(machines).items():
        remark(f"{name}: {rejection}")
    if system_notice(system):
        remark(system_notice(system))
    if not all(each.image_id for each in found):
        raise typer.Exit(exit_codes.NOT_FOUND)


def find_type(name: str) -> "InstanceType":
    """Find an instance type in the bundled catalogue.

    Raises:
        CommandError: there is none of this name.
    """
    from relaunch.adapters.offerings.bundled import load_catalogue
    from relaunch.core.offerings.instance_types import nearest_names

    if name in load_catalogue():
        return load_catalogue()[name]
    near = nearest_names(name, load_catalogue())
    hint = f"did you mean {' or '.join(near)}?" if near else ""
    raise CommandError(f"there is no accelerated instance type {name!r}", hint)


def ask_for_images(
    connection: "Connection", region: str, kinds: "Sequence[AmiKind]", system: "AmiSystem"
) -> "Sequence[Ami]":
    """Ask SSM; when it does not answer, return the parameters alone and say so."""
    from relaunch.core.offerings.amis import Ami, ami_absence, ami_parameter
    from relaunch.ports import TransientError
    from relaunch_cli.views.screen import progress, remark

    source = connection.amis(region)
    try:
        with progress("reading recommended images"):
            found = source.recommended(kinds, system)
    except TransientError as error:
        remark(f"{error}")
        remark("SSM does not answer now; a launch template that names the parameter finds its image by itself")
        return [Ami(kind, system, source.region, ami_parameter(kind, system)) for kind in kinds]
    for each in found:
        if not each.image_id:
            remark(f"{each.kind}: {ami_absence(each.kind, each.region)}")
    return found


def misfits(machines: "Sequence[InstanceType]") -> dict[str, str]:
    """Return what speaks against the recommended images, by type."""
    from relaunch.core.offerings.amis import ami_rejection

    return {machine.name: ami_rejection(machine) for machine in machines if ami_rejection(machine)}


def show_images(found: "Sequence[Ami]") -> None:
    """Print images as a table, without the columns of what is not told, and the parameters beneath."""
    from rich.text import Text

    from relaunch_cli.views.screen import plain_table, show

    columns = {
        "KIND": [str(each.kind) for each in found],
        "IMAGE": [each.image_id or "?" for each in found],
        "AGENT": [each.agent_version or "" for each in found],
        "DRIVER": [each.driver_version or "" for each in found],
        "NAME": [each.image_name or "" for each in found],
    }
    told = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = plain_table(*told)
    for row in zip(*told.values(), strict=True):
        table.add_row(*row)
    show(table, *(Text(f"{each.kind}: {each.parameter}", style="dim") for each in found))


def image_shape(image: "Ami") -> dict[str, object]:
    """Return an image as a JSON-ready mapping."""
    return {
        "kind": image.kind,
        "system": image.system,
        "region": image.region,
        "parameter": image.parameter,
        "image_id": image.image_id,
        "image_name": image.image_name,
        "agent_version": image.agent_version,
        "runtime_version": image.runtime_version,
        "driver_version": image.driver_version,
    }
