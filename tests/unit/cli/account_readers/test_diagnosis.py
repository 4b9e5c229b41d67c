"""Which prices a stack is asked for."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fakes.builders import NOW
from relaunch.adapters.offerings.bundled import bundled_snapshot
from relaunch.adapters.offerings.regional import RegionalOfferings
from relaunch.core.checks import Check
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.settings import MachineSettings
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_checks.prices import NAME
from relaunch_cli.account_readers.diagnosis import parts_of_stack

PROVIDER = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.SPOT)
OWN = MachineSettings(subnets={"eu-west-1a": "subnet-0a"})


def checks_of(settings: MachineSettings, *providers: CapacityProviderOffer) -> list[Check]:
    deps = SimpleNamespace(
        machine_settings=settings,
        clock=SimpleNamespace(now=lambda: NOW),
        offerings=RegionalOfferings(bundled_snapshot("eu-west-1")),
    )
    outputs = {"RefreshOfferingsFunctionName": "refresh"}
    access: Any = SimpleNamespace(deps=deps, providers=providers, cluster="training", outputs=outputs)
    (part,) = (each for each in parts_of_stack("relaunch", access, cast("Any", None)) if each.name == NAME)
    return list(part.checks())


@pytest.mark.parametrize(("settings", "providers"), [(OWN, ()), (MachineSettings(), (PROVIDER,))])
def test_prices_of_another_region_are_named_with_the_function_that_reads_them(
    settings: MachineSettings, providers: tuple[CapacityProviderOffer, ...]
) -> None:
    (check,) = checks_of(settings, *providers)

    assert "none of eu-west-1 yet, and those of us-east-1 stand in for them" in check.text
    assert check.to_do.startswith("aws lambda invoke --function-name refresh /dev/stdout")


def test_a_stack_for_clusters_alone_has_no_prices() -> None:
    assert checks_of(MachineSettings()) == []
