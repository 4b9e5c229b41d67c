from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fakes.simulation_stories import Story
from relaunch_local.ecs import FleetSettings, LaunchTemplate, LaunchTemplateVersion, Purchase
from relaunch_local.simulation import Options
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.group_faults import GROUP_FAULTS, LOST, RECLAIMED, WARNED
from relaunch_local.simulation.faults.group_losses import GroupLosses, lost_of
from relaunch_local.simulation.machine_scenario import MachineScenario

WARNING = "EC2 Spot Instance Interruption Warning"


class Groups:
    """An account with machines that a fleet launched together, without jobs, in which one kind of loss happens."""

    def __init__(self, kind: str, machines: int = 8, market: str = "spot", seed: int = 1) -> None:
        own = MachineScenario(
            types=("g5.xlarge",),
            zones=("us-east-1a",),
            has_watchdog=False,
            group_faults={kind: 2.0} if kind else {},
        )
        scenario = replace(Story("groups", events=()).scenario(), machines=own, intensity=1.0)
        self.account = SimulatedAccount(seed, Options(scenario=scenario))
        self.simulator = self.account.simulator
        template = LaunchTemplate("lt-0a1b2c3d4e5f60719", "groups", (LaunchTemplateVersion(),))
        self.simulator.fleets.templates.put(template)
        self.simulator.fleets.permissions = None
        self.events: list[tuple[Any, str]] = []
        self.simulator.subscribe(self._observe)
        subnet = next(iter(FleetSettings(subnets=own.fleet.subnets).subnets))
        place = {"InstanceType": "g5.xlarge", "SubnetId": subnet}
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "relaunch:group", "Value": "g-1"}]}]
        request = {
            "Type": "instant",
            "LaunchTemplateConfigs": [
                {
                    "LaunchTemplateSpecification": {"LaunchTemplateId": template.template_id, "Version": "1"},
                    "Overrides": [place],
                }
            ],
            "TargetCapacitySpecification": {"TotalTargetCapacity": machines, "DefaultTargetCapacityType": market},
            "TagSpecifications": tags,
        }
        self.simulator.fleets.create(request)
        self.losses = GroupLosses(self.account, lambda: None)

    def _observe(self, event: dict[str, Any]) -> None:
        if event["detail-type"] == WARNING:
            self.events.append((self.account.clock.now(), event["detail"]["instance-id"]))

    def wait(self, seconds: float) -> None:
        self.account.clock.advance(seconds)

    @property
    def living(self) -> int:
        return sum(each.is_alive for each in self.simulator.instances.by_id.values())


def test_of_a_small_group_mostly_one_is_lost_and_of_a_large_one_mostly_all() -> None:
    draws = [(index + 0.5) / 100 for index in range(100)]
    small = Counter(lost_of(4, draw, 0.5) for draw in draws)
    large = Counter(lost_of(16, draw, 0.5) for draw in draws)

    assert (small[4], small[1]) == (6, 63)
    assert (large[16], large[1]) == (51, 8)
    assert {lost_of(2, draw, 0.5) for draw in draws} == {1, 2}
    assert {lost_of(5, 0.99, some) for some in (0.0, 0.34, 0.99)} == {2, 3, 4}


def test_machines_of_a_group_are_lost_in_the_same_second() -> None:
    groups = Groups(LOST)
    groups.wait(119)
    assert groups.living == 8

    groups.wait(3_481)

    ended = {each.ended_at for each in groups.simulator.instances.by_id.values() if not each.is_alive}
    assert groups.account.chance.happened[LOST] >= 1
    assert len(ended) <= groups.account.chance.happened[LOST]
    assert groups.living < 8


@pytest.mark.parametrize("seed", range(3))
def test_two_machines_are_warned_within_a_minute(seed: int) -> None:
    groups = Groups(WARNED, seed=seed)
    groups.wait(3_600)

    (first, one), (second, other) = groups.events[:2]
    assert one != other
    assert 0 <= (second - first).total_seconds() <= 60


def test_the_second_warning_may_come_in_the_same_second() -> None:
    spans = set()
    for seed in range(8):
        groups = Groups(WARNED, seed=seed)
        groups.wait(3_600)
        (first, _), (second, _) = groups.events[:2]
        spans.add((second - first).total_seconds() > 0)

    assert spans == {True, False}


def test_on_demand_machines_are_lost_and_never_warned() -> None:
    warned = Groups(WARNED, market="on-demand")
    reclaimed = Groups(RECLAIMED, market="on-demand")
    lost = Groups(LOST, market="on-demand")
    for groups in (warned, reclaimed, lost):
        groups.wait(3_600)

    assert (warned.events, reclaimed.events) == ([], [])
    assert warned.account.chance.happened[WARNED] == 0, "there was nobody to warn"
    assert lost.living < 8


def test_nothing_is_lost_where_no_scenario_switches_it_on() -> None:
    groups = Groups("")
    groups.wait(7_200)

    assert groups.living == 8
    assert not set(GROUP_FAULTS) & set(groups.account.chance.happened)


def test_a_reclaimed_group_is_warned_in_one_second() -> None:
    groups = Groups(RECLAIMED, seed=3)
    groups.wait(3_600)

    assert groups.account.chance.happened[RECLAIMED] >= 1
    assert len({at for at, _ in groups.events}) == groups.account.chance.happened[RECLAIMED]
    assert all(each.purchase is Purchase.SPOT for each in groups.simulator.instances.by_id.values())
