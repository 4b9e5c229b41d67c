"""Any JSON, and documents that are almost right, for property tests of what comes over the wire."""

import copy
import json
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st

# Half a surrogate pair is no Unicode, and yet JSON can write it.
TEXT = st.text(st.characters(), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)
# What no value in Python writes as JSON: put in place of these texts when everything else is written.
_RAW = {
    "@huge-integer": "9" * 5_000,
    "@huge-float": "1e999",
    "@minus-zero": "-0.0",
    "@deep-list": "[" * 600 + "]" * 600,
    "@deep-object": '{"a":' * 300 + "1" + "}" * 300,
    "@endless": "[" * 60_000,
}
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        *_RAW,
        *(None, True, False, 0, 1, -1, 2**63, 10**300, 0.5, 1e300, float("nan"), float("-inf")),
        *("", " ", "\x00", "\ud800", "\udfff\ud800", "\u202e", "²", "٣"),
        *("null", "a/²", "resnet-1f2e3d4c/²", "x" * 3_000),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-11-03", "-1", "1793709042000"),
        *([], {}, [None], [[]], {"": None}, {"\ud800": "\ud800"}),
    ]
).map(copy.deepcopy)


def write(document: Any) -> str:
    """Write JSON, also what is none by the letter: NaN, half surrogate pairs, integers of 5,000 digits."""
    text = json.dumps(document)
    for name, raw in _RAW.items():
        text = text.replace(f'"{name}"', raw)
    return text


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) in a document."""
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield value, key
        yield from _places(value[key])


@st.composite
def mutated(draw: st.DrawFn, samples: list[Any]) -> Any:
    """Draw one of the samples with up to four places dropped, doubled, renamed, or given another value."""
    document = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        places = list(_places(document))
        if not places:
            return document
        container, key = places[draw(st.integers(0, len(places) - 1))]
        _mutate(draw, container, key)
    return document


def _mutate(draw: st.DrawFn, container: Any, key: Any) -> None:
    match draw(st.sampled_from(["replace", "replace", "drop", "wrap", "rename", "swap"])):
        case "drop":
            del container[key]
        case "wrap":
            container[key] = draw(st.sampled_from([[container[key]], {"value": container[key]}, str(container[key])]))
        case "rename" if isinstance(container, dict):
            container[draw(TEXT)] = container.pop(key)
        case "swap":
            container[key] = draw(JSON)
        case _:
            container[key] = draw(ODD)
