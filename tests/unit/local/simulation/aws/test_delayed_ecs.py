"""Answers of DescribeTasks that deny a task."""

from typing import Any

from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.delayed_ecs import DelayedEcs
from relaunch_local.simulation.chance import Chance


class Tasks:
    """Describes every task whose name begins with `there`."""

    def describe_tasks(self, tasks: list[str], **_: Any) -> Any:
        found = [each for each in tasks if each.startswith("there")]
        gone = [{"arn": each, "reason": "MISSING"} for each in tasks if each not in found]
        return {"tasks": [{"taskArn": each} for each in found], "failures": gone}


def test_an_answer_hides_a_task_that_ecs_knows_again_later() -> None:
    client: Any = Tasks()
    clock = Clock()
    ecs = DelayedEcs(client, clock, Chance(1, clock.now), lambda _arn: None, lambda *_made: None)
    ecs.deny("there-denied", 60.0)
    ecs.deny("there-forgotten", 60.0)
    ecs.forgotten.add("there-forgotten")

    hidden = [
        each
        for each in ("there", "there-denied", "there-forgotten", "gone")
        if ecs.hides(ecs.describe_tasks(tasks=[each]))
    ]

    assert hidden == ["there-denied"]
