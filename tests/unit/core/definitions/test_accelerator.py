"""What a job computes on, in few words and as the key of what is stored about it."""

import pytest

from relaunch.core.definitions.accelerator import Accelerators, PurchasePolicy, read_accelerators, usual_purchase
from relaunch.core.definitions.targets import Target


@pytest.mark.parametrize(
    ("accelerators", "key"),
    [
        (Accelerators("A10G"), "A10G"),
        (Accelerators("RTX PRO 4500", 4), "4x RTX PRO 4500"),
        (Accelerators("L4", fraction=0.125), "0.125x L4"),
        (Accelerators("Max x 2"), "Max x 2"),
    ],
)
def test_a_key_names_accelerators_exactly(accelerators: Accelerators, key: str) -> None:
    assert accelerators.key == key
    assert read_accelerators(key) == accelerators


def test_in_a_text_a_part_is_in_percent() -> None:
    assert [str(each) for each in (Accelerators("L4", 4), Accelerators("L4", fraction=0.25))] == ["4x L4", "25% of L4"]


def test_a_pod_that_may_choose_is_not_preemptible_unless_somebody_asks() -> None:
    assert {target: usual_purchase(target) for target in Target} == {
        Target.ECS: PurchasePolicy.SPOT_THEN_ON_DEMAND,
        Target.KUBERNETES: PurchasePolicy.ON_DEMAND,
        Target.ACK: PurchasePolicy.SPOT_THEN_ON_DEMAND,
        Target.ACS: PurchasePolicy.ON_DEMAND,
    }
