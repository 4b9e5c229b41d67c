import pytest

from fakes.builders import make_container, make_definition, make_revision
from relaunch.core.revisions.revision import find_main, main_container


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


def test_a_container_that_the_revision_does_not_have_is_none():
    revision = make_revision()

    assert find_main(make_definition(container="main"), revision) == make_container()
    assert find_main(make_definition(container="other"), revision) is None
