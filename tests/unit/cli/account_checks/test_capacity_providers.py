"""What a capacity provider lacks, and all of it at once."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import NOW
from relaunch.core.checks import Verdict
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.ports import CapacityProviderOffer
from relaunch_cli.account_checks.auto_scaling_groups import GroupFacts, GroupRisk
from relaunch_cli.account_checks.capacity_providers import (
    ClusterFacts,
    ManagedFacts,
    ProviderFacts,
    check_capacity_provider,
)

OFFER = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.SPOT)
CLUSTER = ClusterFacts("training")
MANAGED = CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.SPOT, is_managed=True)


def test_managed_instances_scale_and_protect_by_themselves() -> None:
    assert (
        check_capacity_provider(MANAGED, ProviderFacts(managed=ManagedFacts(("g5.xlarge",))), CLUSTER, NOW).verdict
        is Verdict.OK
    )


def test_managed_instances_that_ecs_does_not_run_are_named() -> None:
    offer = replace(MANAGED, instance_type="inf1.xlarge")

    check = check_capacity_provider(offer, ProviderFacts(managed=ManagedFacts(("inf1.xlarge",))), CLUSTER, NOW)

    assert check.text == "ECS runs inf1.xlarge on EC2 alone, not on Managed Instances: take a group of it, inf2 or trn1"


def test_a_provider_whose_group_is_gone_has_to_be_made_again() -> None:
    check = check_capacity_provider(OFFER, ProviderFacts(has_managed_scaling=True), CLUSTER, NOW)

    assert (check.verdict, check.text) == (Verdict.PROBLEM, "its Auto Scaling group does not exist")


def test_an_inactive_provider_is_none() -> None:
    check = check_capacity_provider(OFFER, ProviderFacts(is_active=False), CLUSTER, NOW)

    assert check.text == "it does not exist, and CapacityProviders names it"


def test_all_that_is_wrong_is_told_with_what_to_do_about_each() -> None:
    group = GroupFacts("g5-group", 0, 0, ("g5.2xlarge",), risks=frozenset(GroupRisk))

    check = check_capacity_provider(OFFER, ProviderFacts(is_in_cluster=False, group=group), CLUSTER, NOW)

    assert len(check.text.split("; ")) == len(check.to_do.splitlines()) == 7


def test_a_group_whose_types_are_not_known_is_not_blamed() -> None:
    facts = ProviderFacts(has_managed_scaling=True, has_termination_protection=True, group=GroupFacts("g5-group", 0, 4))

    assert check_capacity_provider(OFFER, facts, CLUSTER, NOW).verdict is Verdict.OK


def test_what_has_ended_is_said_with_what_to_do() -> None:
    facts = ProviderFacts(managed=ManagedFacts(("g5.xlarge",), "reserved"))
    block = replace(MANAGED, purchase=PurchaseOption.RESERVED, until=NOW + timedelta(minutes=1))
    assert check_capacity_provider(block, facts, CLUSTER, NOW).verdict is Verdict.OK

    check = check_capacity_provider(replace(block, until=NOW), facts, CLUSTER, NOW)

    assert check.text == ("what it has reserved ended at 2026-03-14 09:26 UTC, by CapacityProviders; no job uses it")
    assert check.to_do.startswith("relaunch deploy CapacityProviders=..., without g5, or with the end")
