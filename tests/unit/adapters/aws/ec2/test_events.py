import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fakes.webhook import EVENTS, load_event
from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind
from relaunch.ports import PermanentError

INSTANCE_ID = "i-0a1b2c3d4e5f60718"
WARNING = "EC2 Spot Instance Interruption Warning"


@pytest.mark.parametrize(
    ("name", "kind", "action", "time"),
    [
        ("spot-interruption-warning", InstanceEventKind.INTERRUPTION_WARNING, "terminate", "12:40:58"),
        ("rebalance-recommendation", InstanceEventKind.REBALANCE_RECOMMENDATION, "", "12:20:11"),
        ("instance-state-change", InstanceEventKind.STATE_CHANGE, "shutting-down", "12:43:02"),
    ],
)
def test_event_of_ec2_is_read(name: str, kind: InstanceEventKind, action: str, time: str) -> None:
    at = datetime.fromisoformat(f"2026-11-03T{time}Z")

    assert parse_ec2_event(load_event(f"aws.ec2.{name}")) == InstanceEvent(kind, INSTANCE_ID, action, at)


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param([f"arn:aws:ec2:us-east-1a:instance/{INSTANCE_ID}"], id="zone-and-no-account"),
        pytest.param([f"arn:aws:ec2:us-east-1:111122223333:instance/{INSTANCE_ID}"], id="region-and-account"),
        pytest.param(["arn:aws:ec2:us-east-1:111122223333:instance/i-0ther"], id="another-instance"),
        pytest.param([], id="none"),
        pytest.param(None, id="null"),
    ],
)
def test_only_the_detail_says_which_instance(resources: list[str] | None) -> None:
    news = parse_ec2_event({**load_event("aws.ec2.spot-interruption-warning"), "resources": resources})

    assert news is not None
    assert news.instance_id == INSTANCE_ID


@pytest.mark.parametrize("action", ["stop", "hibernate", "something-new"])
def test_warning_keeps_what_it_announces(action: str) -> None:
    news = parse_ec2_event({"detail-type": WARNING, "detail": {"instance-id": "i-0a", "instance-action": action}})

    assert news == InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, "i-0a", action)


@pytest.mark.parametrize("detail_type", ["EC2 Spot Instance Request Fulfillment", "AWS API Call via CloudTrail", None])
def test_other_events_of_ec2_concern_nobody(detail_type: str | None) -> None:
    assert parse_ec2_event({"detail-type": detail_type, "detail": {}}) is None


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"detail-type": WARNING}, id="no-detail"),
        pytest.param({"detail-type": WARNING, "detail": {}}, id="no-instance"),
        pytest.param({"detail-type": WARNING, "detail": {"instance-id": ""}}, id="empty-instance"),
        pytest.param({"detail-type": WARNING, "detail": {"instance-id": "i-0a or agentConnected"}}, id="not-an-id"),
        pytest.param({"detail-type": WARNING, "detail": "text"}, id="detail-is-text"),
    ],
)
def test_invalid_event_is_a_permanent_error(event: dict[str, Any]) -> None:
    with pytest.raises(PermanentError, match="reading an event from EC2: detail"):
        parse_ec2_event(event)


@pytest.mark.parametrize("path", sorted(EVENTS.glob("sqs.warnings.*.json")), ids=lambda path: path.stem)
def test_sample_messages_carry_events_of_ec2(path: Path) -> None:
    for record in json.loads(path.read_text())["Records"]:
        assert parse_ec2_event(json.loads(record["body"])) is not None
