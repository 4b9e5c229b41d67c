"""What a deployment is told of machines of our own: which stack each parameter is of, and what must agree.

A new deployment has machines of our own unless it is told otherwise: the stack of infrastructure/machines.yaml is
deployed first, and its outputs are parameters of the application's stack. `Machines=off` leaves them out. An update
keeps what the application has, as with every parameter, until `Machines=on` or `Machines=off` says something else.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from relaunch_cli.deployment.defaults import DEFAULTS
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.separation import ROLE_PATH

_NUMBER = re.compile(r"[0-9]{1,9}")

SWITCH = "Machines"
"""The parameter of a deployment that turns machines on or off, which no stack has."""
IMAGE_REPOSITORIES = "ImageRepositories"
MACHINE_STACK_PARAMETERS = (
    "VpcId",
    "DiskGiB",
    "DiskThroughput",
    "DiskIops",
    "DiskKmsKeyArn",
    "InstanceStore",
    "NodesMeet",
    IMAGE_REPOSITORIES,
    ROLE_PATH,
    "IdleMinutes",
    "RegistrationMinutes",
    "GpuImageId",
    "NeuronImageId",
)
"""The parameters of machines.yaml, but for ClusterName, which both stacks have."""
MOST = "MaxMachines"
SUBNETS = "MachineSubnets"
LAUNCH_TEMPLATES = "MachineLaunchTemplates"
ROLE = "MachineInstanceRoleArn"
DISK = "MachineDiskGiB"
DISK_KEY = "MachineDiskKeyArn"
OUTPUTS = (LAUNCH_TEMPLATES, ROLE, DISK)
"""The outputs of machines.yaml that are parameters of the application, under the same names; DISK_KEY may be one."""
# A job that takes a warm machine at the last minute must find it: its task is placed, and its image pulled, meanwhile.
_IDLE_MARGIN_MINUTES = 10
# gp3 has at most 0.25 MiB/s for each operation per second, and at most 500 of these for each GiB ("General Purpose SSD
# volumes", Amazon EBS User Guide).
_IOPS_PER_MIB_PER_SECOND = 4
_IOPS_PER_GIB = 500


class Way(StrEnum):
    """How the application's stack gets what machines of our own are launched with."""

    STACK = "stack"  # from the stack of machines.yaml, which is deployed first
    GIVEN = "given"  # by hand
    OFF = "off"
    KEPT = "kept"  # as the application has it; from the stack of machines.yaml for a new one


@dataclass(frozen=True)
class Parameters:
    """The parameters of a deployment: those of the application's stack, those of machines.yaml, and the way."""

    application: Mapping[str, str]
    machines: Mapping[str, str]
    way: Way


def read_parameters(arguments: Sequence[str]) -> Parameters:
    """Sort the `NAME=VALUE` of the command line; of two with one name the later one counts, as for SAM CLI.

    Raises:
        RefusedError: an argument has another form, or two contradict each other.
    """
    given: dict[str, str] = {}
    for argument in arguments:
        name, separator, value = argument.partition("=")
        if not name or not separator:
            raise RefusedError(f"{argument!r} is not NAME=VALUE, for example ClusterName=training")
        given[name] = "" if value == '""' else value
    switch = given.pop(SWITCH, "")
    if switch not in ("", "on", "off"):
        raise RefusedError(f"{SWITCH}={switch} is neither {SWITCH}=on nor {SWITCH}=off")
    machines = {name: value for name, value in given.items() if name in MACHINE_STACK_PARAMETERS}
    application = {name: value for name, value in given.items() if name not in machines}
    # The path of roles is no wish for machines: the stack of what trainings need has it too.
    named = {name: value for name, value in machines.items() if name != ROLE_PATH}
    return Parameters(application, machines, _way(switch, application, named))


