"""Runs of seeds with mutants: each alone at first, then those that were not found together."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mutants import Mutant, combine
from reached import CHUNK, ENVIRONMENT, HERE, PROJECT, Reached, write
from replaced_modules import VARIABLE


@dataclass
class Trial:
    """What came of a mutant."""

    mutant: Mutant
    tried: int = 0
    """Seeds that run its lines, of all that it was tried with."""
    changed: int = 0
    """Seeds whose run went another way when it was alone."""
    alone: int = 0
    """The first seed that it was not run with alone."""
    finding: str | None = None
    seed: int | None = None
    """Of the finding."""
    test: str | None = None
    """A unit test that fails with it."""

    def is_open(self) -> bool:
        """Tell whether no seed has found it."""
        return self.finding is None


class Trials:
    """Runs mutants, several at a time, and keeps what came of them in a folder."""

    def __init__(self, reached: Reached, folder: Path, processes: int, say: Callable[[str], None]) -> None:
        """Use `folder` for results and sources; `say` is called with progress."""
        self._reached = reached
        self._folder = folder
        self._processes = processes
        self._say = say

    def run_alone(self, mutants: Sequence[Mutant], seeds: int) -> list[Trial]:
        """Run each mutant with `seeds` seeds at most; end with the first that finds it."""
        done: list[Trial] = []

        def run(mutant: Mutant) -> Trial:
            trial = self._run_alone(mutant, seeds)
            done.append(trial)
            came = trial.finding or f"not found by {trial.tried} seeds, {trial.changed} went another way"
            self._say(f"{len(done)} of {len(mutants)} alone: {mutant.file}: {mutant.change[1][:60]}: {came[:90]}")
            return trial

        with ThreadPoolExecutor(self._processes) as pool:
            return list(pool.map(run, mutants))

    def _run_alone(self, mutant: Mutant, seeds: int) -> Trial:
        kept = self._folder / f"{mutant.name}.json"
        if kept.exists():
            trial = Trial(mutant, **json.loads(kept.read_bytes()))
            if not trial.is_open() or trial.alone >= seeds:
                return trial
        runs = self._reached.runs_of(mutant, range(seeds))
        outcome = self._run({mutant.module: mutant.mutated}, mutant.name, runs, is_first_enough=True)
        trial = Trial(mutant, len(runs), len(outcome["changed"]), seeds)
        for seed, finding in outcome["found"].items():
            trial.finding, trial.seed = finding, int(seed)
        self._keep(trial)
        return trial

    def _keep(self, trial: Trial) -> None:
        values = {name: value for name, value in asdict(trial).items() if name != "mutant"}
        write(self._folder / f"{trial.mutant.name}.json", json.dumps(values).encode())

    def run_together(self, trials: Sequence[Trial], seeds: range) -> None:
        """Run all mutants at once; in seeds that then find something each is run alone.

        A mutant that would be seen only without the others is missed: what several change may make up for each other.
        """
        firsts = range(seeds.start, seeds.stop, CHUNK)
        for first in firsts:
            chunk = range(first, min(first + CHUNK, seeds.stop))
            open_trials = [trial for trial in trials if trial.is_open()]
            found = self._find_together(open_trials, chunk)
            for seed in sorted(found):
                self._find_alone([trial for trial in open_trials if trial.is_open()], seed)
            for trial in open_trials:
                trial.tried += len(self._reached.runs_of(trial.mutant, chunk))
            left = sum(trial.is_open() for trial in trials)
            self._say(f"seeds {first:,} to {chunk.stop - 1:,}: {len(found)} found something, {left} mutants are left")

    def _find_together(self, trials: Sequence[Trial], seeds: range) -> set[int]:
        """Return the seeds that find something; those left out of one combination make another."""
        found: set[int] = set()
        rest = [trial.mutant for trial in trials]
        while rest:
            sources, left_out = combine(rest)
            runs: dict[int, str] = {}
            for mutant in rest:
                runs |= self._reached.runs_of(mutant, seeds) if mutant not in left_out else {}
            size = -(-len(runs) // self._processes) or 1
            ordered = sorted(runs.items())
            parts = [dict(ordered[at : at + size]) for at in range(0, len(ordered), size)]
            with ThreadPoolExecutor(self._processes) as pool:
                names = [f"together-{seeds.start}-{number}" for number in range(len(parts))]
                outcomes = pool.map(lambda name, part: self._run(sources, name, part), names, parts)  # noqa: B023
                found |= {int(seed) for outcome in outcomes for seed in outcome["found"]}
            rest = left_out
        return found

    def _find_alone(self, trials: Sequence[Trial], seed: int) -> None:
        def run(trial: Trial) -> None:
            mutant = trial.mutant
            runs = self._reached.runs_of(mutant, range(seed, seed + 1))
            if not runs:
                return
            outcome = self._run({mutant.module: mutant.mutated}, mutant.name, runs)
            trial.changed += len(outcome["changed"])
            if outcome["found"]:
                trial.finding, trial.seed = outcome["found"][str(seed)], seed
                self._keep(trial)
                self._say(f"seed {seed} finds {mutant.file}: {mutant.change[1][:60]}: {trial.finding[:90]}")

        with ThreadPoolExecutor(self._processes) as pool:
            list(pool.map(run, trials))

    def run_unit_tests(self, trials: Sequence[Trial]) -> None:
        """Run, with each mutant, the unit tests of its package, until one fails."""

        def run(trial: Trial) -> None:
            mutant = trial.mutant
            tests = f"tests/unit/{mutant.file.rpartition('/')[0]}"
            options = ["-m", "pytest", "-x", "-q", "-p", "replaced_modules", "-p", "no:cacheprovider"]
            process = self._start([*options, tests], {mutant.module: mutant.mutated}, mutant.name)
            failed = [line for line in process.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            trial.test = failed[0].split(" - ")[0].split(" ", 1)[1] if failed else None
            if process.returncode and not failed:
                trial.test = tests
            self._say(f"{mutant.file}: {mutant.change[1][:60]}: {trial.test or 'no unit test fails'}")

        with ThreadPoolExecutor(self._processes) as pool:
            list(pool.map(run, trials))

    def _run(
        self, sources: Mapping[str, str], name: str, runs: Mapping[int, str], *, is_first_enough: bool = False
    ) -> dict[str, Any]:
        if not runs:
            return {"changed": [], "found": {}}
        request = json.dumps({"runs": runs, "is_first_enough": is_first_enough})
        process = self._start([str(HERE / "run_seeds.py")], sources, name, request)
        if process.returncode:
            # A seed that does not end, or a mutant that ends the interpreter.
            said = process.stderr.strip().splitlines()[-1:]
            finding = f"the process ended with {process.returncode}: {' '.join(said)}"
            return {"changed": [], "found": dict.fromkeys(map(str, runs), finding)}
        return json.loads(process.stdout)

    def _start(
        self, arguments: Sequence[str], sources: Mapping[str, str], name: str, request: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with the modules of `sources` replaced."""
        files = {module: self._folder / f"{name}.{module}.py" for module in sources}
        for module, file in files.items():
            file.write_text(sources[module], encoding="utf-8")
        modules = json.dumps({module: str(file) for module, file in files.items()})
        environment = {**ENVIRONMENT, VARIABLE: modules}
        command = [sys.executable, *arguments]
        process = subprocess.run(
            command, env=environment, cwd=PROJECT, input=request, capture_output=True, text=True, check=False
        )
        for file in files.values():
            file.unlink()
        return process
