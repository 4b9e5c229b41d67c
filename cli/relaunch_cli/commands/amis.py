"""`relaunch amis`."""

from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.offerings.instance_types import (
    Ami,
    AmiKind,
    AmiSystem,
    ami_absence,
    ami_kind,
    ami_parameter,
    ami_rejection,
    system_notice,
)
from relaunch.ports import TransientError
from relaunch_cli import exit_codes
from relaunch_cli.lookup import connect, find_instance_type
from relaunch_cli.options import DEFAULT_STACK, Json
from relaunch_cli.value_completions import complete_region, complete_type
from relaunch_cli.views.amis import render_amis
from relaunch_cli.views.json_output.amis import amis_json
from relaunch_cli.views.screen import print_json, print_note, print_result, progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch_cli.aws.connected import Connection


def amis(
    context: typer.Context,
    types: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TYPE", help="Instance types to show images for; default: all.", autocompletion=complete_type
        ),
    ] = None,
    region: Annotated[
        str,
        typer.Option(
            "--region", metavar="REGION", help="AWS region; default: the one in use.", autocompletion=complete_region
        ),
    ] = "",
    *,
    is_old: Annotated[bool, typer.Option("--amazon-linux-2", help="Amazon Linux 2 instead of 2023.")] = False,
    as_json: Json = False,
) -> None:
    """Show the ECS-optimized AMIs for GPU and Neuron instances.

    No stack is needed. A launch template can refer to the parameter itself: `resolve:ssm:PARAMETER/image_id`.
    """
    machines = [find_instance_type(name) for name in types or ()]
    kinds = sorted({kind for machine in machines if (kind := ami_kind(machine))}) if machines else list(AmiKind)
    system = AmiSystem.AMAZON_LINUX_2 if is_old else AmiSystem.AMAZON_LINUX_2023
    rejections = {machine.name: reason for machine in machines if (reason := ami_rejection(machine))}
    images, is_answered = _load_images(connect(context, DEFAULT_STACK), region, kinds, system)
    if as_json:
        print_json(amis_json(images, rejections))
    else:
        print_result(render_amis(images))
    for name, reason in rejections.items():
        print_note(f"{name}: {reason}")
    if notice := system_notice(system):
        print_note(notice)
    if not is_answered:
        raise typer.Exit(exit_codes.REFUSED)
    if not all(each.image_id for each in images):
        raise typer.Exit(exit_codes.NOT_FOUND)


def _load_images(
    connection: "Connection", region: str, kinds: "Sequence[AmiKind]", system: "AmiSystem"
) -> "tuple[Sequence[Ami], bool]":
    """Read the images from SSM; if it does not answer, print so and return only the parameters, and False."""
    source = connection.amis(region)
    try:
        with progress("reading recommended images"):
            images = source.recommended(kinds, system)
    except TransientError as error:
        print_note(str(error))
        print_note("SSM does not answer now; a launch template that refers to the parameter still finds its image")
        return [Ami(kind, system, source.region, ami_parameter(kind, system)) for kind in kinds], False
    for each in images:
        if not each.image_id:
            print_note(f"{each.kind}: {ami_absence(each.kind, each.region)}")
    return images, True
