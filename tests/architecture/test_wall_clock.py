"""Time and chance come from outside: what is decided, and what tests say of it, is the same at any time of any day."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

CLOCKS = {
    *("datetime.now", "datetime.utcnow", "datetime.today", "date.today"),
    *("time.time", "time.time_ns", "time.localtime", "time.gmtime", "time.ctime", "time.strftime"),
}
RANDOM = {f"random.{name}" for name in ("choice", "choices", "getrandbits", "randint", "random", "sample", "shuffle")}
RANDOM |= {f"random.{name}" for name in ("expovariate", "gauss", "randrange", "uniform")}
ALLOWED = {
    "tests/unit/adapters/aws/test_sigv4.py": "OpenSSL compares the dates of a certificate with its own clock",
    "tests/unit/cli/aws/test_cloudwatch_logs.py": "moto, like CloudWatch, takes no log events older than two weeks",
}


def deciding_and_its_tests() -> Iterator[Path]:
    ours = REPOSITORY / "layers" / "relaunch" / "relaunch"
    tests = [REPOSITORY / "tests" / name for name in ("unit", "contracts", "stories", "functional", "simulation")]
    for folder in (ours / "core", ours / "ports", ours / "usecases", *tests):
        yield from sorted(folder.rglob("*.py"))


def readings(source: str) -> list[str]:
    """Return the calls in a source that read the wall clock or draw from what nobody has seeded, with their lines."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    # A generator of their own, which has a seed, some tests call `random` too.
    looked_for = CLOCKS | RANDOM if "random" in imported else CLOCKS
    attributes = {each.partition(".")[2] for each in looked_for}
    calls = [node.func for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    # To write all of them out takes longer than to parse them.
    calls = [call for call in calls if call.attr in attributes]
    named = [(call.lineno, ".".join(ast.unparse(call).split(".")[-2:])) for call in calls]
    return [f"{line}: {name}" for line, name in named if name in looked_for]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("datetime.now(UTC)", "datetime.now"),
        ("datetime.datetime.now()", "datetime.now"),
        ("date.today()", "date.today"),
        ("time.time()", "time.time"),
        ("random.random()", "random.random"),
    ],
)
def test_a_reading_is_found(call: str, name: str) -> None:
    assert readings(f"import random\nnow = {call}") == [f"2: {name}"]


def test_nobody_reads_the_wall_clock_or_draws_unseeded() -> None:
    found = {str(path.relative_to(REPOSITORY)): readings(path.read_text("utf-8")) for path in deciding_and_its_tests()}

    assert {path: calls for path, calls in found.items() if calls and path not in ALLOWED} == {}
    assert all(found[path] for path in ALLOWED)
