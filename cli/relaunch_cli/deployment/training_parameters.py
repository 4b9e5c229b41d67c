"""What the stack of infrastructure/training.yaml is deployed with: what is named, what it has, what the account has."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from relaunch_cli.deployment.findings import Stack
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.separation import FAMILIES, ROLE_PATH, TASK_ROLE_PATH

SWITCH = "Training"
"""The parameter of a deployment that leaves this stack out, which no stack has."""
GITHUB_REPOSITORY = "GitHubRepository"
GITHUB_PROVIDER = "GitHubOidcProviderArn"
GITHUB_IDS = ("GitHubOwnerId", "GitHubRepositoryId")
OWN_PARAMETERS = (
    "CheckpointBucket",
    "DataBucket",
    "DeepLearningContainersAccount",
    "EventSources",
    "ExistingCluster",
    "ExistingLogGroup",
    "ExistingRepository",
    "GitHubEnvironment",
    GITHUB_PROVIDER,
    *GITHUB_IDS,
    "GitHubRef",
    GITHUB_REPOSITORY,
    "RepositoryName",
    "TrainingLogGroup",
    "UntaggedImageDays",
    "UnusedImageDays",
    "VpcCidrPrefix",
    "Zones",
)
"""The parameters that only this stack has, where Zones stands for Zone1 to Zone6."""
SHARED_PARAMETERS = (
    "CheckpointKeyArns",
    "ClusterName",
    "LogRetentionDays",
    ROLE_PATH,
    FAMILIES,
    TASK_ROLE_PATH,
    "VpcId",
)
"""Those that another stack has too, with the same value."""
_LOG_GROUP = "TrainingLogGroup"


def _log_group(values: Mapping[str, str]) -> str:
    return values.get(_LOG_GROUP) or f"/relaunch/{values.get('ClusterName', '')}"


_NAMES: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "ExistingCluster": lambda values: values.get("ClusterName", ""),
    "ExistingRepository": lambda values: values.get("RepositoryName", ""),
    "ExistingLogGroup": _log_group,
}
"""By parameter: the name of the resource that it is about."""
_ZONE_PARAMETERS = tuple(f"Zone{place}" for place in range(1, 7))


@dataclass(frozen=True)
class Account:
    """Clients of what this stack may find in the account."""

    ec2: Any
    ecs: Any
    ecr: Any
    s3: Any
    logs: Any


def is_wanted(given: Mapping[str, str], application: Stack | None, training: Stack | None) -> bool:
    """Return whether the stack is deployed: for a new application, or where it is, or is named.

    Raises:
        RefusedError: the parameters contradict each other.
    """
    switch = given.get(SWITCH, "")
    if switch not in ("", "on", "off"):
        raise RefusedError(f"{SWITCH}={switch} is neither {SWITCH}=on nor {SWITCH}=off")
    named = [name for name in OWN_PARAMETERS if name in given]
    if switch == "off":
        if named:
            raise RefusedError(f"{SWITCH}=off contradicts {', '.join(named)}: leave out one or the other")
        return False
    is_new = application is None or application.status == "REVIEW_IN_PROGRESS"
    return bool(switch or named or training is not None or is_new)


def training_parameters(
    name: str,
    given: Mapping[str, str],
    application: Stack | None,
    training: Stack | None,
    account: Account,
    tell: Callable[[str], None],
) -> dict[str, str]:
    """Return the parameters of the stack of the application `name`; those not returned keep their default.

    A cluster or repository that exists already is adopted, and what a removal of this stack has kept; `tell` says so.

    Raises:
        ClientError, BotoCoreError: a call failed.
    """
    before = application.parameters if application else {}
    wanted = {name: value for name, value in given.items() if name in (*OWN_PARAMETERS, *SHARED_PARAMETERS)}
    zones = wanted.pop("Zones", "")
    values = {**_kept(training, wanted), **wanted, "ApplicationStack": name}
    values.setdefault("ClusterName", before.get("ClusterName") or name)
    values.setdefault("RepositoryName", f"{name.lower()}/trainer")
    if training is None and values["ClusterName"] != name:
        # Another stack may have this cluster, and the group that is named like it.
        values.setdefault(_LOG_GROUP, f"/relaunch/{values['ClusterName']}/{name}")
    if FAMILIES not in wanted and before.get(FAMILIES):
        # Those that jobs may run, also where the application was deployed alone.
        values[FAMILIES] = before[FAMILIES]
    values |= _existing(values, training, account, tell)
    if training is None:
        values |= _kept_by_removal(f"{name}-training", values, account, tell)
    # That of a stack of an earlier release is its own.
    values.setdefault("ExistingLogGroup", "false")
    return {**values, **_zone_parameters(zones, values, account.ec2)}


def _kept(training: Stack | None, wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters that the stack has, but those about a resource that another one is named instead of."""
    kept = dict(training.parameters) if training else {}
    if wanted.get(GITHUB_REPOSITORY, kept.get(GITHUB_REPOSITORY)) != kept.get(GITHUB_REPOSITORY):
        # The numbers and the branch are those of another repository.
        kept = {name: value for name, value in kept.items() if name not in (*GITHUB_IDS, "GitHubRef")}
    changed = [flag for flag, name_of in _NAMES.items() if name_of({**kept, **wanted}) != name_of(kept)]
    return {name: value for name, value in kept.items() if name not in changed}


