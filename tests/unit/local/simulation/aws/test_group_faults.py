from typing import Any

import pytest

from fakes.fleet_region import FleetRegion, override
from relaunch_local.ecs import InProcessClient
from relaunch_local.ecs.engine.settings import SOUND, HostPlan, InstanceShape
from relaunch_local.simulation.aws import group_faults as faults
from relaunch_local.simulation.aws.fleet import FaultyEc2
from relaunch_local.simulation.aws.group_faults import GroupLaunchFaults
from relaunch_local.simulation.chance import Chance

SHAPE = InstanceShape(192, 2_097_152, gpus=8)
GROUP = [{"ResourceType": "instance", "Tags": [{"Key": "relaunch:group", "Value": "g-123456"}]}]
QUIET = ("fleet-call-refused", "fleet-launch-refused", "fleet-answer-empty", "fleet-answer-untrue")


class Watcher:
    """Lists its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *map(str, arguments)))


class QuietChance(Chance):
    """Injects what happens to groups alone."""

    def strikes(self, kind: str, probability: float, *, site: str = "", note: str = "") -> bool:
        return kind not in QUIET and super().strikes(kind, probability, site=site, note=note)


class Region(FleetRegion):
    """A region behind the faults of the simulation."""

    def __init__(self, shares: dict[str, float], seed: int = 1) -> None:
        super().__init__()
        self.chance = QuietChance(seed, self.clock.now)
        self.watcher = Watcher()
        client = InProcessClient(self.simulator, "ec2")
        self.faulty = FaultyEc2(client, self.simulator, self.clock, self.chance, self.watcher)
        self.faulty.group_faults = shares
        self.ec2 = self.faulty

    def several(self, count: int, **members: Any) -> dict[str, Any]:
        options = {"MinTargetCapacity": count, "SingleInstanceType": True, "SingleAvailabilityZone": True}
        target = {"TotalTargetCapacity": count, "DefaultTargetCapacityType": "spot"}
        given = {"SpotOptions": options, "TargetCapacitySpecification": target, "TagSpecifications": GROUP, **members}
        big = override("g5.12xlarge", AvailabilityZone="us-east-1a")
        return self.create(big, market="spot", **given)


def group_of(shares: dict[str, float], count: int = 4, seed: int = 1) -> list[HostPlan]:
    found = GroupLaunchFaults(Chance(seed, lambda: None), shares)  # type: ignore[arg-type,return-value]
    return found.plans([SOUND] * count, SHAPE, "")


def test_one_machine_draws_nothing() -> None:
    region = Region(dict.fromkeys(faults.GROUP_FAULTS, 2.0))
    region.several(1)

    assert [each for each in region.chance.happened if each.startswith("group-")] == []
    assert group_of(dict.fromkeys(faults.GROUP_FAULTS, 2.0), 1) == [SOUND]


def test_nothing_happens_that_is_not_switched_on() -> None:
    region = Region({})

    answer = region.several(4)

    assert len(answer["Instances"][0]["InstanceIds"]) == 4
    assert not any(each.startswith("group-") for each in region.chance.happened)


@pytest.mark.parametrize("seed", range(5))
def test_a_part_is_launched_and_counted(seed: int) -> None:
    region = Region({faults.IN_PART: 2.0}, seed)

    answer = region.several(4)

    assert 0 < len(answer["Instances"][0]["InstanceIds"]) < 4
    assert region.chance.happened[faults.IN_PART] == 1
    assert ("fleet_refused", "g-123456", "('g5.12xlarge', 'us-east-1a')", "InsufficientInstanceCapacity") in (
        region.watcher.calls
    )


def test_errors_stand_beside_all_or_beside_each_other() -> None:
    beside = Region({faults.BESIDE_ERRORS: 2.0}).several(4)
    two = Region({faults.TWO_ERRORS: 2.0}).several(4)

    assert len(beside["Instances"][0]["InstanceIds"]) == 4
    assert [each["ErrorCode"] for each in beside["Errors"]] == ["InsufficientInstanceCapacity"]
    assert [each["ErrorCode"] for each in two["Errors"]] == ["InvalidParameterCombination", "UnfulfillableCapacity"]
    assert two["Instances"] == []


def test_some_of_a_group_are_seen_late_and_some_addresses_too() -> None:
    late = [each.visibility for each in group_of({faults.SEEN_IN_PARTS: 2.0})]
    unaddressed = [each.addressed_after for each in group_of({faults.WITHOUT_ADDRESSES: 2.0})]

    assert 0 < late.count(None) < 4
    assert all(each is None or 10.0 <= each <= 60.0 for each in late)
    assert any(10.0 <= each <= 60.0 for each in unaddressed)


def test_one_of_a_group_never_joins_or_lacks_a_gpu() -> None:
    assert sorted(each.joins for each in group_of({faults.NEVER_JOINS: 2.0})) == [False, True, True, True]
    assert sorted(each.gpus or 8 for each in group_of({faults.LACKS_A_GPU: 2.0})) == [7, 8, 8, 8]


def test_run_instances_has_the_hosts_of_the_simulation_too() -> None:
    region = Region({faults.NEVER_JOINS: 2.0})
    template = {"LaunchTemplateId": "lt-1", "Version": "2"}
    request = {"InstanceType": "g5.xlarge", "SubnetId": "subnet-a", "LaunchTemplate": template}

    answer = region.faulty.run_instances(MinCount=3, MaxCount=3, TagSpecifications=GROUP, **request)

    hosts = [region.simulator.instance(each["InstanceId"]).host for each in answer["Instances"]]
    assert sum(not host.joins for host in hosts) >= 1
    assert ("fleet_asked", "g-123456") in region.watcher.calls
    assert len(region.simulator.fleets.plans) == 0


def test_run_instances_launches_a_part_of_a_group_and_never_of_one_machine() -> None:
    region = Region({faults.IN_PART: 2.0})
    template = {"LaunchTemplateId": "lt-1", "Version": "2"}
    request = {"InstanceType": "g5.xlarge", "SubnetId": "subnet-a", "LaunchTemplate": template}

    part = region.faulty.run_instances(MinCount=4, MaxCount=4, TagSpecifications=GROUP, **request)
    one = region.faulty.run_instances(MinCount=1, MaxCount=1, TagSpecifications=GROUP, **request)

    assert 1 <= len(part["Instances"]) < 4
    assert len(one["Instances"]) == 1
    assert len(region.simulator.fleets.faults) == 0
