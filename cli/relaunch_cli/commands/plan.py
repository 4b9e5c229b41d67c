"""plan: where a job would run now, and why not elsewhere."""

# ruff: noqa: PLC0415 - each command imports what it needs, so that `relaunch --help` needs none of it

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch_cli import exit_codes
from relaunch_cli.commands.amis import find_type
from relaunch_cli.commands.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.errors import CommandError, reported
from relaunch_cli.lookup import connect

if TYPE_CHECKING:
    from relaunch.usecases.plan_jobs import Plan

commands = typer.Typer()
_ROWS = 10

_Text = str | None
_Texts = list[str] | None


@commands.command()
@reported
def plan(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    target: Annotated[
        _Text, typer.Argument(metavar="DEFINITION|FILE", help="A registered definition, or a file of definitions.")
    ] = None,
    gpu: Annotated[_Text, typer.Option(metavar="COUNT", help="NVIDIA GPUs, all in one machine.")] = None,
    memory: Annotated[_Text, typer.Option(metavar="SIZE", help="Least memory of each GPU, like 24GiB.")] = None,
    model: Annotated[
        _Texts, typer.Option(metavar="MODEL", help="GPU model, like A10G; repeat for any of more.")
    ] = None,
    compute_percent: Annotated[
        _Text, typer.Option(metavar="PERCENT", help="A share of one GPU: this much of its compute, and --memory.")
    ] = None,
    isolation: Annotated[
        _Text, typer.Option(metavar="KIND", help="How a share is kept apart: best-effort or required.")
    ] = None,
    compute_capability: Annotated[
        _Text, typer.Option(metavar="VERSION", help="Least compute capability, like 8.0, or bf16.")
    ] = None,
    interconnect: Annotated[_Text, typer.Option(metavar="KIND", help="efa or nvlink.")] = None,
    driver: Annotated[_Text, typer.Option(hidden=True)] = None,
    neuron_devices: Annotated[_Text, typer.Option(metavar="COUNT", help="Trainium or Inferentia chips.")] = None,
    neuron_cores: Annotated[_Text, typer.Option(metavar="COUNT", help="Cores of such chips.")] = None,
    instance_type: Annotated[
        _Texts, typer.Option(metavar="TYPE", help="Only this instance type; repeat for any of more.")
    ] = None,
    vcpus: Annotated[_Text, typer.Option(metavar="NUMBER", help="vCPU that the task reserves.")] = None,
    ram: Annotated[_Text, typer.Option(metavar="SIZE", help="Memory that the task reserves, like 16GiB.")] = None,
    architecture: Annotated[_Text, typer.Option(metavar="KIND", help="What the image is for: x86_64 or arm64.")] = None,
    disk: Annotated[_Text, typer.Option(metavar="SIZE", help="Disk of the machine, like 200GiB.")] = None,
    purchase: Annotated[
        _Text, typer.Option(metavar="HOW", help="spot, on-demand or spot-then-on-demand (the default).")
    ] = None,
    max_price: Annotated[_Text, typer.Option(metavar="USD", help="Highest price of one machine per hour.")] = None,
    estimated_duration: Annotated[
        _Text, typer.Option(metavar="TIME", help="How long the training takes, like 20h: ranks by cost to finish.")
    ] = None,
    checkpoint: Annotated[
        _Text, typer.Option(metavar="S3_URI", help="The training keeps checkpoints: an interruption costs little.")
    ] = None,
    region: Annotated[str, typer.Option(metavar="REGION", help="Default: the one you work in.")] = "",
    zone: Annotated[_Texts, typer.Option(metavar="ZONE", help="Only this zone; repeat for more.")] = None,
    is_offline: Annotated[
        bool, typer.Option("--offline", help="Ask nothing of AWS: use the bundled catalogue.")
    ] = False,
    has_all_types: Annotated[
        bool, typer.Option("--all-types", help="Every type of the region, not the stack's capacity providers alone.")
    ] = False,
    explained: Annotated[
        str, typer.Option("--explain", metavar="TYPE", help="Say why this instance type is not chosen.")
    ] = "",
    limit: Annotated[
        int, typer.Option(min=0, metavar="N", help="Lines of what satisfies the job; 0 shows all.")
    ] = _ROWS,
    is_full: Annotated[bool, typer.Option("--all", help="Name every offering, rejected ones too.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show where a job would run now, and why not elsewhere: a definition's, a FILE's, or one that options describe.

    Nothing is launched. The exit status is 4 when nothing satisfies the job right now. Without credentials, region or
    stack, files and options are planned offline: every type of the bundled catalogue, at its reference price.

    \b
    relaunch plan --gpu 1 --memory 24GiB --model A10G --purchase spot
    relaunch plan --gpu 1 --memory 2GiB --compute-percent 30
    relaunch plan --neuron-cores 4 --explain inf2.xlarge
    """  # noqa: D301 - click's mark for lines to be left as they are
    from relaunch_cli.planning import PlanMaker
    from relaunch_cli.views.plan import print_json, show_plans

    options = {
        option: value
        for option, value in {
            "--gpu": gpu,
            "--memory": memory,
            "--model": model,
            "--compute-percent": compute_percent,
            "--isolation": isolation,
            "--compute-capability": compute_capability,
            "--interconnect": interconnect,
            "--driver": driver,
            "--neuron-devices": neuron_devices,
            "--neuron-cores": neuron_cores,
            "--instance-type": instance_type,
            "--vcpus": vcpus,
            "--ram": ram,
            "--architecture": architecture,
            "--disk": disk,
            "--purchase": purchase,
            "--max-price": max_price,
            "--estimated-duration": estimated_duration,
            "--checkpoint": checkpoint,
        }.items()
        if value is not None and value != []
    }
    check_way(target, options, is_offline=is_offline)
    machine = find_type(explained) if explained else None
    maker = PlanMaker(connect(context, stack, region), region, zone or [], is_offline, has_all_types)
    if options:
        ground, plans = maker.plan_request(options)
    elif is_file(target or ""):
        ground, plans = maker.plan_file(Path(target or ""))
    else:
        ground, plans = maker.plan_registered(target or "")
    if as_json:
        print_json(plans, ground, machine)
    else:
        show_plans(plans, ground, machine, limit=0 if is_full else limit, is_full=is_full)
    raise typer.Exit(exit_code_of(plans))


def check_way(target: str | None, options: Mapping[str, object], *, is_offline: bool) -> None:
    """Refuse what is not exactly one of a definition, a file, and options.

    Raises:
        CommandError: it says which of them there are.
    """
    if target is None and not options:
        raise CommandError("what is to be planned?", "name a definition or a FILE, or describe a job: --gpu 1")
    if target is not None and options:
        raise CommandError(f"{' and '.join(options)} would describe another job than {target!r}: give one of the two")
    if is_offline and target is not None and not is_file(target):
        hint = "name the FILE it was registered from, or describe a job: --gpu 1"
        raise CommandError(f"the registered definition {target!r} is in the stack, which --offline does not ask", hint)


def is_file(target: str) -> bool:
    """Tell whether a file of definitions is meant, not a definition."""
    file = Path(target)
    return file.suffix in {".yaml", ".yml"} or file.is_file()


def exit_code_of(plans: "Sequence[Plan]") -> int:
    """Return 3 when a task definition is missing, 4 when nothing satisfies a job, else 0."""
    if any(each.selection is None for each in plans):
        return exit_codes.NOT_FOUND
    return exit_codes.OK if all(each.selection and each.selection.kept for each in plans) else exit_codes.UNAVAILABLE
