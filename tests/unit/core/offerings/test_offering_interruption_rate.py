import pytest

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.offerings.offering import SCARCE_PER_HOUR, estimated_interruptions_per_hour


@pytest.mark.parametrize(
    ("instance_type", "per_hour"),
    [
        ("g5.xlarge", 0.1),
        ("p5.48xlarge", 0.1),
        ("g9.xlarge", 0.1),
        ("p4de.24xlarge", 0.0583),
        ("trn1.32xlarge", 0.0417),
        ("trn1.2xlarge", 0.025),
    ],
)
def test_calmer_types_are_reckoned_with_less(instance_type: str, per_hour: float) -> None:
    assert estimated_interruptions_per_hour(instance_type) == pytest.approx(per_hour, abs=1e-4)


def test_the_band_of_the_region_goes_before_that_of_the_worst_region() -> None:
    assert estimated_interruptions_per_hour("inf2.xlarge", 0) == pytest.approx(0.0083, abs=1e-4)
    assert estimated_interruptions_per_hour("trn1.2xlarge", 4) == SCARCE_PER_HOUR


def test_every_type_has_a_rate_and_none_more_than_a_scarce_market() -> None:
    rates = {name: estimated_interruptions_per_hour(name) for name in load_catalogue()}

    assert all(0 < rate <= SCARCE_PER_HOUR for rate in rates.values())
    assert len({name for name, rate in rates.items() if rate < SCARCE_PER_HOUR}) == 11
