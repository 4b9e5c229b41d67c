"""Which stack a parameter of a deployment is of, and what must agree."""

import subprocess

import pytest
import yaml

from fakes.repository import REPOSITORY
from relaunch_cli.deployment.machine_parameters import (
    DEFAULTS,
    MACHINE_STACK_PARAMETERS,
    OUTPUTS,
    Way,
    check_disk,
    check_minutes,
    check_most,
    for_sam,
    read_parameters,
)
from relaunch_cli.deployment.refusals import RefusedError

SAM_PYTHON = REPOSITORY / ".venv-sam" / "bin" / "python"
BY_HAND = [
    "MachineSubnets=us-east-1a=subnet-0a",
    "MachineLaunchTemplates=gpu=lt-0a:1",
    "MachineInstanceRoleArn=arn:aws:iam::111122223333:role/machines",
]


class _Loader(yaml.SafeLoader):
    """Loads CloudFormation's YAML; intrinsic functions are loaded as None."""


_Loader.add_multi_constructor("!", lambda _loader, _suffix, _node: None)


def load_template(name: str) -> dict[str, dict[str, dict[str, object]]]:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with one addition


def test_the_parameters_of_both_templates_are_known() -> None:
    machines, application = load_template("infrastructure/machines.yaml"), load_template("template.yaml")
    of_machines, of_application = machines["Parameters"], application["Parameters"]

    assert {"ClusterName", *MACHINE_STACK_PARAMETERS} == set(of_machines)
    assert set(of_machines) & set(of_application) == {"ClusterName"}
    assert set(OUTPUTS) <= set(machines["Outputs"]) & set(of_application)
    for name, value in DEFAULTS.items():
        declared = [template[name]["Default"] for template in (of_machines, of_application) if name in template]
        assert {str(each) for each in declared} == {value}


@pytest.mark.parametrize(
    ("arguments", "way"),
    [
        ([], Way.KEPT),
        (["ClusterName=training", "CapacityProviders=g5=g5.xlarge/spot"], Way.KEPT),
        (["Machines=on"], Way.STACK),
        (["VpcId=vpc-0a"], Way.STACK),
        (["IdleMinutes=45"], Way.STACK),
        (BY_HAND[:1], Way.STACK),
        (BY_HAND, Way.GIVEN),
        (["Machines=off", "CapacityProviders=g5=g5.xlarge/spot"], Way.OFF),
    ],
)
def test_machines_are_set_up_unless_the_deployment_is_told_otherwise(arguments: list[str], way: Way) -> None:
    assert read_parameters(arguments).way is way


