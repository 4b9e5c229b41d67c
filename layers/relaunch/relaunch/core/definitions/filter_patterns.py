"""Filter patterns of GitHub Actions: `*`, `**`, `?`, `+`, `[]`, a leading `!`, and the backslash as escape character.

Unlike in shell globs, `?` and `+` repeat the preceding character. Source: GitHub Docs, "Workflow
syntax for GitHub Actions", section "Filter pattern cheat sheet". Matching is case-sensitive and of the whole value.

Patterns and values come from outside, and a regular expression that backtracks takes exponential time for some of
them. Here a value is read once, character by character, while the positions in the pattern that can have been reached
are kept as the bits of one number ("Flexible Pattern Matching in Strings", Navarro and Raffinot, extended patterns).
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from relaunch.core.records import dataclass

_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
_RANGE = re.compile(r"[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9]")
_STARS = re.compile(r"\*+")
_QUANTIFIERS = "?+"


@dataclass(frozen=True, slots=True)
class CharacterSet:
    """Characters; if negated, all others."""

    characters: frozenset[str]
    is_negated: bool = False

    def __contains__(self, character: object) -> bool:
        return (character in self.characters) is not self.is_negated


_NONE = CharacterSet(frozenset())
_ANY = CharacterSet(frozenset(), is_negated=True)
_SLASH = CharacterSet(frozenset("/"))
_NOT_SLASH = CharacterSet(frozenset("/"), is_negated=True)


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a pattern: characters that end it, characters after which it goes on, whether it may be left out.

    A character in both does either: `a+` both ends with an `a` and goes on after it.
    """

    ending: CharacterSet
    going_on: CharacterSet = _NONE
    is_optional: bool = False


def matches_filters(value: str, patterns: Sequence[str]) -> bool:
    """Return whether the patterns, evaluated in order, include the value.

    A pattern with a leading `!` excludes what an earlier one included; a later pattern can include it again.
    """
    included = False
    for pattern in patterns:
        if pattern.startswith("!"):
            included = included and not compile_pattern(pattern[1:]).matches(value)
        else:
            included = included or compile_pattern(pattern).matches(value)
    return included


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> "CompiledPattern":
    """Compile a filter pattern, without its leading `!`."""
    return CompiledPattern(parse_pattern(pattern))


class CompiledPattern:
    """The items of a pattern; bit `i` of a number is item `i`, and the bit after the last item is the end."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._end = 1 << len(items)
        self._optional = sum(1 << index for index, item in enumerate(items) if item.is_optional)
        named = {"/"}.union(*(item.ending.characters | item.going_on.characters for item in items))
        self._bits = {character: _bits_of(items, character) for character in named}
        # No item names the empty string, which stands for all characters that none names.
        self._other_bits = _bits_of(items, "")
        self._first = _literal(items)
        self._last = _literal(items[::-1])[::-1]

    def matches(self, value: str) -> bool:
        """Return whether the whole value matches, in time proportional to its length."""
        # Most values that do not match begin or end with something else, which is seen faster than by reading them.
        if not value.startswith(self._first) or not value.endswith(self._last):
            return False
        reached = 0
        for reached in self._walk(value):
            if not reached:
                return False
        return bool(reached & self._end)

    def matching_prefixes(self, value: str) -> Iterator[int]:
        """Yield the lengths of the beginnings of a value that match, in order."""
        return (length for length, reached in enumerate(self._walk(value)) if reached & self._end)

    def _walk(self, value: str) -> Iterator[int]:
        """Yield the items that can be next, before the first character and after each."""
        optional = self._optional
        bits = self._bits
        other_bits = self._other_bits
        entered = 1
        kept = 0
        for character in value:
            # A carry runs through a row of ones as an entry runs through a row of items that may be left out.
            reached = entered | kept | (optional ^ (optional + (entered & optional)))
            yield reached
            ending, going_on = bits.get(character, other_bits)
            entered = (reached & ending) << 1
            kept = reached & going_on
        yield entered | kept | (optional ^ (optional + (entered & optional)))


def _literal(items: Sequence[Item]) -> str:
    """Return the text that the first items match alone."""
    text = ""
    for item in items:
        if item.is_optional or item.going_on != _NONE or len(item.ending.characters) != 1:
            break
        text += "".join(item.ending.characters)
    return text


def _bits_of(items: Sequence[Item], character: str) -> tuple[int, int]:
    """Return the items that end with a character, and those that go on after it."""
    ending = sum(1 << index for index, item in enumerate(items) if character in item.ending)
    return ending, sum(1 << index for index, item in enumerate(items) if character in item.going_on)


def parse_pattern(pattern: str) -> list[Item]:
    """Return the items of a filter pattern without its leading `!`; every string is a valid pattern."""
    items: list[Item] = []
    position = 0
    is_repeatable = False
    while position < len(pattern):
        if pattern[position] in _QUANTIFIERS and is_repeatable:
            items[-1] = _quantify(items[-1], pattern[position])
            # A quantifier cannot be repeated: a second one in a row is a literal character.
            position = position + 1
            is_repeatable = False
            continue
        item, position, is_repeatable = _parse_at(pattern, position)
        items.append(item)
    return items


def _quantify(item: Item, quantifier: str) -> Item:
    return Item(item.ending, is_optional=True) if quantifier == "?" else Item(item.ending, going_on=item.ending)


def _parse_at(pattern: str, position: int) -> tuple[Item, int, bool]:
    """Parse the item at a position: (item, next position, whether `?` and `+` may follow it)."""
    stars = _STARS.match(pattern, position)
    if stars:
        return *_parse_stars(pattern, stars), False
    brackets = _BRACKETS.match(pattern, position)
    if brackets:
        return Item(_parse_class(brackets[1])), brackets.end(), True
    if pattern[position] == "\\" and position + 1 < len(pattern):
        position += 1
    return Item(CharacterSet(frozenset(pattern[position]))), position + 1, True


def _parse_stars(pattern: str, stars: re.Match[str]) -> tuple[Item, int]:
    if len(stars[0]) == 1:
        return Item(_NOT_SLASH, _NOT_SLASH, is_optional=True), stars.end()
    is_whole_segment = stars.start() == 0 or pattern[stars.start() - 1] == "/"
    if is_whole_segment and pattern.startswith("/", stars.end()):
        # `docs/**/*.md` includes docs/README.md: `**/` matches zero or more directories.
        return Item(_SLASH, _ANY, is_optional=True), stars.end() + 1
    return Item(_ANY, _ANY, is_optional=True), stars.end()


def _parse_class(text: str) -> CharacterSet:
    characters: set[str] = set()
    position = 0
    while position < len(text):
        found = _RANGE.match(text, position)
        if found and found[0][0] <= found[0][2]:
            characters.update(map(chr, range(ord(found[0][0]), ord(found[0][2]) + 1)))
            position = found.end()
        else:
            characters.add(text[position])
            position += 1
    return CharacterSet(frozenset(characters))
