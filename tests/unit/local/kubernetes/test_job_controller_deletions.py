"""Pods that are deleted, as the Job controllers of servers count them which track pods by finalizers."""

import pytest

from relaunch_local.ecs.processes.port import Script
from tests.unit.local.kubernetes.conftest import NAMESPACE

FAIL_ON_2 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2]}}]}
FOREVER = Script(runtime_seconds=None)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize(
    ("minor", "policy", "at_once"),
    [
        (25, None, ["Failed"]),
        # It does not know them, and drops them.
        (25, FAIL_ON_2, ["Failed"]),
        (26, None, ["Failed"]),
        (26, FAIL_ON_2, []),
        (36, None, ["FailureTarget"]),
        (36, FAIL_ON_2, []),
    ],
)
def test_a_pod_that_is_deleted_counts_at_once_or_by_a_failure_policy_when_it_has_ended(
    make_world, minor, policy, at_once, code
) -> None:
    world = make_world(minor=minor)
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=20, sigterm_exit_code=code)
    world.create(**({"podFailurePolicy": policy} if policy else {}))
    world.clock.advance(5)

    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"])
    world.clock.advance(10)
    begun = [kind for kind, _ in world.conditions()]
    world.clock.advance(15)

    ends_well = code == 0 and not at_once
    assert begun == at_once
    assert world.pods() == []
    assert world.conditions()[-1][0] == ("Complete" if ends_well else "Failed")
    assert ends_well or world.job()["status"]["failed"] == 1
    killing = [each for each in world.cluster.state.all("events") if each["reason"] == "Killing"]
    assert [each["count"] for each in killing] == [1]


@pytest.mark.parametrize("minor", [25, 36])
def test_a_pod_that_was_deleted_and_counted_is_replaced_and_not_counted_again(make_world, minor) -> None:
    world = make_world(minor=minor)
    world.script = Script(runtime_seconds=None, sigterm_delay_seconds=20, sigterm_exit_code=0)
    world.create(backoffLimit=1)
    world.clock.advance(5)

    world.cluster.delete_pod(NAMESPACE, world.pod["metadata"]["name"])
    world.clock.advance(15)
    beside = len(world.pods())
    world.clock.advance(60)

    assert (beside, len(world.pods())) == (2, 1)
    assert world.conditions() == []
    assert world.job()["status"]["failed"] == 1
