"""Attacks by patterns that take a backtracking matcher exponential time: each costs next to nothing or is refused."""

import random
from collections.abc import Iterator
from functools import partial

from relaunch.adapters.input_patterns import Re2Patterns
from relaunch.core.definitions.filter_patterns import matches_filters
from relaunch.ports import UnsupportedPatternError
from relaunch_local.attack.attempts import Attempt, attempt

_FILTERS = (
    "**/*_*_*_*.py",
    "*a*a*a*a*a*a*a*b",
    "**/**/**/**/x",
    "a?" * 30 + "a" * 30,
    "[a-z]+" * 20,
    "+" * 50,
    "[",
    "!",
)
_INPUTS = (
    *("(a+)+", "(a|aa)+", "(a|a)*b", "(a*)*$", "(.*a){25}", "([a-z]+)*1", "(?:a?){60}a{60}", "^(\\w+\\s?)*$"),
    *(
        "(x+x+)+y",
        "(a{1,30}){1,30}",
        "(.*)*(.*)*(.*)*c",
        "\\1(a)",
        "(?=a+)a*b",
        "(?<!a)b",
        "(?>a+)b",
        "a++",
        "[",
        "\ud800",
    ),
)


def hostile_patterns(dice: random.Random, count: int) -> Iterator[Attempt]:
    """Match filters of branches and patterns of inputs with values that they almost match."""
    engine = Re2Patterns()
    for number in range(count):
        pattern = _FILTERS[number] if number < len(_FILTERS) else _draw(dice, "*?+[]!a_/.-", 40)
        value = dice.choice(("a" * 1_000 + "!", "_" * 1_000, "a/" * 500, "a_" * 500, _draw(dice, "ab_/.", 1_000)))
        yield attempt(f"the filter {pattern!r}", partial(_filter, value, pattern))
        expression = _INPUTS[number] if number < len(_INPUTS) else _draw(dice, "()*+?|{1,9}a.[b]^$\\", 30)
        text = dice.choice(("a" * 1_023 + "!", "x" * 1_024, "ab" * 512, "a " * 512))
        yield attempt(f"the input pattern {expression!r}", partial(_match, engine, expression, text))


def _draw(dice: random.Random, alphabet: str, length: int) -> str:
    return "".join(dice.choices(alphabet, k=dice.randint(1, length)))


def _filter(value: str, pattern: str) -> None:
    matches_filters(value, (pattern,))


def _match(engine: Re2Patterns, pattern: str, value: str) -> None:
    try:
        engine.matches(pattern, value)
    except UnsupportedPatternError:
        return
