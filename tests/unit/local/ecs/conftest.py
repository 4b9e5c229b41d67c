import pytest

from fakes.ecs_region import EcsWorld


@pytest.fixture
def world() -> EcsWorld:
    return EcsWorld()
