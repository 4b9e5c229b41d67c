from typing import Any

import pytest

from relaunch.core.definitions.event_pattern import (
    OWN_SOURCES,
    find_pattern_problem,
    pattern_key,
    pattern_sources,
    write_pattern,
)

SOURCE: dict[str, Any] = {"source": ["com.acme"]}


@pytest.mark.parametrize(
    "pattern",
    [
        SOURCE,
        {**SOURCE, "detail-type": ["Job State Change"], "detail": {"state": ["SUCCEEDED"], "n": [1, None, True]}},
        {**SOURCE, "detail": {"a": {"b": [{"prefix": "x"}, {"anything-but": ["y"]}, {"exists": False}]}}},
        {**SOURCE, "detail": {"$or": [{"a": ["1"]}, {"b": ["2"]}]}},
        {**SOURCE, "detail": {"a": ["x" * (2048 - 43)]}},
        {**SOURCE, "$or": [{"account": ["1"]}, {"detail": {"rows": [{"numeric": [">", 5]}]}}]},
    ],
)
def test_patterns_that_eventbridge_takes_are_taken(pattern: dict[str, Any]) -> None:
    assert find_pattern_problem(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ({"detail": {"a": ["b"]}}, "`source` must be a list of names"),
        ({"source": "com.acme"}, "`source` must be a list of names"),
        ({"source": []}, "`source` must be a list of names"),
        ({"source": [{"prefix": ""}]}, "`source` must be a list of names"),
        ({**SOURCE, "detail_type": ["x"]}, "no event has `detail_type` at its top: known are source, detail-type"),
        ({**SOURCE, "detail-type": "x"}, "`detail-type` must be a list of values: [x]"),
        ({**SOURCE, "detail": {}}, "`detail` is empty: no event has that"),
        ({**SOURCE, "detail": {"a": []}}, "`detail.a` is empty"),
        ({**SOURCE, "detail": {"a": [["b"]]}}, "`detail.a` has a list within its list"),
        (
            {**SOURCE, "detail": {"a": [{"starts": "b"}]}},
            "`detail.a` has a comparison that EventBridge does not know: anything-but, cidr, equals-ignore-case, "
            "exists, numeric, prefix, suffix, wildcard are known",
        ),
        (
            {**SOURCE, "detail": {"$or": [{"a": "1"}]}},
            "`detail.$or alternative.a` must be a list of values: [1]",
        ),
        ({**SOURCE, "$or": [{"account": "1"}]}, "`$or alternative.account` must be a list of values: [1]"),
        ({**SOURCE, "detail": {"a": ["x" * 2048]}}, "it has 2091 characters as JSON, 2048 are allowed"),
        ({**SOURCE, "detail": {"a": [float("nan")]}}, "it has a number that JSON cannot have"),
    ],
)
def test_a_pattern_that_no_event_could_have_is_told(pattern: dict[str, Any], problem: str) -> None:
    assert find_pattern_problem(pattern).startswith(problem)


@pytest.mark.parametrize(
    ("times", "problem"),
    [(19, ""), (20, f"`{('detail' + '.names' * 20)[:80]}` is nested more than 20 times")],
)
def test_a_pattern_is_not_nested_for_ever(times: int, problem: str) -> None:
    nested: Any = ["x"]
    for _ in range(times):
        nested = {"names": nested}

    assert find_pattern_problem({**SOURCE, "detail": nested}) == problem


@pytest.mark.parametrize("source", sorted(OWN_SOURCES))
def test_what_every_job_brings_about_by_itself_cannot_be_watched(source: str) -> None:
    problem = find_pattern_problem({"source": ["com.acme", source]})

    assert problem == f"`{source}` cannot be watched: {OWN_SOURCES[source]}"


def test_equal_patterns_have_one_text_and_one_key() -> None:
    first = write_pattern({"source": ["a"], "detail": {"x": ["é"]}})
    second = write_pattern({"detail": {"x": ["é"]}, "source": ["a"]})

    assert first == second == '{"detail":{"x":["é"]},"source":["a"]}'
    assert pattern_key(first) != pattern_key(write_pattern({"source": ["a"]}))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"source":"a"}', "{}"])
def test_what_is_no_pattern_of_a_trigger_names_no_sources(text: str) -> None:
    assert pattern_sources(text) == ()
