import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.revisions.revision import main_container


@pytest.mark.parametrize(
    ("container", "names", "expected"),
    [
        pytest.param("main", ("main", "log"), "main", id="named"),
        pytest.param(None, ("train",), "train", id="the-only-one"),
        pytest.param(None, ("main", "log"), None, id="unclear"),
    ],
)
def test_the_container_that_counts_is_the_named_or_the_only_one(container, names, expected):
    revision = make_revision(containers=tuple(make_container(name=name) for name in names))

    assert main_container(make_definition(container=container), revision) == expected
