"""Capacity providers of the cluster, each a stack of infrastructure/capacity-provider.yaml.

A cluster's providers are one list, which PutClusterCapacityProviders replaces (Amazon ECS API Reference): so no stack
can add one, and those of others are kept by writing them again.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.offerings.instance_types import AmiSystem, ami_kind, ami_parameter, ami_rejection
from relaunch.core.offerings.managed_instances import managed_rejection
from relaunch.core.offerings.zones import zone_ends
from relaunch.machine_settings import read_tags
from relaunch.setting_values import InvalidSettingsError
from relaunch_cli.deployment.change_set import ChangeSets, list_stacks, read_stack
from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.machine_parameters import SUBNETS
from relaunch_cli.deployment.provider_tags import with_tags
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.errors import did_you_mean

PROVIDERS = "Providers"
"""The parameter of a deployment that names them, which no stack has."""
ENTRIES = "CapacityProviders"
TAGS = "MachineTags"
PROVIDER_NAME = "ProviderName"
"""The parameter of a provider's stack that names it and its Auto Scaling group."""
_KEPT = ("ClusterName", SUBNETS, ENTRIES, TAGS)
# ECS takes no name that begins so ("CreateCapacityProvider", Amazon ECS API Reference).
_RESERVED = ("aws", "ecs", "fargate")
_FORM = re.compile(r"(?P<type>[a-z0-9-]+\.[a-z0-9-]+)/(?P<purchase>spot|on-demand)(:(?P<most>[1-9][0-9]{0,2}))?")
_EXAMPLE = f"{PROVIDERS}=g5.xlarge/spot:4,g5.xlarge/on-demand"
# An association takes seconds, in which the next one is refused.
_TRIES = 12
_PAUSE_SECONDS = 5.0
_NOT_ACTIVE = re.compile("not in an ACTIVE state|was not ACTIVE")


@dataclass(frozen=True, slots=True)
class WantedProvider:
    """A capacity provider to deploy: its type, its purchase option, and how many machines it may have."""

    instance_type: str
    purchase: str
    most: int
    image_parameter: str

    def name(self, stack: str) -> str:
        """Return the name of its stack, and of the provider if ECS takes that."""
        return _stack_name(stack, self.instance_type, self.purchase)

    def provider_name(self, stack: str) -> str:
        """Return the name of the provider and of its Auto Scaling group."""
        name = self.name(stack)
        return f"relaunch-{name}" if name.lower().startswith(_RESERVED) else name


def _stack_name(stack: str, instance_type: str, purchase: str) -> str:
    return f"{stack}-{instance_type.replace('.', '-')}-{purchase}"


