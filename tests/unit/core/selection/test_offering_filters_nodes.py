"""The filters on offerings, for jobs of several nodes."""

import pytest

from fakes.builders import make_instance_type, make_offering
from relaunch.core.definitions.accelerator import PurchaseOption
from unit.core.selection.test_offering_filters import FILTERS, OWN, criteria, quota_limits


def test_the_quota_of_several_nodes_is_that_of_all_of_them():
    check = FILTERS["quota"]
    one = make_instance_type(vcpus=4)
    alone = make_offering(instance_type=one, capacity_provider=None, is_own_machine=True)
    of_three = criteria(nodes=3, limits=quota_limits(8.0))
    within = criteria(nodes=2, limits=quota_limits(8.0))
    busy = check(criteria(nodes=2, limits=quota_limits(10.0, 4.0)), alone)

    assert check(within, alone) is None
    assert check(of_three, alone).reason.startswith("3 of it have 12 vCPU and the account's quota is 8: ")
    assert busy.reason.startswith("2 of it have 8 vCPU and other jobs use 4 of the quota's 10: ")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "a job of 4 nodes runs on machines that Relaunch starts itself"),
        ({**OWN, "purchase": PurchaseOption.RESERVED}, None),
        (OWN, None),
    ],
)
def test_several_nodes_are_launched_all_or_none(fields, reason):
    rejection = FILTERS["nodes"](criteria(nodes=4), make_offering(**fields))

    assert (rejection.reason if rejection else None) == reason
    assert FILTERS["nodes"](criteria(), make_offering(**fields)) is None
