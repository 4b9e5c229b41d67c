"""A job's target is that of its definition, made once it is needed."""

import pytest

from fakes.tasks import FakeTasks
from relaunch.core.definitions.targets import Target
from relaunch.ports import Targets, UnknownTargetError


def test_only_the_target_that_is_used_is_made():
    tasks, made = FakeTasks(), []
    targets = Targets({target: lambda target=target: made.append(target) or tasks for target in Target})

    assert (targets.problem(Target.ACS), made) == ("", [])
    assert targets.named(Target.ACK) is tasks
    assert made == [Target.ACK]
    assert list(targets) == list(Target)


@pytest.mark.parametrize(
    ("target", "advice"),
    [
        (Target.ECS, "set CapacityProviders, or MachineSubnets for machines of its own"),
        (Target.ACS, "set AcsClusterId"),
    ],
)
def test_a_target_that_the_stack_does_not_have_is_refused_with_what_to_set(target, advice):
    targets = Targets({Target.ACK: FakeTasks})

    assert target not in targets
    assert targets.problem(target) == f"the stack has no target {target}, it has ack: {advice} and deploy again"
    with pytest.raises(UnknownTargetError, match=f"the stack has no target {target}"):
        targets.named(target)


def test_checkpoints_in_oss_need_what_reads_them():
    without, with_oss = (Targets({Target.ACK: FakeTasks}, reads_oss=reads_oss) for reads_oss in (False, True))

    problem = without.problem(Target.ACK, "oss://acme/train/")
    assert problem.startswith("the stack does not read oss://acme/train/: set OssRegion, AlibabaRoleArn and ")
    assert without.problem(Target.ACK, "s3://acme/train/") == with_oss.problem(Target.ACK, "oss://acme/train/") == ""
    assert "AcsClusterId" in with_oss.problem(Target.ACS, "oss://acme/train/")


def test_a_stack_without_any_target_has_no_ecs():
    with pytest.raises(UnknownTargetError, match="the stack has no target ecs, it has none: set CapacityProviders"):
        _ = Targets({}).ecs
