import pytest

from relaunch.core.accelerator import PurchaseOption
from relaunch.ports import CapacityProviderOffer
from relaunch.settings import InvalidSettingsError, parse_capacity_providers


def test_providers_are_read_with_type_purchase_and_kind():
    read = parse_capacity_providers(
        "g5-spot=g5.xlarge/spot, g5=g5.xlarge/on-demand,trn=trn1.2xlarge/spot/managed-instances"
    )

    assert read == (
        CapacityProviderOffer("g5-spot", "g5.xlarge", PurchaseOption.SPOT),
        CapacityProviderOffer("g5", "g5.xlarge", PurchaseOption.ON_DEMAND),
        CapacityProviderOffer("trn", "trn1.2xlarge", PurchaseOption.SPOT, is_managed=True),
    )


@pytest.mark.parametrize(
    "entry",
    [
        "g5",
        "g5=g5.xlarge",
        "=g5.xlarge/spot",
        "g5=/spot",
        "g5=g5.xlarge/cheap",
        "g5=g5.xlarge/spot/",
        "g5=g5.xlarge/spot/managed",
        "g5=g5.xlarge/managed-instances",
        "g5=g5.xlarge/spot/managed-instances/x",
    ],
)
def test_what_cannot_be_read_is_named_with_the_form_it_must_have(entry):
    with pytest.raises(InvalidSettingsError, match=r"is not name=instance-type/purchase.*managed-instances") as refused:
        parse_capacity_providers(f"ok=g5.xlarge/spot,{entry}")
    assert repr(entry) in str(refused.value)
