from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.definitions.filter_patterns import compile_pattern, matches_filters


@pytest.fixture(autouse=True)
def no_pattern_is_known() -> None:
    """Let each test translate its pattern itself, whichever came first."""
    compile_pattern.cache_clear()


# The examples of GitHub Docs, "Filter pattern cheat sheet", and what they leave open: what each pattern includes, and
# what it leaves out.
PATTERNS = {
    "feature/*": (["feature/my-branch"], ["feature/a/b"]),
    "feature/**": (["feature/beta-a/my-branch", "feature/mona/the/octocat"], []),
    "main": (["main"], ["maintenance", "Main", "main\n"]),
    "*": (["releases"], ["a/b"]),
    "**": (["all/the/branches"], []),
    "*feature": (["feature", "ver-10-feature"], []),
    "v2*": (["v2", "v2.9"], []),
    "v[12].[0-9]+.[0-9]+": (["v1.10.1", "v2.0.0"], ["v3.0.0", "v1x0.0"]),
    "*.jsx?": (["page.js", "page.jsx"], ["page.jsxx"]),
    "**.js": (["js/index.js"], []),
    "docs/*": (["docs/README.md"], ["docs/a/b.md"]),
    "docs/**": (["docs/mona/octocat.txt"], []),
    "docs/**/*.md": (["docs/README.md", "docs/a/markdown/file.md"], []),
    "**/docs/**": (["docs/hello.md", "space/docs/plan/space.doc"], ["mydocs/hello.md"]),
    "**/README.md": (["README.md", "js/README.md"], ["js/OLD-README.md"]),
    "**/*src/**": (["a/src/app.js", "my-src/code/js/app.js"], []),
    "**/*-post.md": (["path/their-post.md"], []),
    "**/migrate-*.sql": (["db/sept/migrate-v1.sql"], []),
    "[CB]at": (["Bat"], ["CBat"]),
    "[1-2]00": (["200"], []),
    "[A-C]at": (["Bat"], ["bat"]),
    "[a-c]at": (["bat"], ["Bat"]),
    "[xa-c]at": (["bat"], []),
    "[a-a]t": (["at"], ["-t"]),
    "a[b-]c": (["a-c"], []),
    "train***": (["train/deep/er.py"], []),
    r"odd\*name": (["odd*name"], []),
    r"odd\*": (["odd*"], ["oddly"]),
    "open[bracket": (["open[bracket"], []),
    "[]": (["[]"], []),
    "?start": (["?start"], ["start"]),
    "a*+": (["abc+"], ["abc"]),
    "v1++": (["v111+"], []),
    "[z-a]": (["-"], []),
    "[a^]": (["^"], []),
    "end\\": (["end\\"], []),
    "": ([""], []),
    "a**+": ([], ["abc"]),
    "a/**/?b": ([], ["a/b"]),
    "[abc]at": ([], ["Xat"]),
    "*.js": ([], ["src/app.js"]),
    "a.c": ([], ["abc"]),
}
INCLUDED = [(pattern, value) for pattern, (included, _) in PATTERNS.items() for value in included]
NOT_INCLUDED = [(pattern, value) for pattern, (_, left_out) in PATTERNS.items() for value in left_out]


@pytest.mark.parametrize(("pattern", "value"), INCLUDED)
def test_a_pattern_includes_what_github_says(pattern: str, value: str) -> None:
    assert matches_filters(value, [pattern])


@pytest.mark.parametrize(("pattern", "value"), NOT_INCLUDED)
def test_a_pattern_leaves_out_what_github_says(pattern: str, value: str) -> None:
    assert not matches_filters(value, [pattern])


