from collections.abc import Mapping

import pytest

from relaunch.core.definitions.changes import ChangeKind, KeyChange, find_changes, kind_of_change

BASE = {"task_definition": "trainer", "accelerator": {"gpu": {"count": 1, "models": ["A10G", "L4"]}}}


@pytest.mark.parametrize(
    ("after", "changes"),
    [
        pytest.param(BASE, [], id="the-same"),
        pytest.param({**BASE, "disk": "200GiB"}, [KeyChange("disk", "", "200GiB")], id="a-key-more"),
        pytest.param(
            {"accelerator": BASE["accelerator"]}, [KeyChange("task_definition", "trainer", "")], id="a-key-less"
        ),
        pytest.param(
            {**BASE, "accelerator": {"gpu": {"count": 2, "models": ["A10G"]}}},
            [
                KeyChange("accelerator.gpu.count", "1", "2"),
                KeyChange("accelerator.gpu.models", '["A10G", "L4"]', '["A10G"]'),
            ],
            id="values",
        ),
        pytest.param(
            {**BASE, "on": [{"s3": {"bucket": "b"}}]}, [KeyChange("on[0].s3.bucket", "", "b")], id="a-list-of-mappings"
        ),
        pytest.param({**BASE, "command": ["é"]}, [KeyChange("command", "", '["é"]')], id="no-ascii"),
        pytest.param({**BASE, "callers": []}, [KeyChange("callers", "", "[]")], id="an-empty-list"),
        pytest.param({**BASE, "command": ""}, [KeyChange("command", "", '""')], id="an-empty-text"),
    ],
)
def test_keys_that_differ_are_named_as_in_a_file(after: Mapping[str, object], changes: list[KeyChange]) -> None:
    assert list(find_changes(BASE, after)) == changes


def test_nothing_differs_from_nothing() -> None:
    assert find_changes({}, {}) == ()


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, BASE, ChangeKind.ADDED),
        (BASE, None, ChangeKind.REMOVED),
        (BASE, dict(BASE), ChangeKind.UNCHANGED),
        (BASE, {}, ChangeKind.CHANGED),
    ],
)
def test_what_becomes_of_a_definition(
    before: Mapping[str, object] | None, after: Mapping[str, object] | None, kind: ChangeKind
) -> None:
    assert kind_of_change(before, after) is kind
