import pytest

from relaunch_local.kubernetes.quantities import store_quantity


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        (2, "2"),
        ("2", "2"),
        (0, "0"),
        ("0.5", "500m"),
        ("2000m", "2"),
        ("1000", "1k"),
        ("1.5Gi", "1536Mi"),
        ("2048Mi", "2Gi"),
        ("1023Mi", "1023Mi"),
        ("two", "two"),
    ],
)
def test_a_quantity_is_stored_with_the_greatest_suffix_that_leaves_it_whole(written, stored):
    assert store_quantity(written) == stored
