"""A capacity provider scales from none to its most and back, and protects what runs."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from architecture.role_policies import Resolver
from architecture.written_template import written_template
from fakes.machines_stack import deploy_machines
from fakes.repository import REPOSITORY

PARAMETERS = {
    "ProviderName": "relaunch-g5-xlarge-spot",
    "ClusterName": "training",
    "InstanceType": "g5.xlarge",
    "Purchase": "spot",
    "MaxSize": "4",
    "Subnets": "subnet-0a,subnet-0b",
    "SecurityGroupId": "sg-0a",
    "InstanceProfileArn": "arn:aws:iam::111122223333:instance-profile/relaunch/machines",
}


def made(**parameters: str) -> dict[str, Any]:
    template = written_template("infrastructure/capacity-provider.yaml")
    resolver = Resolver(template, **{**PARAMETERS, **parameters})
    return {name: resolver.resolve(each["Properties"]) for name, each in template.resources.items()}


def test_a_group_has_one_type_and_none_to_its_most_machines() -> None:
    resources = made()
    group = resources["Group"]

    assert (group["MinSize"], group["MaxSize"]) == ("0", "4")
    assert "DesiredCapacity" not in group
    assert "MixedInstancesPolicy" not in group
    assert resources["LaunchTemplate"]["LaunchTemplateData"]["InstanceType"] == "g5.xlarge"


def test_scaling_is_managed_and_what_runs_is_protected() -> None:
    resources = made()
    provider = resources["Provider"]["AutoScalingGroupProvider"]

    assert provider["ManagedScaling"] == {
        "Status": "ENABLED",
        "TargetCapacity": 100,
        "MinimumScalingStepSize": 1,
        "MaximumScalingStepSize": "4",
    }
    assert provider["ManagedTerminationProtection"] == "ENABLED"
    # Without both of these the protection is refused, or does nothing.
    assert resources["Group"]["NewInstancesProtectedFromScaleIn"] is True
    tags = {each["Key"]: each for each in resources["Group"]["Tags"]}
    assert tags["AmazonECSManaged"] == {"Key": "AmazonECSManaged", "Value": "", "PropagateAtLaunch": True}


@pytest.mark.parametrize(("purchase", "options"), [("spot", {"MarketType": "spot"}), ("on-demand", None)])
def test_spot_is_bought_by_the_launch_template(purchase: str, options: Any) -> None:
    data = made(Purchase=purchase)["LaunchTemplate"]["LaunchTemplateData"]

    assert data.get("InstanceMarketOptions") == options


def test_its_agent_is_set_up_as_on_machines_of_our_own() -> None:
    def settings(user_data: str) -> set[str]:
        return {line for line in user_data.splitlines() if line.startswith("ECS_") and "$" not in line}

    own = deploy_machines().user_data("gpu")
    theirs = made()["LaunchTemplate"]["LaunchTemplateData"]["UserData"]

    assert settings(own) < settings(theirs)
    assert settings(theirs) - settings(own) == {"ECS_CLUSTER=training"}
    assert theirs.startswith("#!/bin/bash\n")
    fabric = (REPOSITORY / "infrastructure" / "user_data" / "fabric.conf").read_text(encoding="utf-8")
    assert fabric in theirs


@pytest.mark.parametrize(
    ("agent", "tasks", "is_off"),
    [
        pytest.param('{"Cluster":"training","ContainerInstanceArn":"arn:x"}', "", False, id="registered"),
        pytest.param("", "", True, id="never-registered"),
        pytest.param('{"Cluster":"other"}', "", True, id="elsewhere"),
        pytest.param("", "0a1b", False, id="agent-starts-again"),
    ],
)
def test_a_machine_that_never_registers_is_switched_off(
    tmp_path: Path, agent: str, tasks: str, *, is_off: bool
) -> None:
    user_data = made()["LaunchTemplate"]["LaunchTemplateData"]["UserData"]
    script = user_data.partition("relaunch-registration <<'END'\n")[2].partition("\nEND\n")[0]
    commands = {"curl": f"echo '{agent}'", "docker": f"echo '{tasks}'", "sleep": "", "tee": "cat", "seq": "echo 1 2"}
    for name, does in {**commands, "systemctl": f'echo "$1" >{tmp_path}/systemctl.txt'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)

    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["/bin/bash", "-c", script], env=environment, check=False, capture_output=True, timeout=20)

    assert (tmp_path / "systemctl.txt").exists() is is_off
    assert user_data.endswith("systemd-run --on-active=15min /usr/local/bin/relaunch-registration\n")


@pytest.mark.parametrize("kind", ["gpu", "neuron", "provider"])
def test_containers_in_bridge_and_awsvpc_mode_are_kept_from_the_metadata_of_their_machine(kind: str) -> None:
    if kind == "provider":
        data = made()["LaunchTemplate"]["LaunchTemplateData"]
        user_data = data["UserData"]
    else:
        machines = deploy_machines()
        data = machines.launch_templates[kind]
        user_data = machines.user_data(kind)

    # A token goes no further than the machine itself, and without one nothing is answered; the IPv6 endpoint is off.
    options = data["MetadataOptions"]
    assert (options["HttpTokens"], options["HttpPutResponseHopLimit"]) == ("required", 1)
    assert options.get("HttpProtocolIpv6", "disabled") == "disabled"
    # Tasks in awsvpc mode have an interface of their own, as far from the metadata as the machine's.
    assert "\nECS_AWSVPC_BLOCK_IMDS=true\n" in user_data


def test_its_root_volume_is_that_of_machines_of_our_own_under_the_key_that_aws_manages() -> None:
    (theirs,) = made()["LaunchTemplate"]["LaunchTemplateData"]["BlockDeviceMappings"]
    template = written_template("infrastructure/machines.yaml")
    data = template.resources["GpuLaunchTemplate"]["Properties"]["LaunchTemplateData"]
    (own,) = Resolver(template).resolve(data["BlockDeviceMappings"])

    volumes = [{**each["Ebs"], "Iops": 3000} for each in (theirs, own)]
    assert {name: str(value) for name, value in volumes[0].items()} == {
        name: str(value) for name, value in volumes[1].items()
    }
    assert volumes[0]["KmsKeyId"] == "alias/aws/ebs"