def find_provider_stacks(stack: str, stacks: Any) -> Sequence[Stack]:
    """Return the stacks with capacity providers of the application `stack`, whether that is still there or not.

    They are known by their own parameters, because those of the application are gone with it.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    return sorted((each for each in list_stacks(stacks) if _is_provider(each, stack)), key=lambda each: each.name)


def _is_provider(found: Stack, stack: str) -> bool:
    parameters = found.parameters
    if not {PROVIDER_NAME, "InstanceType", "Purchase"} <= set(parameters):
        return False
    return found.name == _stack_name(stack, parameters["InstanceType"], parameters["Purchase"])


def read_providers(text: str) -> Sequence[WantedProvider]:
    """Read type/purchase:most, separated by commas; without a number there is one machine at most.

    Raises:
        RefusedError: it has another form, names a type that is not known or one twice, or ECS has no image for it.
    """
    wanted = [_read(entry) for entry in text.split(",") if entry]
    if len({(each.instance_type, each.purchase) for each in wanted}) < len(wanted):
        raise RefusedError(f"{PROVIDERS}={text} names a type twice with the same purchase option")
    return wanted


def check_providers(given: Mapping[str, str]) -> None:
    """Check what a deployment gives: the providers to make, and that ECS runs those that it has on Managed Instances.

    Raises:
        RefusedError: as `read_providers`, or ECS does not.
    """
    read_providers(given.get(PROVIDERS, ""))
    for entry in given.get(ENTRIES, "").split(","):
        instance_type, _, rest = entry.partition("=")[2].partition("/")
        why = managed_rejection(instance_type) if "/managed-instances" in rest else ""
        if why:
            raise RefusedError(f"{ENTRIES}={entry}: {why}")


def _read(entry: str) -> WantedProvider:
    match = _FORM.fullmatch(entry)
    if match is None:
        raise RefusedError(f"{entry!r} is no capacity provider, for example {_EXAMPLE}")
    catalogue = load_catalogue()
    name = match["type"]
    machine = catalogue.get(name)
    if machine is None:
        raise RefusedError(f"there is no accelerated instance type {name!r}: {did_you_mean(name, catalogue)}")
    kind = ami_kind(machine)
    why = ami_rejection(machine)
    if kind is None or why:
        raise RefusedError(f"{name}: {why}; make a capacity provider with an image of yours, and name it in {ENTRIES}")
    parameter = f"resolve:ssm:{ami_parameter(kind, AmiSystem.AMAZON_LINUX_2023)}/image_id"
    return WantedProvider(name, match["purchase"], int(match["most"] or 1), parameter)


@dataclass(frozen=True)
class ProviderStacks:
    """Deploys capacity providers of one application's cluster."""

    stack: str
    template: str
    ecs: Any
    change_sets: ChangeSets
    sleep: Callable[[float], None] = time.sleep

    def deploy(
        self, wanted: Sequence[WantedProvider], parameters: Mapping[str, str], before: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Deploy and associate them; return the parameters of the application, with them among its capacity providers.

        `parameters` are those of the application, with the outputs of machines. `before` are those that it has: its
        cluster, subnets, providers and tags stay, unless they are among the others.

        Raises:
            RefusedError: there is no stack of machines, whose role and security group they have, a stack failed, or
                MachineTags has what is no tag.
            ClientError, BotoCoreError: a call failed.
        """
        machines = read_stack(f"{self.stack}-machines", self.change_sets.stacks)
        if machines is None or not machines.outputs.get("SecurityGroupId"):
            raise RefusedError(
                f"{PROVIDERS} needs the stack {self.stack}-machines, for its role and security group: leave out "
                "Machines=off"
            )
        parameters = {**{name: before[name] for name in _KEPT if name in before}, **parameters}
        entries = {entry.partition("=")[0]: entry for entry in parameters.get(ENTRIES, "").split(",") if entry}
        try:
            template = with_tags(self.template, read_tags(parameters.get(TAGS, ""), TAGS))
        except InvalidSettingsError as error:
            raise RefusedError(str(error)) from error
        for each in wanted:
            name = each.name(self.stack)
            values = {
                PROVIDER_NAME: each.provider_name(self.stack),
                "ClusterName": parameters["ClusterName"],
                "InstanceType": each.instance_type,
                "Purchase": each.purchase,
                "MaxSize": str(each.most),
                "Subnets": ",".join(part.partition("=")[2] for part in parameters[SUBNETS].split(",")),
                "Zones": "@" + "+".join(zone_ends(part.partition("=")[0] for part in parameters[SUBNETS].split(","))),
                "SecurityGroupId": machines.outputs["SecurityGroupId"],
                "InstanceProfileArn": machines.outputs["InstanceProfileArn"],
                "ImageId": each.image_parameter,
                "DiskGiB": machines.outputs["MachineDiskGiB"],
            }
            made = self.change_sets.deploy(name, template, values, read_stack(name, self.change_sets.stacks))
            entries[each.provider_name(self.stack)] = made.outputs["CapacityProvider"]
        self.associate(parameters["ClusterName"], [each.provider_name(self.stack) for each in wanted], ())
        return {**parameters, ENTRIES: ",".join(entries.values())}

    def associate(self, cluster: str, added: Sequence[str], removed: Sequence[str]) -> None:
        """Change the cluster's list of providers; those of others, and its default strategy, stay as they are.

        Raises:
            RefusedError: the cluster is being changed by somebody else all the time.
            ClientError, BotoCoreError: a call failed.
        """
        for _ in range(_TRIES):
            clusters = self.ecs.describe_clusters(clusters=[cluster])["clusters"]
            found = next((each for each in clusters if each.get("status", "ACTIVE") == "ACTIVE"), None)
            if found is None and not added:
                # A cluster that is gone has given up its providers.
                return
            if found is None:
                raise RefusedError(f"there is no cluster {cluster}, which capacity providers are added to")
            present = self._over_groups(cluster, found.get("capacityProviders", ()))
            wanted = [each for each in present if each not in removed]
            wanted += [each for each in added if each not in wanted]
            if wanted == present:
                return
            strategy = [
                each
                for each in found.get("defaultCapacityProviderStrategy", ())
                if each["capacityProvider"] not in removed
            ]
            try:
                self.ecs.put_cluster_capacity_providers(
                    cluster=cluster, capacityProviders=wanted, defaultCapacityProviderStrategy=strategy
                )
            except ClientError as error:
                if not _is_temporary(error):
                    raise
                self.sleep(_PAUSE_SECONDS)
        raise RefusedError(
            f"the capacity providers of the cluster {cluster} are being changed, or are in use: run this again later"
        )

    def _over_groups(self, cluster: str, names: Sequence[str]) -> list[str]:
        """Return the providers without those of ECS Managed Instances, which PutClusterCapacityProviders refuses.

        They are of the cluster without it (terraform-provider-aws#44783), and are certain to be described only if it is
        named, with which others are left out (`cluster` of DescribeCapacityProviders, API Reference).
        """
        managed: set[str] = set()
        for request in ({}, {"cluster": cluster}):
            # It answers ten a page, also of those that are named.
            for start in range(0, len(names), 10):
                answer = self.ecs.describe_capacity_providers(capacityProviders=names[start : start + 10], **request)
                managed |= {each["name"] for each in answer["capacityProviders"] if "managedInstancesProvider" in each}
        return [each for each in names if each not in managed]


def _is_temporary(error: ClientError) -> bool:
    """Return whether a cluster, or a provider that was just made, is being changed: it is not ACTIVE until then.

    Terraform repeats these refusals, too (terraform-provider-aws#11285 and #42943).
    """
    refusal = error.response["Error"]
    is_busy = refusal["Code"] in {"UpdateInProgressException", "ResourceInUseException"}
    return is_busy or _NOT_ACTIVE.search(refusal["Message"]) is not None
