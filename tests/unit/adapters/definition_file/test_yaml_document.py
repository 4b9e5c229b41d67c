"""YAML that is hostile, or means something else than it seems: an error with its place, in bounded time."""

from itertools import pairwise

import pytest

from relaunch.adapters.core_schema import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES
from relaunch.adapters.definition_file.yaml_document import Document, read_document


def problems(text: str) -> list[str]:
    return [str(problem) for problem in read_document(text, "f.yaml").problems]


@pytest.mark.parametrize(
    ("text", "place", "tag"),
    [
        ("a: !!python/name:os.system x", "1:4: a", "!!python/name:os.system"),
        ("a:\n  - !!python/object/apply:os.system [ls]", "2:5: a[0]", "!!python/object/apply:os.system"),
        ("a: !!python/dict {b: c}", "1:4: a", "!!python/dict"),
        ("!!python/str a: b", "1:1", "!!python/str"),
        ("%TAG ! tag:yaml.org,2002:python/\n---\na: !name:os.system x", "3:4: a", "!!python/name:os.system"),
        ("a: !!binary aGVq", "1:4: a", "!!binary"),
        ("a: !!timestamp 2026-11-22", "1:4: a", "!!timestamp"),
        ("a: !!set {b, c}", "1:4: a", "!!set"),
        ("a: !!omap [b: c]", "1:4: a", "!!omap"),
        ("a: !!map [b]", "1:4: a", "!!map"),
        ("a: !!str {b: c}", "1:4: a", "!!str"),
        ("a: !Ref b", "1:4: a", "!Ref"),
    ],
)
def test_a_tag_that_is_not_the_values_own_is_refused_at_its_place(text: str, place: str, tag: str) -> None:
    assert problems(text) == [f"f.yaml:{place}: the tag {tag} is not supported: write the plain value"]


def test_tags_of_plain_values_are_taken() -> None:
    document = read_document(
        "a: !!str 1\nb: !!int '2'\nc: !!float 3\nd: !!bool true\ne: !!map {f: !!seq [g]}", "f.yaml"
    )

    assert document.problems == []
    assert document.value == {"a": "1", "b": 2, "c": 3.0, "d": True, "e": {"f": ["g"]}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: !!bool yes", "1:4: a: is neither true nor false"),
        ("a: !!int b", "1:4: a: is not a number"),
        ("a: b\x00c", "1:5: not valid YAML: it may not contain U+0000"),
        ("a: b\nc: \ud800", "2:4: not valid YAML: it may not contain U+D800"),
        ("a:\n- \x1b[2J", "2:3: not valid YAML: it may not contain U+001B"),
        ('a: "b\\0c"', "1:4: a: has NUL or half a surrogate pair: remove its escape"),
        ('a: "\\ud800"', "1:4: a: has NUL or half a surrogate pair: remove its escape"),
        ('"\\udfff": a', "1:1: a key has NUL or half a surrogate pair: remove its escape"),
        ('a: "\\U00110000"', "1:7: not valid YAML: a number is too large here"),
        ('a: "\\UFFFFFFFF"', "1:7: not valid YAML: a number is too large here"),
        (f"%YAML 1.{'9' * 5000}\n---\na: b", "1:9: not valid YAML: a number is too large here"),
        (f"a: {'9' * 5000}", "1:4: a: is not a number"),
        (
            "a: b\n---\na: b",
            "2:1: not valid YAML: expected a single document in the stream, but found another document",
        ),
        ("a: b\nc: d\na: e", "3:1: a: `a` is here twice: line 1 has it already"),
        ("a: {<<: {b: c}}", "1:5: a: merge keys (`<<`) are not supported: repeat the keys"),
        ("a: &a [*a]", "1:4: a[0]: anchors and aliases here expand without end"),
    ],
)
def test_what_is_ambiguous_or_cannot_be_written_is_refused_at_its_place(text: str, problem: str) -> None:
    assert problems(text) == [f"f.yaml:{problem}"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a:\n  b: c\n  d:s3://e\n\n  # f\n  g: h", "3:3"),
        ("a:\n  d:s3://e\n  g: h", "2:3"),
        ("a:\n  b: c\n  d:s3://e", "3:3"),
    ],
)
def test_a_space_that_was_forgotten_is_named_with_its_line(text: str, place: str) -> None:
    assert problems(text) == [f"f.yaml:{place}: not valid YAML: a space is missing behind `d:`"]
    other = "mapping values are not allowed here"
    assert problems("- s3://e\n- b: c: d") == [f"f.yaml:2:7: not valid YAML: {other}"]


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert read_document("\ufeffa: b", "f.yaml").value == {"a": "b"}


def test_aliases_expand_to_a_limited_number_of_values() -> None:
    names = "abcdefghij"
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in pairwise(names)]

    (problem,) = problems("\n".join(lines))

    assert "anchors and aliases here expand without end" in problem


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[" * 100_000, (1, MAX_DEPTH + 1)),
        ("[" * 300 + "]" * 300, (1, MAX_DEPTH + 1)),
        ("- " * 300 + "a", (1, 2 * MAX_DEPTH + 1)),
        ("".join(f"{' ' * depth}a:\n" for depth in range(300)), (MAX_DEPTH, MAX_DEPTH)),
    ],
)
def test_nesting_is_limited(text: str, place: tuple[int, int]) -> None:
    (problem,) = read_document(text, "f.yaml").problems

    assert problem.message == f"not valid YAML: nested deeper than {MAX_DEPTH} levels"
    assert (problem.line, problem.column) == place


def test_the_deepest_nesting_is_read() -> None:
    assert problems("[" * (MAX_DEPTH - 1) + "a" + "]" * (MAX_DEPTH - 1)) == []


def test_a_file_has_a_limited_number_of_values_and_characters() -> None:
    assert problems(f"[{'a,' * (MAX_NODES - 1)}]") == []
    assert problems(f"[{'a,' * MAX_NODES}]")[0].endswith("not valid YAML: more than 20,000 values")
    assert problems("#" * MAX_CHARACTERS) == ["f.yaml:1:1: the file is empty: it needs the key `jobs`"]
    assert problems("a: b\n" * 2_000_000) == ["f.yaml:1:1: the file is longer than 250,000 characters"]


def test_a_path_has_one_problem() -> None:

    document = Document("f.yaml")
    for number in range(100):
        document.report((f"key{number}",), "unknown")
        document.report((f"key{number}",), "told before")

    assert len(document.problems) == 100
