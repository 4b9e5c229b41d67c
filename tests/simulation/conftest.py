"""What `make test` takes of the simulation: the campaign. The other tests are those of `make test-simulation`."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SHARE = "test_campaign.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.path.name != _SHARE:
            item.add_marker(pytest.mark.simulated)
