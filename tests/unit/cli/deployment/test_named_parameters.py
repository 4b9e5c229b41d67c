"""Parameters of a deployment as they are named, and the clone that they are for."""

from pathlib import Path

import pytest

from relaunch_cli.deployment.findings import AccountRoles, ParameterChange, QuotaState, Stack, Survey
from relaunch_cli.deployment.named_parameters import _load, read_changes, read_named
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.errors import CommandError

SOURCE = find_source()
REPOSITORIES = ",".join(f"arn:aws:ecr:us-east-1:123456789012:repository/{name}" for name in ("a/trainer", "b-*"))


def test_parameters_of_all_stacks_and_the_switches_are_known() -> None:
    named = ["ClusterName=a", "DiskGiB=200", "Zones=b,c", "MaxMachines=5", "Machines=off", "Training=off", "Providers="]
    named += ["MaxSpotRatio=0.5", "LogRetentionDays=90", "MaxPricePerHour=none", "VpcId="]
    named += [f"ImageRepositories={REPOSITORIES}"]

    assert read_named(named, SOURCE) == dict(each.split("=", 1) for each in named)


def test_the_later_one_counts_and_an_empty_value_may_be_quoted() -> None:
    assert read_named(["DiskGiB=many", "DiskGiB=200", "SubnetIds=subnet-0a", 'SubnetIds=""'], SOURCE) == {
        "DiskGiB": "200",
        "SubnetIds": "",
    }


@pytest.mark.parametrize(
    ("argument", "allowed"),
    [
        ("MaxMachines=many", "a number from 1 on, or `unlimited`"),
        ("MaxMachines=-3", "a number from 1 on, or `unlimited`"),
        ("MaxPricePerHour=cheap", "a number of USD, like 40 or 2.5, or `none` for no cap"),
        ("MaxMachinesPricePerHour=0", "a number of USD above 0, like 40 or 2.5, or `none` for no limit"),
        ("UnusedImageDays=7", "a number of days from 60 to 9999, or 0 to keep all images"),
        ("GitHubRepository=acme", "a repository at GitHub is written like OWNER/NAME"),
        ("GitHubRepository=acme/vision/x", "a repository at GitHub is written like OWNER/NAME"),
        ("VpcId=vpc-none", "the ID of a VPC, like vpc-0123456789abcdef0, or nothing"),
        ("SubnetIds=subnet-0a, subnet-0b", "IDs of subnets, like subnet-0123456789abcdef0, separated by commas"),
        ("SecurityGroupIds=default", "IDs of security groups, like sg-0123456789abcdef0, separated by commas"),
        ("CheckpointBuckets=acme,s3://b", "names of buckets, separated by commas, or nothing"),
        ("ImageRepositories=vision/trainer", "ARNs of ECR repositories, separated by commas, or nothing"),
        ("MaxSpotRatio=1.5", "a number from 0 to 1. Spot that costs more"),
        ("MaxRunningJobs=a", "a number from 0. How many jobs"),
        ("DiskGiB=29", "a number from 30 to 16384. The root volume in GiB"),
        ("LogRetentionDays=31", "one of 1, 3, 5, 7, 14, 30"),
        ("Webhook=maybe", "one of on, off. Whether GitHub can send events"),
        ("ClusterName=", "what matches [A-Za-z0-9_-]{1,255}. "),
    ],
)
def test_what_a_template_does_not_take_is_refused_with_what_it_takes(argument: str, allowed: str) -> None:
    with pytest.raises(RefusedError) as refused:
        read_named([argument, "DiskGiB=nan" if argument != "DiskGiB=29" else argument], SOURCE)

    first, *others = str(refused.value).splitlines()
    assert first.startswith(f"{argument} is not allowed: {allowed}")
    assert len(others) == (argument != "DiskGiB=29")


def test_no_text_that_can_be_named_is_taken_as_it_is() -> None:
    unchecked = {
        name
        for text in (SOURCE.application, SOURCE.training, SOURCE.machines)
        for name, each in _load(text)["Parameters"].items()
        if each["Type"] in ("String", "CommaDelimitedList") and not {"AllowedValues", "AllowedPattern"} & set(each)
    }

    # They are those of Zones, which the account is asked about.
    assert unchecked == {f"Zone{number}" for number in range(1, 7)}


def test_a_hidden_value_stays_hidden() -> None:
    with pytest.raises(RefusedError, match=r"^this value of OriginSecrets is not") as refused:
        read_named(["OriginSecrets=hunter2"], SOURCE)

    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("training", "'training' is not NAME=VALUE, for example ClusterName=training"),
        ("=a", "is not NAME=VALUE"),
        ("MaxMachine=5", "no stack has a parameter 'MaxMachine': did you mean MaxMachines"),
        ("Zone1=us-east-1a", "no stack has a parameter 'Zone1'"),
    ],
)
def test_what_no_stack_takes_is_refused(argument: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        read_named([argument], SOURCE)


def test_a_folder_that_is_no_clone_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is no clone of Relaunch") as refused:
        find_source(tmp_path)

    assert "--source" in refused.value.hint


def test_what_a_deployment_changes_of_stacks_that_exist() -> None:
    before = {
        "relaunch": Stack(
            "relaunch", "UPDATE_COMPLETE", {"MaxMachines": "5", "Webhook": "off", "OriginSecrets": "****"}
        ),
        "relaunch-training": Stack("relaunch-training", "CREATE_COMPLETE", {"ClusterName": "a", "GitHubRef": "main"}),
    }
    given = {"MaxMachines": "1", "Webhook": "off", "MachineWarmMinutes": "10", "OriginSecrets": "hunter2"}
    plan = Survey(
        stack="relaunch",
        account="111122223333",
        region="eu-central-1",
        # That of the machines is made, and no stack has a parameter of this name.
        given={**given, "DiskGiB": "200", "Machines": "on"},
        training={"ClusterName": "a", "GitHubRef": ""},
        has_machines=True,
        before=before,
        roles=AccountRoles((), ""),
        quotas=QuotaState(),
    )

    assert read_changes(plan, SOURCE) == [
        ParameterChange("relaunch-training", "GitHubRef", "main", ""),
        ParameterChange("relaunch", "MaxMachines", "5", "1"),
        ParameterChange("relaunch", "MachineWarmMinutes", "0", "10"),
        ParameterChange("relaunch", "OriginSecrets", "****", "****"),
    ]
