import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.revisions.revision import (
    ContainerRequirement,
    Revision,
    RevisionRow,
    parse_revision_arn,
    rank_revisions,
)


def arn(family: str, revision: int | str) -> str:
    return f"arn:aws:ecs:eu-west-1:111122223333:task-definition/{family}:{revision}"


def rows(*revisions: int, family: str = "trainer", status: str = "ACTIVE") -> list[RevisionRow]:
    return [RevisionRow(arn(family, revision), status) for revision in revisions]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        pytest.param(rows(1, 2, 3), 3, id="ascending"),
        pytest.param(rows(3, 2, 1), 3, id="descending"),
        pytest.param(rows(1, 10, 11, 12, 2, 3, 9), 12, id="as-numbers-not-as-text"),
        pytest.param(rows(9) + rows(40, family="trainer-large"), 9, id="sibling-family-with-a-longer-name"),
        pytest.param(rows(9) + rows(40, family="train"), 9, id="sibling-family-with-a-shorter-name"),
        pytest.param(rows(9) + rows(40, family="trainer--0c1d2e3f"), 9, id="derived-revision"),
        pytest.param(rows(8) + rows(9, status="INACTIVE"), 8, id="inactive-head"),
        pytest.param(rows(8) + rows(9, status="DELETE_IN_PROGRESS"), 8, id="head-being-deleted"),
        pytest.param([*rows(8), RevisionRow(arn("trainer", "latest"))], 8, id="no-number"),
        pytest.param(rows(3, 3), 3, id="listed-twice"),
    ],
)
def test_newest_active_revision_of_exactly_the_family_is_chosen(listed: list[RevisionRow], expected: int) -> None:
    assert rank_revisions(listed, "trainer")[0] == arn("trainer", expected)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param([], id="nothing-listed"),
        pytest.param(rows(1, 2, status="INACTIVE"), id="all-inactive"),
        pytest.param(rows(1, family="trainer-large"), id="another-family-only"),
    ],
)
def test_where_no_revision_is_active_there_is_none(listed: list[RevisionRow]) -> None:
    assert rank_revisions(listed, "trainer") == ()


@given(st.lists(st.integers(min_value=1, max_value=10_000), min_size=1))
def test_order_of_the_list_means_nothing(revisions: list[int]) -> None:
    ranked = rank_revisions(rows(*revisions), "trainer")

    assert ranked == tuple(arn("trainer", revision) for revision in sorted(set(revisions), reverse=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (arn("trainer", 7), ("trainer", 7)),
        ("arn:aws-cn:ecs:cn-north-1:111122223333:task-definition/a_b-c:10", ("a_b-c", 10)),
        ("trainer:7", ("trainer", 7)),
        (arn("trainer", "*"), None),
        ("arn:aws:ecs:eu-west-1:111122223333:task-definition/trainer", None),
        ("trainer", None),
        ("", None),
    ],
)
def test_arn_tells_family_and_revision(text: str, expected: tuple[str, int] | None) -> None:
    assert parse_revision_arn(text) == expected


def test_gpus_of_all_containers_count_together() -> None:
    containers = (ContainerRequirement("a", "x", gpu_count=1), ContainerRequirement("b", "x", gpu_count=2))

    assert Revision(arn("trainer", 1), "trainer", 1, containers).gpu_count == 3
