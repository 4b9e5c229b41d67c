"""A derived revision that is deregistered between two ranks of a gang."""

from datetime import timedelta
from typing import Any

import pytest

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.delayed_ecs import DelayedEcs
from relaunch_local.simulation.aws.group_faults import RETIRED
from relaunch_local.simulation.chance import Chance

DERIVED = "arn:aws:ecs:us-east-1:111122223333:task-definition/trainer--9e04b7f3efb0d51a:2"


class Calls:
    """Lists its calls; each RunTask makes a task."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def run_task(self, **parameters: Any) -> Any:
        self.made.append("RunTask")
        return {"tasks": [{"taskArn": f"arn:task-{parameters['clientToken']}"}], "failures": []}

    def deregister_task_definition(self, **parameters: Any) -> None:
        self.made.append(parameters["taskDefinition"])


def run(rank: str, revision: str = DERIVED, share: float = 1.0, *, times: int = 1) -> list[str]:
    calls: Any = Calls()
    clock = Clock()
    chance = Chance(1, clock.now)
    ecs = DelayedEcs(calls, clock, chance, lambda _arn: None, lambda *_made: None, {RETIRED: share} if share else {})
    environment = [{"name": "RELAUNCH_NODES", "value": "3"}, {"name": "RELAUNCH_NODE_RANK", "value": rank}]
    for _ in range(times):
        ecs.run_task(
            taskDefinition=revision,
            startedBy="resnet-1/1",
            clientToken=f"token-{rank}",
            overrides={"containerOverrides": [{"name": "main", "environment": environment if rank else []}]},
        )
    clock.advance_to(clock.now() + timedelta(seconds=0.01))
    found: list[str] = calls.made
    return found


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_derived_revision_is_deregistered_after_a_rank_that_another_one_follows(rank: str) -> None:
    assert run(rank) == ["RunTask", DERIVED]
    # What a token has made is answered again, and says nothing new.
    assert run(rank, times=2) == ["RunTask", "RunTask", DERIVED]


def test_no_other_one_is() -> None:
    assert run("2") == ["RunTask"]
    assert run("") == ["RunTask"]
    assert run("1", "trainer:2") == ["RunTask"]
    assert run("1", share=0.0) == ["RunTask"]
