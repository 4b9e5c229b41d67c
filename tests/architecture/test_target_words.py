"""What the core says of a task is said of any target (docs/decisions/0013): its texts name no one of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

LAYER = REPOSITORY / "layers" / "relaunch" / "relaunch"
CORE = LAYER / "core"
# What comes after selection, which knows the rules of ECS's task definitions.
PACKAGES = ("jobs", "launches", "lifecycle", "machines")
TARGETS = re.compile(r"\b(ECS|RunTask|Kubernetes)\b")


def texts(source: str) -> Iterator[str]:
    """Yield the string literals of a module, but no docstrings."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


@pytest.mark.parametrize("file", [file for name in PACKAGES for file in sorted((CORE / name).rglob("*.py"))], ids=str)
def test_no_text_of_the_core_names_a_target(file: Path) -> None:
    found = [text for text in texts(file.read_text(encoding="utf-8")) if TARGETS.search(text)]

    assert not found, f"{file.name} says what one target does, where any may be meant"


def test_texts_within_others_are_found_and_docstrings_are_none() -> None:
    source = '"""Of ECS."""\nreason = f"{name}: ECS says {status}"\n"""Also of ECS."""\n'

    assert list(texts(source)) == [": ECS says "]


def compared(source: str) -> list[str]:
    """Return the comparisons with a target by its name; what a `match` says of names is said of all."""
    comparisons = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Compare)]
    named = re.compile(r"[{(]?\bTarget\.[A-Z]+\b.*")
    return [
        ast.unparse(each)
        for each in comparisons
        if any(named.fullmatch(ast.unparse(part)) for part in (each.left, *each.comparators))
    ]


def test_a_target_is_asked_what_it_can_and_never_what_it_is_called() -> None:
    sources = {
        file: file.read_text(encoding="utf-8")
        for folder in (LAYER, REPOSITORY / "cli", REPOSITORY / "functions")
        for file in folder.rglob("*.py")
    }

    found = {file: compared(source) for file, source in sources.items() if "Target." in source}
    assert {file.name: texts for file, texts in found.items() if texts} == {}
    assert compared("a = b.target is Target.ECS or Target.ACK in c\n") == ["b.target is Target.ECS", "Target.ACK in c"]
