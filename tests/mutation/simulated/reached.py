"""Which seeds run which lines: the others need not be run with a mutant of a line."""

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from mutants import PACKAGE, Mutant

HERE = Path(__file__).parent
PROJECT = HERE.parents[2]
# What decides the runs: what was measured with other files does not hold.
SOURCES = ("layers", "local", "template.yaml")
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(map(str, (PACKAGE.parent, PROJECT / "local", HERE))),
    "PYTHONHASHSEED": "0",
}
# Seeds that are measured at a time: coverage makes them three times as slow.
CHUNK = 10
# Seeds that are run without faults with a mutant that raises.
_QUIET_SEEDS = 4


class Reached:
    """Which seeds run a line, and what came of each seed without a mutant; measured when it is first asked for."""

    def __init__(self, folder: Path, processes: int) -> None:
        """Keep what is measured in `folder`."""
        self._folder = folder
        self._processes = processes
        self._runs: dict[int, str] = {}
        self._steps: dict[int, int] = {}
        self._lines: dict[str, dict[int, set[int] | None]] = {}
        self.quiet: list[int] = []
        """Seeds that violate nothing without faults, those of the fewest steps first."""

    def runs_of(self, mutant: Mutant, seeds: Iterable[int]) -> dict[int, str]:
        """Return those of the measured `seeds`, with their fingerprints, in which the mutant may change anything.

        Those of the fewest steps come first.
        """
        known = self._lines.get(mutant.file, {})
        statements = statement_lines(mutant.original)
        lines = set(chain.from_iterable(statements.get(line, (line,)) for line in mutant.lines))
        reached: set[int] = set()
        for line in lines & known.keys():
            by_seed = known[line]
            reached |= self._runs.keys() if by_seed is None else by_seed
        return {seed: self._runs[seed] for seed in sorted(reached.intersection(seeds), key=self._steps.__getitem__)}

    def measure(self, seeds: Iterable[int]) -> None:
        """Run the seeds that were not measured yet, without a mutant."""
        chunks = sorted({seed // CHUNK * CHUNK for seed in seeds} - {seed // CHUNK * CHUNK for seed in self._runs})
        with ThreadPoolExecutor(self._processes) as pool:
            for chunk in pool.map(self._measure, chunks):
                self._add(chunk)
        self.quiet = self._find_quiet()

    def _find_quiet(self) -> list[int]:
        file = self._folder / "quiet.json"
        if not file.exists():
            cheapest = sorted(self._runs, key=self._steps.__getitem__)[: 2 * _QUIET_SEEDS]
            command = [sys.executable, str(HERE / "run_seeds.py"), *map(str, cheapest)]
            write(file, subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True).stdout)
        return json.loads(file.read_bytes())[:_QUIET_SEEDS]

    def _measure(self, first: int) -> Any:
        file = self._folder / f"reached-{first}-{CHUNK}.json"
        if not file.exists():
            command = [sys.executable, str(HERE / "reach.py"), str(first), str(CHUNK)]
            write(file, subprocess.run(command, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True).stdout)
        return json.loads(file.read_bytes())

    def _add(self, chunk: Any) -> None:
        self._runs |= {int(seed): fingerprint for seed, fingerprint in chunk["runs"].items()}
        self._steps |= {int(seed): steps for seed, steps in chunk["steps"].items()}
        for file, by_line in chunk["lines"].items():
            for line, by_seed in by_line.items():
                known = self._lines.setdefault(file, {}).setdefault(int(line), set())
                if known is None or by_seed is None:
                    self._lines[file][int(line)] = None
                else:
                    known.update(by_seed)


@cache
def statement_lines(source: str) -> dict[int, range]:
    """Return, by line, all lines of the innermost statement it belongs to; of a compound one those of its header."""
    lines: dict[int, range] = {}
    # Outer statements come first.
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            nested = [each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt) and each is not node]
            last = min(nested) - 1 if nested else node.end_lineno or node.lineno
            own = range(node.lineno, max(last, node.lineno) + 1)
            lines |= dict.fromkeys(own, own)
    return lines


def digest_of_sources() -> str:
    """Return a digest of all files that decide a run."""
    roots = map(PROJECT.joinpath, SOURCES)
    paths = chain.from_iterable([root] if root.is_file() else root.rglob("*.py") for root in roots)
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(PROJECT).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def write(file: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.replace(file)
