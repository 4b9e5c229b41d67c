from collections.abc import Iterator

import pytest

from fakes.served_simulator import Served, served_simulator


@pytest.fixture
def served() -> Iterator[Served]:
    with served_simulator() as opened:
        yield opened
