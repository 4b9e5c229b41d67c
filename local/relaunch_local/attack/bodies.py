"""Bodies of requests that nobody honest sends: samples with places changed, and JSON that costs its reader dearly."""

import copy
import json
import random
from collections.abc import Iterable, Iterator
from typing import Any

from relaunch_local.repository import REPOSITORY

_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 2**63, 10**300, 0.5, 1e300, float("nan"), float("-inf")),
    *("", " ", "\x00", "\ud800", "\u202e\u2066", "\x1b]0;title\x07", "٣", "null", "a/²", "x" * 3_000),
    *("refs/heads/" + "a" * 30, "../../etc/passwd", "${jndi:ldap://a}", "0001-01-01T00:00:00+14:00", "9" * 400),
    *([], {}, [None], [[]], {"": None}, {"__proto__": {"a": 1}}, ["a_" * 40] * 50),
)


def load_samples() -> dict[str, Any]:
    """Return the sample deliveries of events/, by the event's name and the file's."""
    files = sorted((REPOSITORY / "events").glob("github.*.json"))
    return {file.name: json.loads(file.read_text(encoding="utf-8")) for file in files}


def event_of(sample: str) -> str:
    """Return the event of a sample's file name: `github.push.json` is a push."""
    return sample.split(".")[1]


def mutate(payload: Any, dice: random.Random) -> Any:
    """Return a payload with one to four places dropped, renamed, wrapped, or given another value."""
    document = copy.deepcopy(payload)
    for _ in range(dice.randint(1, 4)):
        found = list(places(document))
        if found:
            _change(*dice.choice(found), dice)
    return document


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each container of a document with each of its keys or indexes, the outer ones first."""
    keys: Iterable[Any] = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield value, key
        yield from places(value[key])


def _change(container: Any, key: Any, dice: random.Random) -> None:
    match dice.choice(("replace", "replace", "drop", "wrap", "rename")):
        case "drop":
            del container[key]
        case "wrap":
            container[key] = dice.choice(([container[key]], {"value": container[key]}, str(container[key])))
        case "rename" if isinstance(container, dict):
            container[dice.choice(("", "\ud800", "jobs", "inputs"))] = container.pop(key)
        case _:
            container[key] = copy.deepcopy(dice.choice(_ODD_VALUES))


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield bodies, with what each is, that are small to send and may be dear to read."""
    for depth in (500, 5_000, 100_000, 1_000_000):
        yield f"{depth} nested lists", b"[" * depth + b"]" * depth
        yield f"{depth} lists that never end", b"[" * depth
        yield f"{depth} nested objects", b'{"a":' * depth + b"1" + b"}" * depth
        yield f"{depth} nested objects in a push", b'{"repository":' * depth + b"1" + b"}" * depth
    for digits in (5_000, 100_000, 3_000_000):
        yield f"an integer of {digits} digits", b'{"zen":' + b"9" * digits + b"}"
        yield f"an exponent of {digits} digits", b'{"zen":1e' + b"9" * digits + b"}"
        yield f"a fraction of {digits} digits", b'{"zen":0.' + b"9" * digits + b"}"
    for count in (10_000, 200_000):
        yield f"{count} keys", to_object((f"k{number}", 1) for number in range(count))
        yield f"the same key {count} times", to_object(("ref", 1) for _ in range(count))
        yield f"{count} commits", b'{"commits":[' + b",".join([b'{"added":["a"]}'] * count) + b"]}"
        yield f"{count} strings with escapes", b'{"a":[' + b",".join([b'"\\u0000\\ud800"'] * count) + b"]}"
    for text in (
        "NaN",
        "Infinity",
        "-Infinity",
        "nul",
        '"\\ud800"',
        '"',
        "\ufeff{}",
        "{}{}",
        "{'a':1}",
        "[1,]",
        "\x00",
    ):
        yield f"the body {text!a}", text.encode("utf-8", "surrogatepass")
    for raw in (b"", b"\xff\xfe{\x00}\x00", b"\x80", b"\x1f\x8b\x08", b"PK\x03\x04", b"payload={}", b"{" * 6_000_000):
        yield f"{len(raw)} bytes from {raw[:8]!r}", raw


def to_object(pairs: Iterator[tuple[str, int]]) -> bytes:
    """Write an object whose keys may repeat."""
    return ("{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs) + "}").encode()
