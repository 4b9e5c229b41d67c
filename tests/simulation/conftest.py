"""What `make test` takes of the simulation: its campaign, and planted bugs. The rest is `make test-simulation`."""

from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_SHARE = ("test_campaign.py", "test_planted_bugs.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rest."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.path.name not in _SHARE:
            item.add_marker(pytest.mark.simulated)
