"""What the core says of a task is said of any target (docs/decisions/0013): its texts name no one of them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY

CORE = REPOSITORY / "layers" / "relaunch" / "relaunch" / "core"
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
