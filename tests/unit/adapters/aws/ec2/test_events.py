import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.webhook import EVENTS, load_event
from relaunch.adapters.aws.ec2.events import parse_ec2_event
from relaunch.adapters.aws.health import parse_health_event
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind, ReservationEnding
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


def test_the_owner_of_a_reservation_interrupts_as_the_spot_market_does() -> None:
    name = "EC2 Capacity Reservation Instance Interruption Warning"
    detail = {"instance-id": INSTANCE_ID, "instance-action": "terminate", "azId": "use1-az1"}
    news = parse_ec2_event({"detail-type": name, "detail": detail, "time": "2026-11-03T12:40:58Z"})

    assert isinstance(news, InstanceEvent)
    assert (news.kind, news.instance_id) == (InstanceEventKind.INTERRUPTION_WARNING, INSTANCE_ID)
    assert news.cause == "interruption of the capacity reservation"


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

    assert isinstance(news, InstanceEvent)
    assert news.instance_id == INSTANCE_ID


@pytest.mark.parametrize("action", ["stop", "hibernate", "something-new"])
def test_warning_keeps_what_it_announces(action: str) -> None:
    news = parse_ec2_event({"detail-type": WARNING, "detail": {"instance-id": "i-0a", "instance-action": action}})

    assert news == InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, "i-0a", action)


@pytest.mark.parametrize(
    "detail_type", ["EC2 Spot Instance Request Fulfillment", "AWS API Call via CloudTrail", None, [WARNING], {}]
)
def test_other_events_of_ec2_concern_nobody(detail_type: object) -> None:
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
        event = json.loads(record["body"])
        assert (parse_ec2_event(event) or parse_health_event(event)) is not None


class TestCapacityBlockEnds:
    BLOCK = "aws.ec2.capacity-block-expiration-warning"
    RESERVATION_ID = "cr-0b10c0b10c0b10c00"
    AT = datetime(2026, 11, 3, 10, 50, tzinfo=UTC)

    @pytest.mark.parametrize(
        "name", ["Capacity Block Reservation Expiration Warning", "Capacity Block Expiration Warning"]
    )
    def test_the_end_of_a_block_is_read_by_both_names(self, name: str) -> None:
        event = {**load_event(self.BLOCK), "detail-type": name}

        assert parse_ec2_event(event) == ReservationEnding(
            self.RESERVATION_ID, self.AT, self.AT + timedelta(minutes=40)
        )

    @pytest.mark.parametrize(
        "detail",
        [{}, {"end-date": ""}, {"end-date": "Tue Nov 03 11:30"}, {"end-date": "0001"}, {"end-date": "2026-11-04"}],
    )
    def test_without_a_date_that_can_be_read_it_ends_forty_minutes_after_the_event(self, detail: Any) -> None:
        event = {**load_event(self.BLOCK), "detail": {"capacity-reservation-id": self.RESERVATION_ID, **detail}}

        news = parse_ec2_event(event)

        assert isinstance(news, ReservationEnding)
        assert news.ends_at == self.AT + timedelta(minutes=40)

    def test_an_earlier_end_is_believed(self) -> None:
        detail = {"capacity-reservation-id": self.RESERVATION_ID, "end-date": "2026-11-03T11:25:00Z"}

        news = parse_ec2_event({**load_event(self.BLOCK), "detail": detail})

        assert isinstance(news, ReservationEnding)
        assert news.ends_at == self.AT + timedelta(minutes=35)

    @pytest.mark.parametrize(
        "changes",
        [{"detail": {}}, {"detail": {"capacity-reservation-id": "i-0a"}}, {"time": None}, {"detail": None}],
    )
    def test_an_event_that_names_no_reservation_or_no_time_is_a_permanent_error(self, changes: Any) -> None:
        with pytest.raises(PermanentError):
            parse_ec2_event({**load_event(self.BLOCK), **changes})
