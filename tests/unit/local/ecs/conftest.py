import pytest

from fakes.simulated_region import SimulatedRegion


@pytest.fixture
def region() -> SimulatedRegion:
    return SimulatedRegion()


@pytest.fixture
def offered(region: SimulatedRegion) -> SimulatedRegion:
    """Return a region whose capacity provider `g5-spot` can run the task definition `train`."""
    region.provider()
    region.register()
    return region
