import pytest

from fakes.jobs_table import ObservedTable


@pytest.fixture
def table(aws: None) -> ObservedTable:
    """A table whose client gives up at once."""
    return ObservedTable(attempts=1)
