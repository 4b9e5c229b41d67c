import pytest

from fakes.ecs_world import EcsWorld


@pytest.fixture
def world() -> EcsWorld:
    return EcsWorld()