def test_each_stack_gets_its_own_parameters_and_the_last_of_two_counts() -> None:
    found = read_parameters(
        ["VpcId=vpc-0a", "Architecture=x86_64", "MaxMachines=5", "Architecture=arm64", 'SubnetIds=""']
    )

    assert found.application == {"Architecture": "arm64", "MaxMachines": "5", "SubnetIds": ""}
    assert found.machines == {"VpcId": "vpc-0a"}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["training"], "'training' is not NAME=VALUE"),
        (["=training"], "'=training' is not NAME=VALUE"),
        (["Machines=no"], "Machines=no is neither Machines=on nor Machines=off"),
        (["Machines=off", "VpcId=vpc-0a"], "Machines=off contradicts VpcId: leave out one or the other"),
        (["Machines=off", *BY_HAND], "contradicts MachineLaunchTemplates, MachineInstanceRoleArn, MachineSubnets"),
        (["MachineDiskGiB=200"], "MachineDiskGiB follows the stack of machines: name DiskGiB=200 instead"),
        (BY_HAND[1:2], "MachineLaunchTemplates without MachineSubnets and MachineInstanceRoleArn: give all three"),
        (BY_HAND[:2], "MachineLaunchTemplates without MachineInstanceRoleArn: give all three by hand, or none of them"),
        ([*BY_HAND, "DiskGiB=200"], "DiskGiB is for the stack of machines that `relaunch deploy` sets up"),
        (
            [*BY_HAND, "Machines=on"],
            "Machines=on sets up what MachineLaunchTemplates, MachineInstanceRoleArn gives by hand",
        ),
    ],
)
def test_what_contradicts_itself_is_refused_in_words(arguments: list[str], text: str) -> None:
    with pytest.raises(RefusedError, match=text.replace("(", r"\(")):
        read_parameters(arguments)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"MachineWarmMinutes": "10"},
        {"MachineWarmMinutes": "30", "IdleMinutes": "40"},
        {"IdleMinutes": "10"},
        {"MachineRegistrationMinutes": "14"},
        {"MachineRegistrationMinutes": "20", "RegistrationMinutes": "21"},
    ],
    ids=str,
)
def test_minutes_that_leave_relaunch_the_first_word_are_taken(values: dict[str, str]) -> None:
    check_minutes(values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"MachineWarmMinutes": "11"}, "after IdleMinutes=20, and MachineWarmMinutes=11 keeps it.* add IdleMinutes=21"),
        ({"MachineWarmMinutes": "30", "IdleMinutes": "39"}, "add IdleMinutes=40 or more"),
        ({"MachineRegistrationMinutes": "15"}, "RegistrationMinutes=15, and MachineRegistrationMinutes=15 gives it"),
        ({"RegistrationMinutes": "8"}, "add RegistrationMinutes=18 or so"),
        ({"IdleMinutes": "soon"}, "IdleMinutes=soon is no number of minutes"),
    ],
)
def test_machines_that_would_end_themselves_too_early_are_refused(values: dict[str, str], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        check_minutes(values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"DiskThroughput": "750"},
        {"DiskThroughput": "1000", "DiskIops": "4000"},
        {"DiskThroughput": "2000", "DiskIops": "15000", "DiskGiB": "30"},
    ],
    ids=str,
)
def test_disks_that_ec2_can_make_are_taken(values: dict[str, str]) -> None:
    check_disk(values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"DiskThroughput": "751"}, "DiskThroughput=751 needs 4 .* has DiskIops=3000: add DiskIops=3004 or more"),
        ({"DiskThroughput": "2000", "DiskIops": "7999"}, "add DiskIops=8000 or more"),
        ({"DiskIops": "15001", "DiskGiB": "30"}, "DiskIops=15001 is more than DiskGiB=30 allows: add DiskGiB=31 or"),
        ({"DiskThroughput": "fast"}, "DiskThroughput=fast is no number of MiB per second"),
        ({"DiskIops": "many"}, "DiskIops=many is no number of operations per second"),
        ({"DiskGiB": "1.5"}, "DiskGiB=1.5 is no number of GiB"),
        ({"DiskGiB": "9" * 5_000}, "DiskGiB=9+ is no number of GiB"),
    ],
)
def test_disks_that_ec2_would_refuse_at_each_launch_are_refused(values: dict[str, str], text: str) -> None:
    with pytest.raises(RefusedError, match=text):
        check_disk(values)


def test_sam_reads_what_it_is_given() -> None:
    parameters = {
        "MachineSubnets": "",
        "CapacityProviders": "g5-spot=g5.xlarge/spot,g5=g5.xlarge/on-demand",
        "MachineTags": "cost-center=ml 42,team=vision",
        "A": "1",
    }
    program = (
        "import json, sys\n"
        "from samcli.cli.types import CfnParameterOverridesType\n"
        "print(json.dumps(CfnParameterOverridesType().convert(tuple(sys.argv[1:]), None, None)))\n"
    )

    run = subprocess.run(
        [SAM_PYTHON, "-c", program, *for_sam(parameters)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert yaml.safe_load(run.stdout) == parameters


MEANT = "MaxMachines=0: did you mean MaxMachines=unlimited, a number from 1 on, or Machines=off"


@pytest.mark.parametrize(
    ("given", "before", "said"),
    [
        pytest.param({"MaxMachines": "0"}, {}, f"^{MEANT}", id="named"),
        pytest.param({"MaxMachines": "0"}, {"MaxMachines": "5"}, f"^{MEANT}", id="named for a stack that exists"),
        pytest.param({}, {"MaxMachines": "0"}, f"^the stack has {MEANT}", id="of a stack"),
    ],
)
def test_no_machines_at_most_is_asked_about(given: dict[str, str], before: dict[str, str], said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        check_most(given, before)


def test_a_limit_and_the_word_for_none_are_taken() -> None:
    check_most({"MaxMachines": "unlimited"}, {"MaxMachines": "0"})
    check_most({"MaxMachines": "5"}, {})
    check_most({}, {})
