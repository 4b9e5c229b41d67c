"""The settings of machines of our own: how they are launched, and how many there may be."""

import re
from collections.abc import Mapping
from datetime import timedelta

from relaunch.core.machines.limits import MachineLimits, TaskStop
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.setting_values import InvalidSettingsError, flag, price_cap, required, split, whole

_MACHINE_SUBNET = r"(?P<zone>[a-z]{2}-[a-z0-9-]+)=(?P<subnet>subnet-[0-9a-f]+)"
_LAUNCH_TEMPLATE = r"(?P<kind>gpu|neuron)=(?P<id>lt-[0-9a-f]+):(?P<version>[1-9][0-9]*)"
_TAG = r"(?!aws:|relaunch:|\.{1,2}=|_index=)(?P<key>[A-Za-z0-9._:@+-]{1,127})=(?P<value>[A-Za-z0-9 _.:/=+@-]{0,256})"
_RESERVATION = r"cr-[0-9a-f]+"
_INSTANCE_ROLE = r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]+"


def read_machines(values: Mapping[str, str], names: Mapping[str, str]) -> MachineSettings:
    """Read the settings of machines of our own, which are off if none of those that they need is given.

    Raises:
        InvalidSettingsError: one is missing, or invalid.
    """
    stack = values.get(names["stack"], "")
    queue_url = values.get(names["machines_queue_url"], "")
    needed = [names[each] for each in ("machine_subnets", "machine_launch_templates", "machine_instance_role")]
    missing = [name for name in needed if not values.get(name)]
    if len(missing) == len(needed):
        return MachineSettings(stack, queue_url=queue_url)
    if missing:
        raise InvalidSettingsError(
            f"setting {missing[0]} is missing: machines of our own need {', '.join(needed[:-1])} and {needed[-1]}, or "
            "none of them"
        )
    return MachineSettings(
        stack=required(values, names["stack"]),
        queue_url=required(values, names["machines_queue_url"]),
        subnets=_machine_subnets(values, needed[0]),
        launch_templates=_launch_templates(values, needed[1]),
        instance_role_arn=_instance_role(values, needed[2]),
        disk_gib=whole(values, names["machine_disk"], least=1),
        reservation_ids=_reservations(values, names["reservations"]),
        tags=read_tags(values.get(names["machine_tags"], ""), names["machine_tags"]),
    )


def read_machine_limits(values: Mapping[str, str], names: Mapping[str, str]) -> MachineLimits:
    """Read the limits of machines of our own; raises InvalidSettingsError."""
    registration = whole(values, names["machine_registration_minutes"], least=1)
    return MachineLimits(
        max_machines=_max_machines(values, names["max_machines"]),
        max_usd_per_hour=_machines_price(values, names["max_machines_price"]),
        registration_deadline=timedelta(minutes=registration),
        warm_time=timedelta(minutes=whole(values, names["machine_warm_minutes"])),
        starts_on_rebalance=flag(values, names["machine_start_on_rebalance"]),
        task_stop=_task_stop(values, names["machine_task_stop"]),
    )


def _max_machines(values: Mapping[str, str], name: str) -> int:
    """Return the most machines; 0 for `unlimited`, and for the 0 of a stack of an earlier release, which meant that."""
    return 0 if values.get(name) == "unlimited" else whole(values, name)


def _task_stop(values: Mapping[str, str], name: str) -> TaskStop:
    value = required(values, name)
    try:
        return TaskStop(value)
    except ValueError:
        raise InvalidSettingsError(f"setting {name}: {value!r} is neither {' nor '.join(TaskStop)}") from None


def _machine_subnets(values: Mapping[str, str], name: str) -> dict[str, str]:
    subnets: dict[str, str] = {}
    for entry in split(values[name]) or ("",):
        match = re.fullmatch(_MACHINE_SUBNET, entry)
        if match is None:
            raise InvalidSettingsError(
                f"setting {name}: {entry!r} is not zone=subnet, for example us-east-1a=subnet-0123456789abcdef0"
            )
        if match["zone"] in subnets:
            raise InvalidSettingsError(
                f"setting {name}: {match['zone']} has two subnets, {subnets[match['zone']]} and {match['subnet']}; "
                "name one of them: EC2 Fleet refuses a request with an instance type twice in one zone"
            )
        subnets[match["zone"]] = match["subnet"]
    return subnets


def _launch_templates(values: Mapping[str, str], name: str) -> dict[AmiKind, LaunchTemplate]:
    templates: dict[AmiKind, LaunchTemplate] = {}
    for entry in split(values[name]) or ("",):
        match = re.fullmatch(_LAUNCH_TEMPLATE, entry)
        if match is None:
            raise InvalidSettingsError(
                f"setting {name}: {entry!r} is not gpu=ID:VERSION or neuron=ID:VERSION, for example "
                "gpu=lt-0123456789abcdef0:7; the version is a number, because $Default stays 1 after an update, and "
                "$Latest may change between a request and its repetition"
            )
        kind = AmiKind(match["kind"])
        if kind in templates:
            raise InvalidSettingsError(f"setting {name}: {kind} has two launch templates; name one of them")
        templates[kind] = LaunchTemplate(match["id"], match["version"])
    return templates


def _reservations(values: Mapping[str, str], name: str) -> tuple[str, ...]:
    ids = tuple(dict.fromkeys(split(values.get(name, ""))))
    for each in ids:
        if re.fullmatch(_RESERVATION, each) is None:
            raise InvalidSettingsError(
                f"setting {name}: {each!r} is not the ID of a capacity reservation, for example cr-0123456789abcdef0; "
                "a Capacity Block has such an ID too: aws ec2 describe-capacity-reservations"
            )
    return ids


def read_tags(text: str, name: str) -> dict[str, str]:
    """Return the tags of the setting `name`, `KEY=VALUE` separated by commas.

    Raises:
        InvalidSettingsError: an entry is no tag, a key is taken, or one has two values.
    """
    tags: dict[str, str] = {}
    for entry in split(text):
        match = re.fullmatch(_TAG, entry)
        if match is None:
            raise InvalidSettingsError(
                f"setting {name}: {entry!r} is not KEY=VALUE, for example cost-center=ml-42; keys that begin with aws: "
                "or relaunch: are taken"
            )
        if match["key"] in tags:
            raise InvalidSettingsError(f"setting {name}: {match['key']} has two values")
        tags[match["key"]] = match["value"]
    return tags


def _instance_role(values: Mapping[str, str], name: str) -> str:
    arn = values[name]
    if re.fullmatch(_INSTANCE_ROLE, arn) is None:
        raise InvalidSettingsError(
            f"setting {name}: {arn!r} is not the ARN of a role, for example "
            "arn:aws:iam::111122223333:role/relaunch/machines"
        )
    return arn


def _machines_price(values: Mapping[str, str], name: str) -> float:
    cap = price_cap(values, name)
    if cap is not None and not 0 < cap < float("inf"):
        raise InvalidSettingsError(f"setting {name} is not above 0, for example 100; none stands for no limit")
    return cap or 0.0
