"""The settings of a stack, from the environment of its functions or from the outputs of the stack."""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.settings import MachineSettings
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.kubernetes_settings import KubernetesSettings, read_pod_grants
from relaunch.machine_settings import read_machine_limits, read_machines
from relaunch.ports import CapacityProviderOffer
from relaunch.setting_values import InvalidSettingsError, number, price_cap, required, split, switch, whole

_CAPACITY_PROVIDER = (
    r"(?P<name>[A-Za-z0-9_-]+)=(?P<instance_type>[a-z0-9.-]+)/(?P<purchase>spot|on-demand|reserved)"
    r"(?P<managed>/managed-instances)?(?:/(?P<disk>[1-9][0-9]{0,5})GiB)?"
    r"(?:/until-(?P<until>20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})Z)?"
    r"(?:@(?P<zones>[a-z0-9-]+(?:\+[a-z0-9-]+)*))?"
)
_END = "2026-12-05T11:30Z"
# A derived family begins with 237 characters of its source at most, which longer names could share.
_FAMILY_PATTERN = r"[A-Za-z0-9_-]{1,237}\*?"
_ANY_FAMILY = "any"
_ROLE_PATH = r"([A-Za-z0-9_+=,.@-]+/)+"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the stack's parts are, and its caps.

    `dead_letter_queue_url` is the function's own, `max_receive_count` how many tries a message has that functions
    die of, `watched_queue_urls` the dead-letter queues that reconcile counts; empty and 0 for the command.
    `checkpoint_grants` is for the command only: functions find out by reading. There are capacity providers, or
    `machines` are on, or `kubernetes` has a cluster.
    """

    table: str
    attempts_queue_url: str
    cluster: str
    capacity_providers: tuple[CapacityProviderOffer, ...]
    dead_letter_queue_url: str = ""
    max_receive_count: int = 0
    watched_queue_urls: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    security_groups: tuple[str, ...] = ()
    limits: StackLimits = field(default_factory=StackLimits)
    checkpoint_grants: CheckpointGrants = field(default_factory=CheckpointGrants)
    machines: MachineSettings = field(default_factory=MachineSettings)
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)

    @property
    def spot_types(self) -> frozenset[str]:
        """Return the instance types of the spot capacity providers."""
        spot = (each for each in self.capacity_providers if each.purchase is PurchaseOption.SPOT)
        return frozenset(each.instance_type for each in spot)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return where jobs can run: on ECS if there are capacity providers, or machines of our own."""
        has_ecs = bool(self.capacity_providers) or self.machines.is_on
        return (*((Target.ECS,) if has_ecs else ()), *self.kubernetes.clusters)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Settings":
        """Read the environment variables that template.yaml sets for all functions.

        Raises:
            InvalidSettingsError: a variable is missing or invalid.
        """
        names = {
            "table": "RELAUNCH_TABLE",
            "attempts_queue_url": "RELAUNCH_ATTEMPTS_QUEUE_URL",
            "cluster": "RELAUNCH_CLUSTER",
            "capacity_providers": "RELAUNCH_CAPACITY_PROVIDERS",
            "max_running_jobs": "RELAUNCH_MAX_RUNNING_JOBS",
            "max_waiting_jobs": "RELAUNCH_MAX_WAITING_JOBS",
            "max_price": "RELAUNCH_MAX_PRICE_USD_PER_HOUR",
            "max_spot_ratio": "RELAUNCH_MAX_SPOT_RATIO",
            "families": "RELAUNCH_TASK_DEFINITION_FAMILIES",
            "role_path": "RELAUNCH_TASK_ROLE_PATH",
            "host_access": "RELAUNCH_HOST_ACCESS",
            "provisioning_deadline": "RELAUNCH_PROVISIONING_DEADLINE_SECONDS",
            "subnets": "RELAUNCH_SUBNETS",
            "security_groups": "RELAUNCH_SECURITY_GROUPS",
            "dead_letter_queue_url": "RELAUNCH_DEAD_LETTER_QUEUE_URL",
            "max_receive_count": "RELAUNCH_MAX_RECEIVE_COUNT",
            "watched_queue_urls": "RELAUNCH_WATCHED_QUEUE_URLS",
            "stack": "RELAUNCH_STACK_NAME",
            "machines_queue_url": "RELAUNCH_MACHINES_QUEUE_URL",
            "machine_subnets": "RELAUNCH_MACHINE_SUBNETS",
            "machine_launch_templates": "RELAUNCH_MACHINE_LAUNCH_TEMPLATES",
            "machine_instance_role": "RELAUNCH_MACHINE_INSTANCE_ROLE_ARN",
            "machine_disk": "RELAUNCH_MACHINE_DISK_GIB",
            "reservations": "RELAUNCH_CAPACITY_RESERVATIONS",
            "machine_tags": "RELAUNCH_MACHINE_TAGS",
            "max_machines": "RELAUNCH_MAX_MACHINES",
            "max_machines_price": "RELAUNCH_MAX_MACHINES_PRICE_USD_PER_HOUR",
            "machine_warm_minutes": "RELAUNCH_MACHINE_WARM_MINUTES",
            "machine_registration_minutes": "RELAUNCH_MACHINE_REGISTRATION_MINUTES",
            "machine_start_on_rebalance": "RELAUNCH_MACHINE_START_ON_REBALANCE",
            "machine_task_stop": "RELAUNCH_MACHINE_TASK_STOP",
            "ack_cluster_id": "RELAUNCH_ACK_CLUSTER_ID",
            "ack_region": "RELAUNCH_ACK_REGION",
            "ack_secret": "RELAUNCH_ACK_KUBECONFIG_SECRET_ARN",
            "acs_cluster_id": "RELAUNCH_ACS_CLUSTER_ID",
            "acs_region": "RELAUNCH_ACS_REGION",
            "acs_secret": "RELAUNCH_ACS_KUBECONFIG_SECRET_ARN",
            "kubernetes_cluster_id": "RELAUNCH_EKS_CLUSTER_NAME",
            "kubernetes_secret": "RELAUNCH_KUBERNETES_KUBECONFIG_SECRET_ARN",
            "gpu_model_label": "RELAUNCH_KUBERNETES_GPU_MODEL_LABEL",
            "spot_label": "RELAUNCH_KUBERNETES_SPOT_LABEL",
            "on_demand_label": "RELAUNCH_KUBERNETES_ON_DEMAND_LABEL",
            "alibaba_role": "RELAUNCH_ALIBABA_ROLE_ARN",
            "alibaba_oidc_provider": "RELAUNCH_ALIBABA_OIDC_PROVIDER_ARN",
            "oss_region": "RELAUNCH_OSS_REGION",
            "kubernetes_namespace": "RELAUNCH_KUBERNETES_NAMESPACE",
            "kubernetes_images": "RELAUNCH_KUBERNETES_IMAGES",
            "kubernetes_service_accounts": "RELAUNCH_KUBERNETES_SERVICE_ACCOUNTS",
        }
        return cls._from_named(environment, names)

    @classmethod
    def from_stack_outputs(cls, outputs: Mapping[str, str]) -> "Settings":
        """Read the outputs of a stack.

        Raises:
            InvalidSettingsError: an output is missing or invalid: the stack is another application or an older version.
        """
        names = {
            "table": "TableName",
            "attempts_queue_url": "AttemptsQueueUrl",
            "cluster": "ClusterName",
            "capacity_providers": "CapacityProviders",
            "max_running_jobs": "MaxRunningJobs",
            "max_waiting_jobs": "MaxWaitingJobs",
            "max_price": "MaxPricePerHour",
            "max_spot_ratio": "MaxSpotRatio",
            "families": "TaskDefinitionFamilies",
            "role_path": "TaskRolePath",
            "host_access": "HostAccess",
            "provisioning_deadline": "ProvisioningDeadlineSeconds",
            "subnets": "SubnetIds",
            "security_groups": "SecurityGroupIds",
            "stack": "StackName",
            "machines_queue_url": "MachinesQueueUrl",
            "machine_subnets": "MachineSubnets",
            "machine_launch_templates": "MachineLaunchTemplates",
            "machine_instance_role": "MachineInstanceRoleArn",
            "machine_disk": "MachineDiskGiB",
            "reservations": "CapacityReservations",
            "machine_tags": "MachineTags",
            "max_machines": "MaxMachines",
            "max_machines_price": "MaxMachinesPricePerHour",
            "machine_warm_minutes": "MachineWarmMinutes",
            "machine_registration_minutes": "MachineRegistrationMinutes",
            "machine_start_on_rebalance": "MachineStartOnRebalance",
            "machine_task_stop": "MachineTaskStop",
            "ack_cluster_id": "AckClusterId",
            "ack_region": "AckRegion",
            "ack_secret": "AckKubeconfigSecretArn",
            "acs_cluster_id": "AcsClusterId",
            "acs_region": "AcsRegion",
            "acs_secret": "AcsKubeconfigSecretArn",
            "kubernetes_cluster_id": "EksClusterName",
            "kubernetes_secret": "KubernetesKubeconfigSecretArn",
            "gpu_model_label": "KubernetesGpuModelLabel",
            "spot_label": "KubernetesSpotLabel",
            "on_demand_label": "KubernetesOnDemandLabel",
            "alibaba_role": "AlibabaRoleArn",
            "alibaba_oidc_provider": "AlibabaOidcProviderArn",
            "oss_region": "OssRegion",
            "kubernetes_namespace": "KubernetesNamespace",
            "kubernetes_images": "KubernetesImages",
            "kubernetes_service_accounts": "KubernetesServiceAccounts",
        }
        grants = CheckpointGrants(
            split(outputs.get("CheckpointBuckets", "")), split(outputs.get("CheckpointKeyArns", ""))
        )
        return replace(cls._from_named(outputs, names), checkpoint_grants=grants)

    @classmethod
    def _from_named(cls, values: Mapping[str, str], names: Mapping[str, str]) -> "Settings":
        subnets = split(values.get(names["subnets"], ""))
        machines = read_machines(values, names)
        kubernetes = _kubernetes(values, names)
        selection = SelectionLimits(
            max_price_usd_per_hour=price_cap(values, names["max_price"]),
            max_spot_ratio=number(values, names["max_spot_ratio"]),
            has_subnets=bool(subnets),
            machine_kinds=frozenset(machines.launch_templates),
        )
        limits = StackLimits(
            max_running_jobs=int(number(values, names["max_running_jobs"])),
            max_waiting_jobs=int(number(values, names["max_waiting_jobs"])),
            provisioning_deadline_seconds=int(number(values, names["provisioning_deadline"])),
            selection=selection,
            machines=read_machine_limits(values, names) if machines.is_on else MachineLimits(),
            task_definitions=TaskDefinitionGrants(
                _families(values, names["families"]),
                _role_path(values, names["role_path"]),
                has_host_access=switch(values, names["host_access"]),
            ),
            pods=read_pod_grants(values, names),
        )
        return cls(
            table=required(values, names["table"]),
            attempts_queue_url=required(values, names["attempts_queue_url"]),
            cluster=required(values, names["cluster"]),
            capacity_providers=_capacity_providers(
                values, names, has_others=machines.is_on or bool(kubernetes.clusters)
            ),
            dead_letter_queue_url=values.get(names.get("dead_letter_queue_url", ""), ""),
            max_receive_count=_max_receive_count(values, names.get("max_receive_count", "")),
            watched_queue_urls=split(values.get(names.get("watched_queue_urls", ""), "")),
            subnets=subnets,
            security_groups=split(values.get(names["security_groups"], "")),
            limits=limits,
            machines=machines,
            kubernetes=kubernetes,
        )


