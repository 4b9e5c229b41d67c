import io
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from rich.console import Console, RenderableType

from fakes.builders import NOW
from relaunch_local.demo.drawings import (
    describe_bill,
    describe_end,
    draw_create_fleet,
    draw_loss_curve,
    draw_results,
    draw_run_task,
    elide,
)
from relaunch_local.demo.outcome import JobResult
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.model import BillLine

RUN_TASK: dict[str, Any] = {
    "taskDefinition": "arn:aws:ecs:eu-central-1:111122223333:task-definition/trainer:11",
    "launchType": "EC2",
    "placementConstraints": [
        {
            "type": "memberOf",
            "expression": "ec2InstanceId == i-0123456789abcdef0 and attribute:ecs.instance-type == g5.xlarge",
        }
    ],
    "startedBy": "demo-n34chin7ew4l/1",
    "clientToken": "a" * 64,
    "overrides": {
        "containerOverrides": [
            {"name": "main", "environment": [{"name": "RELAUNCH_ATTEMPT", "value": "1"}, {"name": "X", "value": "2"}]}
        ]
    },
}


def draw(picture: RenderableType, width: int = 76) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width).print(picture)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghij", 7, "ab…ghij"),
        ("abcdefghij", 3, "…ij"),
        ("abcdefghij", 1, "…ij"),
    ],
)
def test_what_is_too_long_loses_its_middle(text: str, width: int, shown: str) -> None:
    assert elide(text, width) == shown


def test_a_request_shows_its_constraint_whole_on_80_columns() -> None:
    lines = draw(draw_run_task(RUN_TASK, 76))

    assert "constraint      memberOf: ec2InstanceId == i-0123456789abcdef0" in lines
    assert "constraint      and attribute:ecs.instance-type == g5.xlarge" in lines
    assert lines[0].endswith(":task-definition/trainer:11")
    assert "RELAUNCH_ATTEMPT=1" in lines
    assert not any(line.startswith("X=") for line in lines)
    assert len(lines) == 7


def test_a_request_of_a_machine_shows_what_ec2_may_launch_and_by_which_tags_it_is_found() -> None:
    tags = [{"Key": key, "Value": "v"} for key in ("relaunch:machine", "relaunch:job", "relaunch:image")]
    request = {
        "Type": "instant",
        "ClientToken": "relaunch-m-1",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
        "SpotOptions": {"AllocationStrategy": "price-capacity-optimized"},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "7"},
                "Overrides": [
                    {"InstanceType": name, "SubnetId": "subnet-a", "AvailabilityZone": "us-east-1a"}
                    for name in ("g5.xlarge", "g6.xlarge")
                ],
            }
        ],
        "TagSpecifications": [{"ResourceType": "volume", "Tags": []}, {"ResourceType": "instance", "Tags": tags}],
    }

    assert [" ".join(line.split()) for line in draw(draw_create_fleet(request, 76))] == [
        "Type instant: 1 spot",
        "AllocationStrategy price-capacity-optimized",
        "LaunchTemplate lt-1, version 7",
        "Override g5.xlarge in us-east-1a",
        "Override g6.xlarge in us-east-1a",
        "ClientToken relaunch-m-1",
        "Tag relaunch:machine=v",
        "Tag relaunch:job=v",
    ]


def test_a_request_without_options_is_shown_too() -> None:
    bare = {name: RUN_TASK[name] for name in ("taskDefinition", "startedBy", "clientToken")}

    assert len(draw(draw_run_task(bare, 76))) == 4


def test_the_loss_curve_is_one_line_over_all_attempts() -> None:
    curve = {step: (1 if step <= 60 else 2, 1 / step) for step in range(1, 141)}
    text = draw_loss_curve(curve, 60)

    assert text.plain.startswith("loss 1.0000 █")
    assert text.plain.endswith("▁ 0.0071")
    assert len(text.plain) == 60
    assert {span.style for span in text.spans} == {"cyan", "green"}
    assert draw_loss_curve({}, 60).plain == "no step yet"


def test_results_fit_into_80_columns() -> None:
    results = [
        JobResult("push", "demo-n34chin7ew4l", 55, 0, 0.009898, "8b"),
        JobResult("upload", "demo-epmtqk44yat2", 40, 13, 0.009898, "8b"),
    ]
    heading, push, upload = draw(draw_results(results))

    assert heading.split() == ["STARTED", "BY", "JOB", "MACHINE", "TAKEN", "RESUMED", "AGAIN", "LOSS"]
    assert "with a warning" in push
    assert "13 steps" in upload


def test_the_bill_counts_every_machine_and_says_which_cost_nothing() -> None:
    free = BillLine("i-1", "g6.xlarge", Purchase.SPOT, "us-east-1a", NOW, 0.3, is_free=True)
    paid = BillLine("i-2", "g6.xlarge", Purchase.SPOT, "us-east-1a", NOW, 0.3, billing_ended_at=NOW)
    bill = [
        {"cost_usd": 0.0012, "terminated_at": "2026-01-01", "is_free": False},
        {"cost_usd": 0.0013, "terminated_at": None, "is_free": True},
    ]

    ended = "2 machines were launched and 1 terminated; they cost $0.0025"
    assert describe_bill(bill) == f"{ended}; EC2 bills nothing for 1, interrupted in the first hour"
    assert "; EC2" not in describe_bill(bill[:1])
    later = NOW + timedelta(seconds=27.4)
    assert describe_end(free, later) == (
        "i-1 is terminated after 27.4 s; interrupted in its first hour, it costs nothing"
    )
    assert describe_end(paid, later) == "i-2 is terminated after 0.0 s; 60 s are paid, the least that EC2 bills"
    longer = replace(paid, billing_ended_at=NOW + timedelta(seconds=63.2))
    assert describe_end(longer, later) == "i-2 is terminated after 63.2 s, which are paid"
    assert paid.cost_usd(later) == pytest.approx(0.3 / 60)