@pytest.mark.parametrize(
    ("value", "patterns", "expected"),
    [
        pytest.param("hello.md", ("*.md", "!README.md"), True, id="kept"),
        pytest.param("README.md", ("*.md", "!README.md"), False, id="taken-out"),
        pytest.param("README.md", ("*.md", "!README.md", "README*"), True, id="taken-in-again"),
        pytest.param("README.md", ("!README.md", "*.md"), True, id="order-counts"),
        pytest.param("other", ("!README.md",), False, id="only-exclusions-include-nothing"),
        pytest.param("a!b", ("a!b",), True, id="an-exclamation-mark-inside-is-itself"),
        pytest.param("main", (), False, id="no-patterns-include-nothing"),
    ],
)
def test_patterns_are_read_in_order(value: str, patterns: tuple[str, ...], expected: bool) -> None:
    assert matches_filters(value, patterns) is expected


@given(st.text(max_size=30), st.text(max_size=30))
def test_every_text_is_a_pattern(pattern: str, value: str) -> None:
    assert matches_filters(value, [pattern]) in {True, False}


class CountedText(str):
    """Counts how many of its characters are read one by one."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        for character in super().__iter__():
            self.reads += 1
            yield character


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        pytest.param("**/*_*_*_*_*_*.py", "_" * 2_000 + ".py", id="stars"),
        pytest.param("[a+]+" * 40 + "b", "a" * 2_000 + "b", id="repetitions"),
        pytest.param("a?" * 400 + "a" * 400, "a" * 700, id="options"),
        pytest.param("**/" * 100 + "a", "/" * 2_000 + "a", id="directories"),
        pytest.param("**a" * 50, "a" * 2_000, id="any-text"),
    ],
)
def test_each_character_is_read_once_whatever_the_pattern(pattern: str, value: str) -> None:
    counted = CountedText(value)

    assert matches_filters(counted, [pattern])
    assert counted.reads == len(value)


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        pytest.param("**/*_*_*_*_*_*.py", "_" * 2_000 + "/.py", id="stars"),
        pytest.param("[a+]+" * 40 + "[b]+c", "a" * 2_000 + "c", id="repetitions"),
        pytest.param("a?" * 400 + "a" * 400, "a" * 399, id="options"),
    ],
)
def test_what_does_not_match_is_read_once_too(pattern: str, value: str) -> None:
    counted = CountedText(value)

    assert not matches_filters(counted, [pattern])
    assert counted.reads <= len(value)


@pytest.mark.parametrize("value", ["x", "docs/x.py", "src/x.md"])
def test_a_value_that_begins_or_ends_with_something_else_is_not_read(value: str) -> None:
    counted = CountedText(value)

    assert not matches_filters(counted, ["src/**.py"])
    assert counted.reads == 0


# What parts of patterns match alone; none begins with a star, which would go on with a star before it.
PARTS = {
    "a": lambda text: text == "a",
    "/": lambda text: text == "/",
    "a?": lambda text: text in {"", "a"},
    "[ab]+": lambda text: text != "" and set(text) <= {"a", "b"},
    "b*": lambda text: text[:1] == "b" and "/" not in text,
    "/*": lambda text: text[:1] == "/" and "/" not in text[1:],
    "a**": lambda text: text[:1] == "a",
    "/**/": lambda text: text == "/" or (len(text) > 1 and text[0] == text[-1] == "/"),
    "**/": lambda text: text == "" or text[-1] == "/",
    "*": lambda text: "/" not in text,
}


def matches_parts(parts: list[str], value: str) -> bool:
    """Try every length for every part."""
    if not parts:
        return not value
    lengths = (length for length in range(len(value) + 1) if PARTS[parts[0]](value[:length]))
    return any(matches_parts(parts[1:], value[length:]) for length in lengths)


@given(
    st.sampled_from([[], ["**/"], ["*"]]),
    st.lists(st.sampled_from(list(PARTS)[:-2]), max_size=6),
    st.text("ab/", max_size=8),
)
def test_patterns_match_what_trying_every_length_matches(first: list[str], others: list[str], value: str) -> None:
    parts = first + others

    assert matches_filters(value, ["".join(parts)]) is matches_parts(parts, value)


@given(st.text(alphabet=st.characters(blacklist_characters="*?+[]!\\"), max_size=30))
def test_a_pattern_without_special_characters_includes_exactly_itself(text: str) -> None:
    assert matches_filters(text, [text])
    assert not matches_filters(text + "x", [text])