def _way(switch: str, application: Mapping[str, str], machines: Mapping[str, str]) -> Way:
    by_hand = [name for name in (LAUNCH_TEMPLATES, ROLE) if application.get(name)]
    if switch == "off":
        contradiction = [*by_hand, *([SUBNETS] if application.get(SUBNETS) else []), *machines]
        if contradiction:
            raise RefusedError(f"{SWITCH}=off contradicts {', '.join(contradiction)}: leave out one or the other")
        return Way.OFF
    if not by_hand:
        if application.get(DISK):
            raise RefusedError(f"{DISK} follows the stack of machines: name DiskGiB={application[DISK]} instead")
        return Way.STACK if switch or machines or application.get(SUBNETS) else Way.KEPT
    if switch:
        raise RefusedError(f"{SWITCH}=on sets up what {', '.join(by_hand)} gives by hand: leave out one or the other")
    missing = [name for name in (SUBNETS, LAUNCH_TEMPLATES, ROLE) if not application.get(name)]
    if missing:
        raise RefusedError(
            f"{' and '.join(by_hand)} without {' and '.join(missing)}: give all three by hand, or none of them; "
            f"{SUBNETS} alone chooses the subnets of the machines that `relaunch deploy` sets up"
        )
    if machines:
        raise RefusedError(
            f"{', '.join(machines)} is for the stack of machines that `relaunch deploy` sets up, and "
            f"{LAUNCH_TEMPLATES} and {ROLE} are given by hand: leave out one or the other"
        )
    return Way.GIVEN


def check_most(given: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Check that the number of machines is not 0, which some take for no machines, and others for no limit.

    `before` are the parameters of the application that exists.

    Raises:
        RefusedError: it is 0.
    """
    if given.get(MOST, before.get(MOST)) != "0":
        return
    whose = "" if MOST in given else "the stack has "
    raise RefusedError(
        f"{whose}{MOST}=0: did you mean {MOST}=unlimited, a number from 1 on, or {SWITCH}=off for no machines?"
    )


def check_minutes(values: Mapping[str, str]) -> None:
    """Check that machines do not power themselves off while Relaunch still counts on them.

    `values` are those that the two stacks will have; what is missing has its default.

    Raises:
        RefusedError: they would, or a value is no number.
    """
    idle, warm = (_number(name, "of minutes", values) for name in ("IdleMinutes", "MachineWarmMinutes"))
    if warm and idle < warm + _IDLE_MARGIN_MINUTES:
        raise RefusedError(
            f"a machine without a task powers itself off after IdleMinutes={idle}, and MachineWarmMinutes={warm} keeps "
            f"it for the next job, whose task needs a few minutes to start there: add IdleMinutes="
            f"{warm + _IDLE_MARGIN_MINUTES} or more"
        )
    registration = _number("RegistrationMinutes", "of minutes", values)
    deadline = _number("MachineRegistrationMinutes", "of minutes", values)
    if registration <= deadline:
        raise RefusedError(
            f"a machine that has not registered powers itself off after RegistrationMinutes={registration}, and "
            f"MachineRegistrationMinutes={deadline} gives it as long or longer; Relaunch should be first, for it says "
            f"why, and requests another one: add RegistrationMinutes={deadline + _IDLE_MARGIN_MINUTES} or so"
        )


def check_disk(values: Mapping[str, str]) -> None:
    """Check that EC2 can make the root volume: CloudFormation takes any launch template, and EC2 refuses each launch.

    `values` are those that the stack of machines will have; what is missing has its default.

    Raises:
        RefusedError: EC2 would refuse the volume, or a value is no number.
    """
    throughput = _number("DiskThroughput", "of MiB per second", values)
    iops = _number("DiskIops", "of operations per second", values)
    size = _number("DiskGiB", "of GiB", values)
    if iops < throughput * _IOPS_PER_MIB_PER_SECOND:
        raise RefusedError(
            f"a gp3 volume with DiskThroughput={throughput} needs {_IOPS_PER_MIB_PER_SECOND} operations per second for "
            f"each MiB per second, and has DiskIops={iops}: "
            f"add DiskIops={throughput * _IOPS_PER_MIB_PER_SECOND} or more"
        )
    if iops > size * _IOPS_PER_GIB:
        raise RefusedError(
            f"a gp3 volume has at most {_IOPS_PER_GIB} operations per second for each GiB, and DiskIops={iops} is more "
            f"than DiskGiB={size} allows: add DiskGiB={-(-iops // _IOPS_PER_GIB)} or more"
        )


def _number(name: str, of_what: str, values: Mapping[str, str]) -> int:
    text = values.get(name) or DEFAULTS[name]
    if _NUMBER.fullmatch(text) is None:
        raise RefusedError(f"{name}={text} is no number {of_what}")
    return int(text)


def for_sam(parameters: Mapping[str, str]) -> list[str]:
    """Return parameters as SAM CLI takes them: in quotes, because without them a value ends at its first blank."""
    return [f'{name}="{value}"' for name, value in parameters.items()]
