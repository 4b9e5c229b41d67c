import pytest

from fakes.simulated_region import SimulatedRegion


@pytest.fixture
def region() -> SimulatedRegion:
    return SimulatedRegion()
