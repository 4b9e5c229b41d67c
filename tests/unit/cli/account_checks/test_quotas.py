"""Quotas against the smallest machine of each definition."""

from fakes.builders import make_instance_type, make_offering
from relaunch.core.checks import Check, Verdict
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.quotas import quota_of
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection
from relaunch_cli.account_checks.quotas import GrantedQuotas, Need, check_quotas, find_needs

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT
G, P = quota_of("g5.xlarge", ON_DEMAND), quota_of("p4d.24xlarge", ON_DEMAND)
EITHER = Need("resnet", ON_DEMAND, {G: ("g5.xlarge", 4), P: ("p4d.24xlarge", 96)})


def check(*needs: Need, vcpus: dict[str, float], requested: dict[str, float] | None = None) -> list[Check]:
    return list(check_quotas(needs, GrantedQuotas(vcpus, requested or {})))


def test_one_quota_with_room_is_enough() -> None:
    (found,) = check(EITHER, vcpus={"L-DB2E81BA": 4, "L-417A185B": 0})

    assert (found.verdict, found.text) == (Verdict.OK, "a machine within them for definition resnet")


def test_the_quota_of_the_smallest_machine_is_the_one_to_request() -> None:
    (found,) = check(EITHER, vcpus={"L-DB2E81BA": 3, "L-417A185B": 95})

    assert (found.name, found.verdict) == ("quota L-DB2E81BA", Verdict.PROBLEM)
    assert "g5.xlarge, the smallest machine of resnet (on-demand), has 4" in found.text
    assert found.to_do.endswith("--quota-code L-DB2E81BA --desired-value 8")


def test_a_request_is_as_large_as_the_machine() -> None:
    need = Need("bert", ON_DEMAND, {P: ("p5.48xlarge", 192)})

    (found,) = check(need, vcpus={"L-417A185B": 0})

    assert found.to_do.endswith("--desired-value 192")


def test_several_nodes_need_the_vcpus_of_all_at_once() -> None:
    need = Need("llama", ON_DEMAND, {G: ("g5.xlarge", 4), P: ("p4d.24xlarge", 96)}, nodes=3)

    (short,) = check(need, vcpus={"L-DB2E81BA": 11, "L-417A185B": 287})
    (enough,) = check(need, vcpus={"L-DB2E81BA": 12, "L-417A185B": 0})

    assert "11 vCPUs of" in short.text
    assert short.text.endswith("3 of g5.xlarge, the smallest machine of llama (on-demand), have 12")
    assert short.to_do.endswith("--quota-code L-DB2E81BA --desired-value 12")
    assert enough.verdict is Verdict.OK


def test_a_request_that_is_open_is_waited_for_unless_it_is_too_small() -> None:
    need = Need("bert", ON_DEMAND, {P: ("p4d.24xlarge", 96)})

    (waits,) = check(need, vcpus={"L-417A185B": 0}, requested={"L-417A185B": 96})
    (asks,) = check(need, vcpus={"L-417A185B": 0}, requested={"L-417A185B": 64})

    assert ("96 are requested" in waits.text, waits.to_do.startswith("wait")) == (True, True)
    assert ("too little" in asks.text, asks.to_do.startswith("aws service-quotas")) == (True, True)


def test_a_quota_is_told_once_for_several_definitions() -> None:
    needs = [Need(name, ON_DEMAND, {G: ("g5.xlarge", 4)}) for name in ("resnet", "bert")]

    assert len(check(*needs, vcpus={"L-DB2E81BA": 0})) == 1


def test_a_quota_that_is_not_known_leaves_it_unknown() -> None:
    (found,) = check(EITHER, vcpus={"L-417A185B": 0})

    assert (found.name, found.verdict) == ("quota L-DB2E81BA", Verdict.UNKNOWN)


def test_types_with_an_uncertain_quota_hide_no_problem_and_are_none() -> None:
    beside = Need("resnet", SPOT, {quota_of("g5.xlarge", SPOT): ("g5.xlarge", 4), None: ("p5.48xlarge", 192)})
    alone = Need("gpt", SPOT, {None: ("p5.48xlarge", 192)})

    assert [each.verdict for each in check(beside, vcpus={"L-3819A6DF": 0})] == [Verdict.PROBLEM]
    (uncompared,) = check(alone, vcpus={})
    (one_of_two,) = check(alone, EITHER, vcpus={"L-DB2E81BA": 4})
    assert uncompared.verdict is one_of_two.verdict is Verdict.OK
    assert uncompared.text == "that of the machines of gpt is not known, so that nothing was compared"
    assert one_of_two.text == "a machine within them for definition resnet; that of gpt is not known"


def test_without_definitions_none_is_needed() -> None:
    (found,) = check(vcpus={})

    assert (found.verdict, found.text) == (Verdict.OK, "no registered job definition can use an accelerator of EC2")


def test_what_a_definition_needs_is_kept_or_rejected_for_a_time() -> None:
    def offering(name: str, vcpus: int) -> object:
        return make_offering(make_instance_type(name, vcpus=vcpus), ON_DEMAND)

    kept = offering("g5.2xlarge", 8)
    rejected = (
        RejectedOffering(offering("g5.xlarge", 4), "quota", Rejection("too small")),
        RejectedOffering(offering("p4d.24xlarge", 96), "memory", Rejection("recently full", is_permanent=False)),
        RejectedOffering(offering("inf2.xlarge", 4), "accelerator", Rejection("no GPU")),
    )

    (need,) = find_needs("resnet", Selection((kept,), rejected, ()))

    assert need == Need("resnet", ON_DEMAND, {G: ("g5.xlarge", 4), P: ("p4d.24xlarge", 96)})
    (of_three,) = find_needs("llama", Selection((kept,), rejected, ()), 3)
    assert of_three.vcpus_of(G) == 12
