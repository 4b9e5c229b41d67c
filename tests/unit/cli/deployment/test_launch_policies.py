"""What IAM would refuse last of all is refused first of all."""

import pytest

from relaunch_cli.deployment.launch_policies import check_launch_policies
from relaunch_cli.deployment.refusals import RefusedError


def names(count: int) -> str:
    return ",".join(f"team-{number:02d}-image-trainer" for number in range(count))


def test_a_dozen_families_and_some_buckets_have_room() -> None:
    check_launch_policies("relaunch", {"TaskDefinitionFamilies": names(12), "CheckpointBuckets": names(4)})


def test_too_many_families_are_refused_with_what_to_write_instead() -> None:
    with pytest.raises(RefusedError, match=r"11,\d\d\d characters, and IAM takes 10,240: name the 24 Task.* team-\*"):
        check_launch_policies("relaunch", {"TaskDefinitionFamilies": names(24)})