def parse_capacity_providers(text: str) -> tuple[CapacityProviderOffer, ...]:
    """Parse `name=instance-type/purchase,…`, the format of the stack parameter CapacityProviders.

    `/managed-instances` after the purchase option is for a capacity provider of ECS Managed Instances, and `/200GiB`
    after that is the size of the root volume. `/until-2026-12-05T11:30Z` is when what is reserved ends, and `@a+b`
    after all of it are the zones of its group.

    Raises:
        InvalidSettingsError: an entry is invalid.
    """
    return tuple(_parse_capacity_provider(entry) for entry in split(text))


def _parse_capacity_provider(entry: str) -> CapacityProviderOffer:
    match = re.fullmatch(_CAPACITY_PROVIDER, entry)
    if match is None:
        raise InvalidSettingsError(
            f"capacity provider {entry!r} is not name=instance-type/purchase, for example g5-spot=g5.xlarge/spot, "
            "with /managed-instances behind it for ECS Managed Instances, then the disk, like /200GiB, then the end of "
            "what is reserved, like /until-2026-12-05T11:30Z, and last the zones of its group, like @a+b"
        )
    disk = match["disk"]
    purchase = PurchaseOption(match["purchase"])
    return CapacityProviderOffer(
        match["name"],
        match["instance_type"],
        purchase,
        is_managed=match["managed"] is not None,
        disk_gib=int(disk) if disk else None,
        zones=tuple(match["zones"].split("+")) if match["zones"] else (),
        until=_end_of_reserved(entry, match["until"], purchase) if match["until"] else None,
    )


