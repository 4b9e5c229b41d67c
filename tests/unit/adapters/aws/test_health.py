"""Events of AWS Health about instances."""

from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.webhook import load_event
from relaunch.adapters.aws.health import parse_health_event
from relaunch.core.launches.instance_events import InstancesRetiring
from relaunch.ports import PermanentError

INSTANCE_ID = "i-0a1b2c3d4e5f60718"
AT = datetime(2026, 11, 3, 10, 50, tzinfo=UTC)


def event(**detail: Any) -> dict[str, Any]:
    sample = load_event("aws.health.instance-retirement")
    return {**sample, "detail": {**sample["detail"], **detail}}


def test_a_retirement_is_read_with_its_date() -> None:
    assert parse_health_event(event()) == InstancesRetiring((INSTANCE_ID,), AT, datetime(2026, 11, 17, 10, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "ends_at"),
    [
        ("Tue, 17 Nov 2026 10:00:00 -0000", datetime(2026, 11, 17, 10, tzinfo=UTC)),
        ("Tue, 17 Nov 2026 12:00:00 +0200", datetime(2026, 11, 17, 10, tzinfo=UTC)),
        ("2026-11-17", AT),
        ("Sat, 01 Jan 0001 10:00:00 +1400", AT),
        ("Tue, 27 Oct 2026 10:00:00 GMT", AT),
        ("", AT),
    ],
)
def test_a_date_in_another_zone_is_read_and_without_one_it_may_be_now(text: str, ends_at: datetime) -> None:
    news = parse_health_event(event(startTime=text))

    assert news is not None
    assert news.ends_at == ends_at


def test_what_is_maintained_besides_instances_is_left_out() -> None:
    entities = [{"entityValue": each} for each in ("vol-0a", INSTANCE_ID, "h-0a")]
    news = parse_health_event(event(affectedEntities=entities))

    assert news is not None
    assert news.instance_ids == (INSTANCE_ID,)


@pytest.mark.parametrize(
    "detail",
    [{"statusCode": "closed"}, {"affectedEntities": []}, {"affectedEntities": [{"entityValue": "vol-0a"}, {}]}],
)
def test_what_is_over_or_names_no_instance_concerns_nobody(detail: Any) -> None:
    assert parse_health_event(event(**detail)) is None


def test_other_events_concern_nobody() -> None:
    assert parse_health_event({"detail-type": "EC2 Instance Rebalance Recommendation"}) is None


def test_what_cannot_be_read_is_a_permanent_error() -> None:
    with pytest.raises(PermanentError, match="reading an event from AWS Health"):
        parse_health_event(event(affectedEntities="i-0a"))
