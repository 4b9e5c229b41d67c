"""Filter patterns of GitHub Actions: `*`, `**`, `?`, `+`, `[]`, a leading `!`, and the backslash as escape character.

Unlike in shell globs, `?` and `+` repeat the preceding character. Source: GitHub Docs, "Workflow
syntax for GitHub Actions", section "Filter pattern cheat sheet". Matching is case-sensitive and of the whole value.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
_STARS = re.compile(r"\*+")
_QUANTIFIERS = "?+"


def matches_filters(value: str, patterns: Sequence[str]) -> bool:
    """Return whether the patterns, evaluated in order, include the value.

    A pattern with a leading `!` excludes what an earlier one included; a later pattern can include it again.
    """
    included = False
    for pattern in patterns:
        if pattern.startswith("!"):
            included = included and compile_pattern(pattern[1:]).fullmatch(value) is None
        else:
            included = included or compile_pattern(pattern).fullmatch(value) is not None
    return included


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a filter pattern, without its leading `!`, to a regular expression."""
    return re.compile(translate_pattern(pattern), re.DOTALL)


def translate_pattern(pattern: str) -> str:
    """Return the regular expression equivalent to a filter pattern; every string is a valid pattern."""
    parts: list[str] = []
    position, is_repeatable = 0, False
    while position < len(pattern):
        if pattern[position] in _QUANTIFIERS and is_repeatable:
            # A quantifier cannot be repeated: a second one in a row is a literal character.
            parts.append(pattern[position])
            position, is_repeatable = position + 1, False
            continue
        part, position, is_repeatable = _translate_at(pattern, position)
        parts.append(part)
    return "".join(parts)


def _translate_at(pattern: str, position: int) -> tuple[str, int, bool]:
    """Translate the token at a position: (expression, next position, whether `?` and `+` may follow it)."""
    stars = _STARS.match(pattern, position)
    if stars:
        return _translate_stars(pattern, stars)
    brackets = _BRACKETS.match(pattern, position)
    if brackets:
        return f"[{_translate_class(brackets[1])}]", brackets.end(), True
    if pattern[position] == "\\" and position + 1 < len(pattern):
        position += 1
    return re.escape(pattern[position]), position + 1, True


def _translate_stars(pattern: str, stars: re.Match[str]) -> tuple[str, int, bool]:
    if len(stars[0]) == 1:
        return "[^/]*", stars.end(), False
    is_whole_segment = stars.start() == 0 or pattern[stars.start() - 1] == "/"
    if is_whole_segment and pattern.startswith("/", stars.end()):
        # `docs/**/*.md` includes docs/README.md: `**/` matches zero or more directories.
        return "(?:.*/)?", stars.end() + 1, False
    return ".*", stars.end(), False


def _translate_class(characters: str) -> str:
    ranges = re.compile(r"[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]")
    parts: list[str] = []
    position = 0
    while position < len(characters):
        found = ranges.match(characters, position)
        if found and found[0][0] <= found[0][2]:
            parts.append(found[0])
            position = found.end()
        else:
            parts.append(re.escape(characters[position]))
            position += 1
    return "".join(parts)
