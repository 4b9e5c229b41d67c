"""The settings of a stack, from the environment of its functions or from the outputs of the stack."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.checkpoint_bucket import CheckpointGrants
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.revisions.task_definition_grants import TaskDefinitionGrants
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.ports import CapacityProviderOffer

_CAPACITY_PROVIDER = re.compile(
    r"(?P<name>[A-Za-z0-9_-]+)=(?P<instance_type>[a-z0-9.-]+)/(?P<purchase>spot|on-demand)"
    r"(?P<managed>/managed-instances)?(?:/(?P<disk>[1-9][0-9]{0,5})GiB)?"
)
# A derived family begins with 237 characters of its source at most: a longer name could not be told from others.
_FAMILY_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,237}\*?")
_ANY_FAMILY = "any"
_ROLE_PATH = re.compile(r"([A-Za-z0-9_+=,.@-]+/)+")


class InvalidSettingsError(ValueError):
    """A setting is missing or invalid; the message contains its name."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the stack's parts are, and its caps.

    `dead_letter_queue_url` is the function's own, `max_receive_count` how often SQS gives a message before it gives it
    up, `watched_queue_urls` the dead-letter queues that reconcile counts; empty and 0 for the command.
    `checkpoint_grants` is for the command only: functions find out by reading.
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

    @property
    def spot_types(self) -> frozenset[str]:
        """Return the instance types of the spot capacity providers."""
        spot = (each for each in self.capacity_providers if each.purchase is PurchaseOption.SPOT)
        return frozenset(each.instance_type for each in spot)

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
            "provisioning_deadline": "RELAUNCH_PROVISIONING_DEADLINE_SECONDS",
            "subnets": "RELAUNCH_SUBNETS",
            "security_groups": "RELAUNCH_SECURITY_GROUPS",
            "dead_letter_queue_url": "RELAUNCH_DEAD_LETTER_QUEUE_URL",
            "max_receive_count": "RELAUNCH_MAX_RECEIVE_COUNT",
            "watched_queue_urls": "RELAUNCH_WATCHED_QUEUE_URLS",
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
            "provisioning_deadline": "ProvisioningDeadlineSeconds",
            "subnets": "SubnetIds",
            "security_groups": "SecurityGroupIds",
        }
        grants = CheckpointGrants(
            _split(outputs.get("CheckpointBuckets", "")), _split(outputs.get("CheckpointKeyArns", ""))
        )
        return replace(cls._from_named(outputs, names), checkpoint_grants=grants)

    @classmethod
    def _from_named(cls, values: Mapping[str, str], names: Mapping[str, str]) -> "Settings":
        subnets = _split(values.get(names["subnets"], ""))
        selection = SelectionLimits(
            max_price_usd_per_hour=_price_cap(values, names["max_price"]),
            max_spot_ratio=_number(values, names["max_spot_ratio"]),
            has_subnets=bool(subnets),
        )
        limits = StackLimits(
            max_running_jobs=int(_number(values, names["max_running_jobs"])),
            max_waiting_jobs=int(_number(values, names["max_waiting_jobs"])),
            provisioning_deadline_seconds=int(_number(values, names["provisioning_deadline"])),
            selection=selection,
            task_definitions=TaskDefinitionGrants(
                _families(values, names["families"]), _role_path(values, names["role_path"])
            ),
        )
        return cls(
            table=_required(values, names["table"]),
            attempts_queue_url=_required(values, names["attempts_queue_url"]),
            cluster=_required(values, names["cluster"]),
            capacity_providers=parse_capacity_providers(_required(values, names["capacity_providers"])),
            dead_letter_queue_url=values.get(names.get("dead_letter_queue_url", ""), ""),
            max_receive_count=int(values.get(names.get("max_receive_count", ""), "") or 0),
            watched_queue_urls=_split(values.get(names.get("watched_queue_urls", ""), "")),
            subnets=subnets,
            security_groups=_split(values.get(names["security_groups"], "")),
            limits=limits,
        )


def parse_capacity_providers(text: str) -> tuple[CapacityProviderOffer, ...]:
    """Parse `name=instance-type/purchase,…`, the format of the stack parameter CapacityProviders.

    `/managed-instances` after the purchase option is for a capacity provider of ECS Managed Instances, and `/200GiB` at
    the end is the size of the root volume.

    Raises:
        InvalidSettingsError: an entry is invalid.
    """
    return tuple(_parse_capacity_provider(entry) for entry in _split(text))


def _parse_capacity_provider(entry: str) -> CapacityProviderOffer:
    match = _CAPACITY_PROVIDER.fullmatch(entry)
    if match is None:
        raise InvalidSettingsError(
            f"capacity provider {entry!r} is not name=instance-type/purchase, for example g5-spot=g5.xlarge/spot, "
            "with /managed-instances behind it for ECS Managed Instances, and last the disk, like /200GiB"
        )
    disk = match["disk"]
    return CapacityProviderOffer(
        match["name"],
        match["instance_type"],
        PurchaseOption(match["purchase"]),
        is_managed=match["managed"] is not None,
        disk_gib=int(disk) if disk else None,
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _required(values: Mapping[str, str], name: str) -> str:
    value = values.get(name, "")
    if not value:
        raise InvalidSettingsError(f"setting {name} is missing")
    return value


def _families(values: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    text = _required(values, name)
    if text == _ANY_FAMILY:
        return None
    patterns = _split(text)
    for pattern in patterns:
        if _FAMILY_PATTERN.fullmatch(pattern) is None:
            raise InvalidSettingsError(
                f"setting {name}: {pattern!r} is neither a family of task definitions nor the beginning of one with * "
                f"behind it, for example relaunch-*; {_ANY_FAMILY!r} alone stands for every family"
            )
    return patterns


def _role_path(values: Mapping[str, str], name: str) -> str:
    path = _required(values, name)
    if _ROLE_PATH.fullmatch(path) is None:
        raise InvalidSettingsError(
            f"setting {name}: {path!r} is not an IAM path without the slash in front, for example relaunch/"
        )
    return path


def _price_cap(values: Mapping[str, str], name: str) -> float | None:
    return None if values.get(name) == "none" else _number(values, name)


def _number(values: Mapping[str, str], name: str) -> float:
    try:
        return float(_required(values, name))
    except ValueError as error:
        raise InvalidSettingsError(f"setting {name} is missing or is not a number") from error