def _end_of_reserved(entry: str, text: str, purchase: PurchaseOption) -> datetime:
    if purchase is not PurchaseOption.RESERVED:
        raise InvalidSettingsError(f"capacity provider {entry!r}: only what is reserved has an end, it is {purchase}")
    try:
        return datetime.fromisoformat(f"{text}+00:00")
    except ValueError as error:
        raise InvalidSettingsError(f"capacity provider {entry!r}: {text}Z is no time, for example {_END}") from error


def _capacity_providers(
    values: Mapping[str, str], names: Mapping[str, str], *, has_others: bool
) -> tuple[CapacityProviderOffer, ...]:
    name = names["capacity_providers"]
    providers = parse_capacity_providers(values.get(name, ""))
    if not providers and not has_others:
        raise InvalidSettingsError(
            f"setting {name} is missing: jobs need capacity providers, for example g5-spot=g5.xlarge/spot, or machines "
            f"of our own, which {names['machine_subnets']} turns on, or a Kubernetes cluster "
            f"({names['kubernetes_cluster_id']}, {names['kubernetes_secret']}, {names['ack_cluster_id']}, "
            f"{names['acs_cluster_id']})"
        )
    return providers


def _max_receive_count(values: Mapping[str, str], name: str) -> int:
    """Return how many tries a message has; 0 where none are handled."""
    return whole(values, name) if values.get(name) else 0


def _kubernetes(values: Mapping[str, str], names: Mapping[str, str]) -> KubernetesSettings:
    try:
        return KubernetesSettings.from_named(values, names)
    except ValueError as error:
        raise InvalidSettingsError(str(error)) from error


def _families(values: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = required(values, name)
    if text == _ANY_FAMILY:
        return None
    patterns = split(text)
    for pattern in patterns:
        if re.fullmatch(_FAMILY_PATTERN, pattern) is None:
            raise InvalidSettingsError(
                f"setting {name}: {pattern!r} is neither a family of task definitions nor the beginning of one with * "
                f"behind it, for example relaunch-*; {_ANY_FAMILY!r} alone stands for every family"
            )
    return patterns


def _role_path(values: Mapping[str, str], name: str) -> str:
    path = required(values, name)
    if re.fullmatch(_ROLE_PATH, path) is None:
        raise InvalidSettingsError(
            f"setting {name}: {path!r} is not an IAM path without the slash in front, for example relaunch/"
        )
    return path
