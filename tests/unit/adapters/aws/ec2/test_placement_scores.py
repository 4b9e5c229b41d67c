from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.builders import NOW
from fakes.clock import FakeClock
from fakes.sources import ListLog
from relaunch.adapters.aws.ec2.placement_scores import Ec2RegionScores, Ec2ZoneScores
from relaunch.ports import PermanentError, TransientError

SERVICE = "ec2"
TYPES = ["g4dn.xlarge", "g5.xlarge", "g6.xlarge"]
ASKED = {
    "InstanceTypes": TYPES,
    "TargetCapacity": 1,
    "TargetCapacityUnitType": "units",
    "SingleAvailabilityZone": True,
    "RegionNames": ["us-east-1"],
}
ASKED_OF_REGION = {**ASKED, "TargetCapacity": 48, "TargetCapacityUnitType": "vcpu", "SingleAvailabilityZone": False}
ZONES = {
    "AvailabilityZones": [
        {"ZoneId": "use1-az4", "ZoneName": "us-east-1a"},
        {"ZoneId": "use1-az6", "ZoneName": "us-east-1b"},
    ]
}


def page(*scores: tuple[str, int], token: str = "") -> dict[str, Any]:
    rows = [{"Region": "us-east-1", "AvailabilityZoneId": zone, "Score": score} for zone, score in scores]
    return {"SpotPlacementScores": rows, **({"NextToken": token} if token else {})}


def make_scores(stubber: Stubber, clock: FakeClock | None = None) -> tuple[Ec2ZoneScores, ListLog]:
    log = ListLog()
    return Ec2ZoneScores(stubber.client, "us-east-1", clock or FakeClock(), log), log


def test_scores_of_all_pages_are_told_by_the_names_of_their_zones(stubber: Stubber) -> None:
    stubber.add_response("describe_availability_zones", ZONES, {})
    stubber.add_response("get_spot_placement_scores", page(("use1-az4", 3), token="more"), ASKED)
    stubber.add_response("get_spot_placement_scores", page(("use1-az6", 9)), {**ASKED, "NextToken": "more"})

    assert make_scores(stubber)[0].zone_scores(reversed(TYPES)) == {"us-east-1a": 3, "us-east-1b": 9}


def test_a_zone_that_the_account_does_not_have_is_left_out(stubber: Stubber) -> None:
    stubber.add_response("describe_availability_zones", ZONES, {})
    stubber.add_response("get_spot_placement_scores", page(("use1-az9", 3), ("use1-az6", 9)), ASKED)

    assert make_scores(stubber)[0].zone_scores(TYPES) == {"us-east-1b": 9}


def test_fewer_than_three_types_are_not_asked_about_because_they_always_score_low(stubber: Stubber) -> None:
    assert make_scores(stubber)[0].zone_scores(TYPES[:2]) == {}


def test_the_same_types_are_asked_about_once_an_hour(stubber: Stubber) -> None:
    stubber.add_response("describe_availability_zones", ZONES, {})
    for score in (3, 5):
        stubber.add_response("get_spot_placement_scores", page(("use1-az4", score)), ASKED)
    clock = FakeClock(NOW)
    scores, _ = make_scores(stubber, clock)

    seen = [scores.zone_scores(TYPES)]
    clock.advance(timedelta(minutes=59))
    seen.append(scores.zone_scores(TYPES))
    clock.advance(timedelta(minutes=1))
    seen.append(scores.zone_scores(TYPES))

    assert seen == [{"us-east-1a": 3}, {"us-east-1a": 3}, {"us-east-1a": 5}]


@pytest.mark.parametrize("code", ["MaxConfigLimitExceeded", "UnauthorizedOperation", "RequestLimitExceeded"])
def test_what_ec2_does_not_tell_is_unknown_for_an_hour_and_logged(stubber: Stubber, code: str) -> None:
    stubber.add_response("describe_availability_zones", ZONES, {})
    stubber.add_client_error("get_spot_placement_scores", code)
    scores, log = make_scores(stubber)

    assert [scores.zone_scores(TYPES), scores.zone_scores(TYPES)] == [{}, {}]
    ((decision, facts),) = log.lines
    assert decision == "placement-scores-unknown"
    assert code in str(facts["reason"])


def test_the_regions_score_is_for_so_many_vcpus_of_any_of_the_types_in_any_zone(stubber: Stubber) -> None:
    answer = {"SpotPlacementScores": [{"Region": "us-east-1", "Score": 7}]}
    stubber.add_response("get_spot_placement_scores", answer, ASKED_OF_REGION)

    assert Ec2RegionScores(stubber.client, "us-east-1").region_score(TYPES, 48) == 7


def test_a_region_that_ec2_does_not_score_has_no_score(stubber: Stubber) -> None:
    stubber.add_response("get_spot_placement_scores", {"SpotPlacementScores": []}, ASKED_OF_REGION)

    assert Ec2RegionScores(stubber.client, "us-east-1").region_score(TYPES, 48) is None


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("MaxConfigLimitExceeded", PermanentError),
        ("UnauthorizedOperation", PermanentError),
        ("RequestLimitExceeded", TransientError),
    ],
)
def test_a_question_about_the_region_that_ec2_does_not_answer_is_an_error(
    stubber: Stubber, code: str, error: type[Exception]
) -> None:
    stubber.add_client_error("get_spot_placement_scores", code)

    with pytest.raises(error, match=f"the placement score of g4dn.xlarge, g5.xlarge, g6.xlarge: .*{code}"):
        Ec2RegionScores(stubber.client, "us-east-1").region_score(TYPES, 48)
