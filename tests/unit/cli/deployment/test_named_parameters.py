"""Parameters of a deployment as they are named, and the clone that they are for."""

from pathlib import Path

import pytest

from relaunch_cli.deployment.named_parameters import read_named
from relaunch_cli.deployment.refusals import RefusedError
from relaunch_cli.deployment.source import find_source
from relaunch_cli.errors import CommandError

SOURCE = find_source()


def test_parameters_of_all_stacks_and_the_switches_are_known() -> None:
    named = ["ClusterName=a", "DiskGiB=200", "Zones=b,c", "MaxMachines=5", "Machines=off", "Training=off", "Providers="]

    assert read_named(named, SOURCE) == dict(each.split("=", 1) for each in named)


def test_the_later_one_counts_and_an_empty_value_may_be_quoted() -> None:
    assert read_named(["SubnetIds=a", 'SubnetIds=""'], SOURCE) == {"SubnetIds": ""}


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
