import pytest

from relaunch.core.offerings.managed_instances import managed_fee_share


@pytest.mark.parametrize(
    ("name", "share"),
    [
        *(("g6.xlarge", 0.078), ("gr6.4xlarge", 0.078), ("g6e.xlarge", 0.078), ("p5.48xlarge", 0.048)),
        *(("p6-b200.48xlarge", 0.048), ("trn2.48xlarge", 0.048), ("inf2.xlarge", 0.12), ("", 0.12)),
    ],
)
def test_accelerators_have_a_smaller_fee_than_other_machines(name: str, share: float) -> None:
    assert managed_fee_share(name) == share
