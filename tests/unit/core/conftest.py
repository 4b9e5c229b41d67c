from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave property tests out of what is measured: tables take every branch without them, in a third of the time."""
    for item in items:
        if HERE in item.path.parents and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.no_cover)
