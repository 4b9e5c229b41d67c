"""Mutants of modules as whole source files, each with one of mutmut's mutations."""

import difflib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mutmut.mutation.file_mutation import create_mutations, deep_replace

PACKAGE = Path(__file__).resolve().parents[3] / "layers" / "relaunch" / "relaunch"
FOLDERS = ("core", "usecases")


@dataclass(frozen=True)
class Mutant:
    """A module with one mutation: the `number`th, from 0, that mutmut makes of the file."""

    file: str
    """Relative to the package, `core/jobs/limits.py`."""
    number: int
    original: str
    mutated: str

    @property
    def name(self) -> str:
        """The file and the number in one word."""
        return f"{self.file.removesuffix('.py').replace('/', '.')}.{self.number}"

    @property
    def module(self) -> str:
        """The name under which the module is imported."""
        return "relaunch." + self.file.removesuffix(".py").replace("/", ".")

    @cached_property
    def lines(self) -> tuple[int, ...]:
        """The lines of the original that differ, from 1; where lines were only added, the line before them."""
        matcher = difflib.SequenceMatcher(None, self.original.splitlines(), self.mutated.splitlines(), autojunk=False)
        changed = [opcode for opcode in matcher.get_opcodes() if opcode[0] != "equal"]
        return tuple(line for _, first, end, *_ in changed for line in range(first + 1, max(end, first + 1) + 1))

    @cached_property
    def change(self) -> tuple[str, str]:
        """The lines that differ, as they were and as they are, without indentation."""
        lines = difflib.ndiff(self.original.splitlines(), self.mutated.splitlines())
        kept = [line for line in lines if line[:2] in ("- ", "+ ")]
        before = " ".join(line[2:].strip() for line in kept if line[0] == "-")
        return before, " ".join(line[2:].strip() for line in kept if line[0] == "+")


def draw_mutants(count: int, draw: int) -> list[Mutant]:
    """Return `count` mutants of all, drawn at random from the seed `draw`, in the order of their files."""
    paths = [path for folder in FOLDERS for path in sorted((PACKAGE / folder).rglob("*.py"))]
    numbered = [(path, number) for path in paths for number in range(len(_mutations(path)[1]))]
    drawn = random.Random(draw).sample(numbered, min(count, len(numbered)))  # noqa: S311 - no secret
    return [_render(path, number) for path, number in sorted(drawn)]


def combine(mutants: Sequence[Mutant]) -> tuple[dict[str, str], list[Mutant]]:
    """Return the sources, by module, with all mutants at once, and those that could not be among them.

    A mutant is left out when another one has replaced what it would change.
    """
    sources: dict[str, str] = {}
    left_out = []
    for file in dict.fromkeys(mutant.file for mutant in mutants):
        module, mutations = _mutations(PACKAGE / file)
        for mutant in (each for each in mutants if each.file == file):
            mutation = mutations[mutant.number]
            changed = deep_replace(module, mutation.original_node, mutation.mutated_node)
            if changed.code == module.code:
                left_out.append(mutant)
            else:
                module = changed
                sources[mutant.module] = module.code
    return sources, left_out


@cache
def _mutations(path: Path) -> tuple[Any, Sequence[Any]]:
    module, mutations, *_ = create_mutations(str(path), path.read_text(encoding="utf-8"))
    return module, mutations


def _render(path: Path, number: int) -> Mutant:
    module, mutations = _mutations(path)
    mutation = mutations[number]
    mutated = deep_replace(module, mutation.original_node, mutation.mutated_node).code
    return Mutant(path.relative_to(PACKAGE).as_posix(), number, module.code, mutated)
