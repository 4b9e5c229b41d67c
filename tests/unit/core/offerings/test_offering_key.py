"""What an offering is called."""

import pytest

from fakes.builders import make_offering_key
from relaunch.core.definitions.accelerator import PurchaseOption


@pytest.mark.parametrize(
    ("instance_type", "zone", "name"),
    [
        ("g5.xlarge", "us-east-1a", "g5.xlarge on-demand us-east-1a"),
        ("g5.xlarge", None, "g5.xlarge on-demand"),
        ("ack", None, "ack"),
        ("ack/V100", None, "ack/V100"),
        ("acs/gpu/T4", None, "acs/gpu/T4 on-demand"),
        ("acs/gpu-hpn/T4", None, "acs/gpu-hpn/T4"),
    ],
)
def test_what_has_one_purchase_option_is_not_named_by_it(instance_type, zone, name):
    assert str(make_offering_key(instance_type, zone, PurchaseOption.ON_DEMAND)) == name