def _existing(
    values: Mapping[str, str], training: Stack | None, account: Account, tell: Callable[[str], None]
) -> Mapping[str, str]:
    """Return whether what the stack is to use exists already, where that is not known; then it is adopted."""
    found: dict[str, str] = {}
    if "ExistingCluster" not in values:
        clusters = account.ecs.describe_clusters(clusters=[values["ClusterName"]])["clusters"]
        is_there = any(each["status"] == "ACTIVE" for each in clusters)
        found["ExistingCluster"] = _adopted(f"the cluster {values['ClusterName']}", tell, is_there=is_there)
    if "ExistingRepository" not in values:
        is_there = _has_repository(values["RepositoryName"], account.ecr)
        found["ExistingRepository"] = _adopted(f"the repository {values['RepositoryName']}", tell, is_there=is_there)
    group = _log_group(values)
    if "ExistingLogGroup" not in values and (training is None or group != _log_group(training.parameters)):
        groups = account.logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
        is_there = any(each["logGroupName"] == group for each in groups)
        found["ExistingLogGroup"] = _adopted(f"the log group {group}", tell, is_there=is_there)
    return found


def _kept_by_removal(
    stack: str, values: Mapping[str, str], account: Account, tell: Callable[[str], None]
) -> Mapping[str, str]:
    """Return the parameters, beside those that are named, for the buckets that a stack of this name has left."""
    kept: dict[str, str] = {}
    for parameter, what, names in kept_buckets(stack, account.s3):
        if parameter not in values:
            kept[parameter] = names[-1]
            others = f" (and {', '.join(names[:-1])} not)" if names[1:] else ""
            tell(f"{names[-1]} of an earlier deployment is the bucket for {what} again{others}; {parameter}= makes one")
    return kept


def kept_buckets(stack: str, s3: Any) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield what parameters can name of the buckets that stacks of this name have made: what for, the oldest first.

    CloudFormation puts the name of the stack and the logical ID before what is random, in small letters ("Name type",
    CloudFormation Template Reference).
    """
    for parameter, what in (("CheckpointBucket", "checkpoints"), ("DataBucket", "data")):
        prefix = f"{stack}-New{parameter}-".lower()
        pages = s3.get_paginator("list_buckets").paginate(Prefix=prefix, BucketRegion=s3.meta.region_name)
        found = [each for page in pages for each in page.get("Buckets", ()) if each["Name"].startswith(prefix)]
        if found:
            yield parameter, what, [each["Name"] for each in sorted(found, key=lambda each: each["CreationDate"])]


def zones_of(values: Mapping[str, str]) -> list[str]:
    """Return the zones of the network that the stack makes."""
    return [zone for name in _ZONE_PARAMETERS if (zone := values.get(name, ""))]


def _zone_parameters(named: str, values: Mapping[str, str], ec2: Any) -> Mapping[str, str]:
    """Return Zone1 to Zone6: those that are named, else those of the network and behind them the region's others.

    Raises:
        RefusedError: more than six are named.
    """
    zones = [zone for zone in named.split(",") if zone]
    if len(zones) > len(_ZONE_PARAMETERS):
        raise RefusedError(f"Zones={named} are {len(zones)} zones, and a network has {len(_ZONE_PARAMETERS)} at most")
    if values.get("VpcId"):
        zones = []
    elif not zones:
        zones = _zones(zones_of(values), ec2)
    padded = [*zones, *[""] * len(_ZONE_PARAMETERS)]
    return dict(zip(_ZONE_PARAMETERS, padded, strict=False))


def _adopted(what: str, tell: Callable[[str], None], *, is_there: bool) -> str:
    if is_there:
        tell(f"{what} exists already, and is used as it is")
    return "true" if is_there else "false"


def _has_repository(name: str, ecr: Any) -> bool:
    try:
        return bool(ecr.describe_repositories(repositoryNames=[name])["repositories"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "RepositoryNotFoundException":
            raise
        return False


def _zones(known: Sequence[str], ec2: Any) -> list[str]:
    """Return the zones of the network, and behind them those that the region has beside them, six in all.

    Their order is that of the subnets' addresses, so it must not change.
    """
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}, {"Name": "state", "Values": ["available"]}]
    found = ec2.describe_availability_zones(Filters=filters)["AvailabilityZones"]
    new = sorted(str(each["ZoneName"]) for each in found if each["ZoneName"] not in known)
    return [*known, *new][: len(_ZONE_PARAMETERS)]
