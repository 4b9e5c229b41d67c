import pytest

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.quotas import QUOTA_CODES, quota_of

ON_DEMAND, SPOT = PurchaseOption.ON_DEMAND, PurchaseOption.SPOT


@pytest.mark.parametrize(
    ("instance_type", "purchase", "shown"),
    [
        ("g5.xlarge", SPOT, '"All G and VT Spot Instance Requests" (L-3819A6DF)'),
        ("g6e.48xlarge", ON_DEMAND, '"Running On-Demand G and VT instances" (L-DB2E81BA)'),
        ("g4dn.metal", SPOT, '"All G and VT Spot Instance Requests" (L-3819A6DF)'),
        ("gr6f.4xlarge", ON_DEMAND, '"Running On-Demand G and VT instances" (L-DB2E81BA)'),
        ("p2.xlarge", SPOT, '"All P4, P3 and P2 Spot Instance Requests" (L-7212CCBC)'),
        ("p4de.24xlarge", SPOT, '"All P4, P3 and P2 Spot Instance Requests" (L-7212CCBC)'),
        ("p5.4xlarge", SPOT, '"All P5 Spot Instance Requests" (L-C4BD4855)'),
        ("p5en.48xlarge", SPOT, '"All P5 Spot Instance Requests" (L-C4BD4855)'),
        ("p5en.48xlarge", ON_DEMAND, '"Running On-Demand P instances" (L-417A185B)'),
        ("p6-b200.48xlarge", ON_DEMAND, '"Running On-Demand P instances" (L-417A185B)'),
        ("trn1n.32xlarge", SPOT, '"All Trn Spot Instance Requests" (L-6B0D517C)'),
        ("trn2.3xlarge", ON_DEMAND, '"Running On-Demand Trn instances" (L-2C3B7624)'),
        ("inf2.xlarge", SPOT, '"All Inf Spot Instance Requests" (L-B5D1601B)'),
        ("inf1.xlarge", ON_DEMAND, '"Running On-Demand Inf instances" (L-1945791B)'),
    ],
)
def test_each_family_counts_against_the_quota_of_its_group(instance_type, purchase, shown):
    assert str(quota_of(instance_type, purchase)) == shown


@pytest.mark.parametrize("instance_type", ["p6-b200.48xlarge", "p6-b300.48xlarge", "p10.48xlarge"])
def test_a_quota_that_aws_does_not_list_is_none(instance_type):
    assert quota_of(instance_type, SPOT) is None


@pytest.mark.parametrize("instance_type", ["c5.large", "u-6tb1.metal", "x1e.xlarge", "5g.xlarge", ""])
def test_other_families_have_no_quota_here(instance_type):
    assert quota_of(instance_type, SPOT) is None


def test_the_codes_of_all_of_them_are_known_once_each_in_order():
    assert QUOTA_CODES == (
        "L-1945791B",
        "L-2C3B7624",
        "L-3819A6DF",
        "L-417A185B",
        "L-6B0D517C",
        "L-7212CCBC",
        "L-B5D1601B",
        "L-C4BD4855",
        "L-DB2E81BA",
    )
