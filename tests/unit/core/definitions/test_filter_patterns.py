import re

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
    assert isinstance(compile_pattern(pattern), re.Pattern)
    matches_filters(value, [pattern])


@given(st.text(alphabet=st.characters(blacklist_characters="*?+[]!\\"), max_size=30))
def test_a_pattern_without_special_characters_includes_exactly_itself(text: str) -> None:
    assert matches_filters(text, [text])
    assert not matches_filters(text + "x", [text])
