"""`relaunch plan`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.core.definitions.targets import Target
from relaunch_cli import exit_codes, planning
from relaunch_cli.completions import complete_definition
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect, find_instance_type, names_stack
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.value_completions import (
    complete_model,
    complete_neuron_model,
    complete_purchase,
    complete_region,
    complete_target,
    complete_type,
    one_of,
)
from relaunch_cli.views.json_output.plans import plans_json
from relaunch_cli.views.plan import PlanOptions, plan_notes, render_plans
from relaunch_cli.views.screen import print_json, print_note, print_result
from relaunch_cli.views.selection import SelectionOptions

if TYPE_CHECKING:
    from relaunch.usecases.plan_jobs import Plan

_Text = str | None
_Texts = list[str] | None


def plan(  # noqa: PLR0913, PLR0917 - a command has the options it has
    context: typer.Context,
    target: Annotated[
        _Text,
        typer.Argument(
            metavar="DEFINITION|FILE",
            help="Name of a registered job definition, or a definition file.",
            # What is no beginning of a name is completed by the shell, as a file.
            autocompletion=complete_definition,
        ),
    ] = None,
    gpu: Annotated[_Text, typer.Option(metavar="COUNT", help="Number of NVIDIA GPUs.")] = None,
    gpu_memory: Annotated[
        _Text, typer.Option(metavar="SIZE", help="Minimum memory per GPU, for example 24GiB; of a share, its memory.")
    ] = None,
    model: Annotated[
        _Texts,
        typer.Option(metavar="MODEL", help="GPU model, for example A10G; repeatable.", autocompletion=complete_model),
    ] = None,
    compute_percent: Annotated[
        _Text, typer.Option(metavar="PERCENT", help="Share of one GPU: percent of its compute, with --gpu-memory.")
    ] = None,
    isolation: Annotated[
        _Text,
        typer.Option(
            metavar="KIND",
            help="Isolation of a share: best-effort, required.",
            autocompletion=one_of("best-effort", "required"),
        ),
    ] = None,
    compute_capability: Annotated[
        _Text, typer.Option(metavar="VERSION", help="Minimum compute capability (8.0), or bf16.")
    ] = None,
    interconnect: Annotated[
        _Text, typer.Option(metavar="KIND", help="Interconnect: efa or nvlink.", autocompletion=one_of("efa", "nvlink"))
    ] = None,
    driver: Annotated[
        _Text, typer.Option("--driver", "--gpu-driver", metavar="VERSION", help="acs: driver, for example 535.161.08.")
    ] = None,
    neuron_devices: Annotated[
        _Text, typer.Option(metavar="COUNT", help="Number of Trainium or Inferentia devices.")
    ] = None,
    neuron_cores: Annotated[_Text, typer.Option(metavar="COUNT", help="Number of NeuronCores.")] = None,
    neuron_model: Annotated[
        _Texts,
        typer.Option(
            metavar="MODEL",
            help="Model of the devices, for example Trainium2; repeatable.",
            autocompletion=complete_neuron_model,
        ),
    ] = None,
    neuron_purpose: Annotated[
        _Text,
        typer.Option(
            metavar="PURPOSE",
            help="training (default) or inference; Inferentia is for inference only.",
            autocompletion=one_of("training", "inference"),
        ),
    ] = None,
    instance_type: Annotated[
        _Texts, typer.Option(metavar="TYPE", help="Only this instance type; repeatable.", autocompletion=complete_type)
    ] = None,
    vcpus: Annotated[_Text, typer.Option(metavar="NUMBER", help="vCPUs that the task reserves.")] = None,
    memory: Annotated[
        _Text,
        typer.Option("--memory", "--ram", metavar="SIZE", help="Memory that the task reserves (30GiB)."),
    ] = None,
    architecture: Annotated[
        _Text,
        typer.Option(
            metavar="KIND",
            help="Architecture of the image: x86_64 (default) or arm64.",
            autocompletion=one_of("x86_64", "arm64"),
        ),
    ] = None,
    disk: Annotated[_Text, typer.Option(metavar="SIZE", help="Disk size of the instance, for example 200GiB.")] = None,
    purchase: Annotated[
        _Text,
        typer.Option(
            metavar="OPTION",
            help="spot, on-demand or spot-then-on-demand (default), also with reserved-then- in front; reserved.",
            autocompletion=complete_purchase,
        ),
    ] = None,
    max_price: Annotated[_Text, typer.Option(metavar="USD", help="Maximum price per instance and hour.")] = None,
    estimated_duration: Annotated[
        _Text,
        typer.Option(
            metavar="TIME[@MODEL]",
            help="Estimated duration and where it was measured, for example 20h@A10G; ranks by cost to finish.",
        ),
    ] = None,
    checkpoint: Annotated[
        _Text, typer.Option(metavar="S3_URI", help="Location of checkpoints; makes interruptions cheaper.")
    ] = None,
    cluster: Annotated[
        _Text,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Where it runs: ecs (default), kubernetes, ack or acs.",
            autocompletion=complete_target,
        ),
    ] = None,
    image: Annotated[_Text, typer.Option(metavar="IMAGE", help="clusters: container image.")] = None,
    gpu_resource: Annotated[
        _Text,
        typer.Option(metavar="NAME", help="kubernetes, ack: what a GPU is, for example nvidia.com/mig-1g.5gb."),
    ] = None,
    gpu_sharing: Annotated[
        _Text,
        typer.Option(
            metavar="MODE",
            help="ack: exclusive, cgpu, core_mem, share or mps.",
            autocompletion=one_of("exclusive", "cgpu", "core_mem", "share", "mps"),
        ),
    ] = None,
    gpu_placement: Annotated[
        _Text,
        typer.Option(
            metavar="KIND", help="ack: nodes with binpack or spread.", autocompletion=one_of("binpack", "spread")
        ),
    ] = None,
    compute_class: Annotated[
        _Text,
        typer.Option(metavar="CLASS", help="acs: gpu (default) or gpu-hpn.", autocompletion=one_of("gpu", "gpu-hpn")),
    ] = None,
    card_memory: Annotated[
        _Text, typer.Option(metavar="SIZE", help="acs: memory of a whole GPU, for a share on gpu-hpn.")
    ] = None,
    cluster_region: Annotated[
        _Text, typer.Option(metavar="REGION", help="ack: Alibaba Cloud region of the cluster, for example cn-beijing.")
    ] = None,
    labels: Annotated[
        _Texts, typer.Option("--label", metavar="KEY=VALUE", help="clusters: label of the pod; repeatable.")
    ] = None,
    node_selector: Annotated[
        _Texts, typer.Option(metavar="KEY=VALUE", help="clusters: label that its node must have; repeatable.")
    ] = None,
    service_account: Annotated[
        _Text, typer.Option(metavar="NAME", help="clusters: service account of the pod.")
    ] = None,
    working_directory: Annotated[
        _Text, typer.Option(metavar="PATH", help="clusters: directory that the command runs in.")
    ] = None,
    command: Annotated[
        _Text, typer.Option(metavar="COMMAND", help="clusters: command in the place of the image's, in quotes.")
    ] = None,
    region: Annotated[
        str, typer.Option(metavar="REGION", help="AWS region; default: the one in use.", autocompletion=complete_region)
    ] = "",
    zone: Annotated[_Texts, typer.Option(metavar="ZONE", help="Only this Availability Zone; repeatable.")] = None,
    *,
    is_offline: Annotated[bool, typer.Option("--offline", help="Do not call AWS; use the bundled catalogue.")] = False,
    has_all_types: Annotated[
        bool,
        typer.Option("--all-types", help="All instance types of the region, not only what the stack can start."),
    ] = False,
    explained: Annotated[
        str,
        typer.Option(
            "--explain", metavar="TYPE", help="Explain why this type is not chosen.", autocompletion=complete_type
        ),
    ] = "",
    is_fitted: Annotated[
        bool,
        typer.Option("--fit", help="clusters: also read the nodes, with your own kubeconfig, and say where it fits."),
    ] = False,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Maximum number of lines, 0 for all.")] = 5,
    has_rejected: Annotated[bool, typer.Option("--rejected", help="Say why the other offerings are left out.")] = False,
    is_full: Annotated[bool, typer.Option("--all", help="Name every offering, including rejected ones.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Show where a job would run now, and why not elsewhere.

    Plans a registered definition, all definitions of a FILE, or a job that options describe. Nothing is launched. The
    exit code is 4 if nothing satisfies the job right now, or the account has no quota for it.

    Without credentials, region or stack, files and options are planned offline: all instance types of the bundled
    catalogue, at its reference prices, on spot at those of EC2 if only the stack is missing. A stack that is named and
    not there is an error.

    For a cluster (target kubernetes, ack or acs) the manifest of the Job is shown; it is asked with --fit only.

    \b
    relaunch plan --gpu 1 --gpu-memory 24GiB --model A10G --purchase spot
    relaunch plan --gpu 1 --gpu-memory 2GiB --compute-percent 30
    relaunch plan --neuron-cores 4 --explain inf2.xlarge
    relaunch plan --target ack --gpu 1 --gpu-memory 2GiB --compute-percent 30
    """  # noqa: D301 - click's mark for lines to be left as they are
    options = {
        option: value
        for option, value in {
            "--gpu": gpu,
            "--gpu-memory": gpu_memory,
            "--model": model,
            "--compute-percent": compute_percent,
            "--isolation": isolation,
            "--compute-capability": compute_capability,
            "--interconnect": interconnect,
            "--driver": driver,
            "--neuron-devices": neuron_devices,
            "--neuron-cores": neuron_cores,
            "--neuron-model": neuron_model,
            "--neuron-purpose": neuron_purpose,
            "--instance-type": instance_type,
            "--vcpus": vcpus,
            "--memory": memory,
            "--architecture": architecture,
            "--disk": disk,
            "--purchase": purchase,
            "--max-price": max_price,
            "--estimated-duration": estimated_duration,
            "--checkpoint": checkpoint,
            "--target": cluster,
            "--image": image,
            "--gpu-resource": gpu_resource,
            "--gpu-sharing": gpu_sharing,
            "--gpu-placement": gpu_placement,
            "--compute-class": compute_class,
            "--card-memory": card_memory,
            "--cluster-region": cluster_region,
            "--label": labels,
            "--node-selector": node_selector,
            "--service-account": service_account,
            "--working-directory": working_directory,
            "--command": command,
        }.items()
        if value is not None and value != []
    }
    _check_arguments(target, options, is_offline=is_offline)
    _check_ec2_options(cluster, {"--zone": zone, "--all-types": has_all_types, "--explain": explained})
    explained_type = find_instance_type(explained) if explained else None
    connection = connect(context, stack, region)
    find = partial(
        planning.find_planner,
        connection,
        region,
        zone or [],
        is_offline=is_offline,
        has_all_types=has_all_types,
        is_stack_named=names_stack(context),
    )
    if options:
        basis, plans = planning.plan_options(options, find)
    elif target and not _is_file(target):
        basis, plans = planning.plan_registered(target, connection, find)
    else:
        basis, plans = planning.plan_file(Path(target or ""), find)
    basis = replace(basis, stack=stack)
    if is_fitted:
        plans = planning.find_fits(plans, basis.node_labels)
    if basis.note:
        print_note(basis.note)
    if as_json:
        print_json(plans_json(plans, basis, explained_type))
    else:
        shown = PlanOptions(explained_type, SelectionOptions(0 if is_full else limit, has_rejected or is_full, is_full))
        print_result(render_plans(plans, basis, shown))
        for note in plan_notes(plans, basis, shown):
            print_note(note)
    raise typer.Exit(_exit_code(plans))


