"""Deploys what machines of our own are launched with, and tells the application's stack of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_cli.deployment.change_set import ChangeSets, read_stack
from relaunch_cli.deployment.defaults import DEFAULTS
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.machine_network import Network, check_cluster, find_network
from relaunch_cli.deployment.machine_parameters import (
    DISK_KEY,
    IMAGE_REPOSITORIES,
    LAUNCH_TEMPLATES,
    MACHINE_STACK_PARAMETERS,
    OUTPUTS,
    ROLE,
    SUBNETS,
    SWITCH,
    Parameters,
    Way,
    check_disk,
    check_minutes,
)
from relaunch_cli.deployment.refusals import RefusedError


@dataclass(frozen=True)
class MachineClients:
    """Clients of the services that are asked for machines, and the template of their stack.

    `repository_arn` is the repository of the trainings' images, empty if no stack has one.
    """

    ec2: Any
    ecs: Any
    template: str
    repository_arn: str = ""


def prepare_machines(
    parameters: Parameters, stack_name: str, clients: MachineClients, change_sets: ChangeSets
) -> Mapping[str, str]:
    """Deploy the stack of machines, unless told otherwise; return all parameters of the application's stack.

    Its name is the application's, with `-machines` behind it.

    Raises:
        RefusedError: something is missing, or was not confirmed; nothing else was deployed.
        ClientError, BotoCoreError: a call failed.
    """
    if parameters.way is Way.OFF:
        # A parameter that is left out keeps its value.
        return {**parameters.application, **dict.fromkeys((SUBNETS, LAUNCH_TEMPLATES, ROLE), "")}
    if parameters.way is Way.GIVEN:
        return parameters.application
    application = read_stack(stack_name, change_sets.stacks)
    machines = read_stack(f"{stack_name}-machines", change_sets.stacks)
    kept = _kept(application, machines) if parameters.way is Way.KEPT else ""
    if kept:
        change_sets.tell(kept)
        return parameters.application
    return _deploy(parameters, stack_name, application, machines, clients, change_sets)


def _kept(application: Stack | None, machines: Stack | None) -> str:
    """Return why an application stays as it is; empty if its machines are those of the stack that is deployed here."""
    if application is None or application.status == "REVIEW_IN_PROGRESS":
        return ""
    launch_templates = application.parameters.get(LAUNCH_TEMPLATES)
    if not launch_templates:
        return f"machines of our own are off in the stack {application.name}, and stay off: {SWITCH}=on turns them on"
    if machines is None:
        return (
            f"machines of our own keep the launch templates that were given by hand ({launch_templates}): {SWITCH}=on "
            "sets up new ones"
        )
    return ""


def _deploy(
    parameters: Parameters,
    stack_name: str,
    application: Stack | None,
    machines: Stack | None,
    clients: MachineClients,
    change_sets: ChangeSets,
) -> Mapping[str, str]:
    kept = application.parameters if application else {}
    kept_machines = machines.parameters if machines else {}
    check_minutes({**kept, **kept_machines, **parameters.application, **parameters.machines})
    check_disk({**kept_machines, **parameters.machines})
    cluster = parameters.application.get("ClusterName") or kept.get("ClusterName") or DEFAULTS["ClusterName"]
    check_cluster(cluster, clients.ecs)
    network = _network(parameters, kept, kept_machines, clients.ec2)
    change_sets.tell(f"machines of our own: cluster {cluster}, {network.vpc_id}, {network.parameter}")
    for note in network.notes:
        change_sets.tell(note)
    same = {name: kept_machines[name] for name in MACHINE_STACK_PARAMETERS if name in kept_machines}
    wanted = {"ClusterName": cluster, **same, **parameters.machines, "VpcId": network.vpc_id}
    if clients.repository_arn and IMAGE_REPOSITORIES not in parameters.machines and not same.get(IMAGE_REPOSITORIES):
        wanted[IMAGE_REPOSITORIES] = clients.repository_arn
        change_sets.tell(
            f"machines pull images from {clients.repository_arn} alone, and what execution roles of tasks may: "
            f"{IMAGE_REPOSITORIES} names others"
        )
    deployed = change_sets.deploy(f"{stack_name}-machines", clients.template, wanted, machines)
    missing = [name for name in OUTPUTS if not deployed.outputs.get(name)]
    if missing:
        raise RefusedError(f"the stack {deployed.name} has no output {', '.join(missing)}: it is another one")
    told = {SUBNETS: network.parameter, **{name: deployed.outputs[name] for name in OUTPUTS}}
    if deployed.outputs.get(DISK_KEY) or kept.get(DISK_KEY):
        told[DISK_KEY] = deployed.outputs.get(DISK_KEY, "")
    change_sets.tell(f"for the stack {stack_name}: {', '.join(f'{name}={value}' for name, value in told.items())}")
    return {**parameters.application, **told}


def _network(parameters: Parameters, kept: Mapping[str, str], kept_machines: Mapping[str, str], ec2: Any) -> Network:
    """Return what is named, else what the stacks have, else what the default VPC has."""
    subnets = parameters.application.get(SUBNETS, "")
    vpc_id = parameters.machines.get("VpcId", "")
    if subnets or vpc_id:
        return find_network(vpc_id, subnets, ec2)
    if kept.get(SUBNETS):
        return find_network("", kept[SUBNETS], ec2)
    return find_network(kept_machines.get("VpcId", ""), "", ec2)