def _check_arguments(target: str | None, options: Mapping[str, object], *, is_offline: bool) -> None:
    """Check that exactly one of a definition, a file, and options is given."""
    if target is None and not options:
        raise CommandError("nothing to plan", "name a definition or a FILE, or describe a job: --gpu 1")
    if target is not None and options:
        raise CommandError(f"{' and '.join(options)} cannot be combined with {target!r}")
    if is_offline and target is not None and not _is_file(target):
        hint = "name the FILE it was registered from, or describe a job: --gpu 1"
        raise CommandError(f"the registered definition {target!r} is in the stack, which --offline does not read", hint)


def _check_ec2_options(cluster: str | None, options: Mapping[str, object]) -> None:
    """Check that nothing of EC2 is asked about a job on Kubernetes."""
    given = [option for option, value in options.items() if value]
    if given and cluster in {each for each in Target if not each.capabilities.offers_instance_types}:
        raise CommandError(f"{' and '.join(given)} cannot be combined with --target {cluster}: it is about EC2")


def _is_file(target: str) -> bool:
    file = Path(target)
    return target == "-" or file.suffix in {".yaml", ".yml"} or file.is_file()


def _exit_code(plans: "Sequence[Plan]") -> int:
    if any(each.selection is None and each.definition.target.capabilities.offers_instance_types for each in plans):
        return exit_codes.NOT_FOUND
    return exit_codes.OK if all(map(_is_satisfiable, plans)) else exit_codes.UNAVAILABLE


def _is_satisfiable(plan: "Plan") -> bool:
    if not plan.definition.target.capabilities.offers_instance_types:
        return not plan.problem
    return bool(plan.selection and plan.selection.kept and not plan.quota_problem)
