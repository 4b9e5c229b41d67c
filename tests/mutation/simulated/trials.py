"""Runs of seeds with mutants: each alone at first, then those that were not found together."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mutants import Mutant, combine
from reached import ENVIRONMENT, HERE, PROJECT, Reached, write
from replaced_modules import VARIABLE

# Seeds that mutants are run with together before those that were found are left out.
_TOGETHER = 40
_GROUPS = "together.json"
_TESTS_OF_CALLERS = ("tests/unit/cli", "tests/unit/adapters", "tests/contracts")
_ALL_TESTS = ("tests/unit/core", "tests/unit/usecases", *_TESTS_OF_CALLERS)
_PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider")


@dataclass
class Trial:
    """What came of a mutant."""

    mutant: Mutant
    tried: int = 0
    """Seeds that run its lines, of those that it was run with alone."""
    changed: int = 0
    """Seeds whose run went another way when it was alone."""
    alone: int = 0
    """The first seed that it was not run with alone."""
    finding: str | None = None
    seed: int | None = None
    """Of the finding."""
    test: str | None = None
    """A unit test that fails with it, "" if none does, None if they were not run."""

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

    def run_alone(self, trials: Sequence[Trial], seeds: int) -> None:
        """Run each mutant with `seeds` seeds at most; end with the first that finds it."""
        done: list[Trial] = []

        def run(trial: Trial) -> None:
            self._run_alone(trial, seeds)
            done.append(trial)
            mutant = trial.mutant
            came = trial.finding or f"not found by {trial.tried} seeds, {trial.changed} went another way"
            self._say(f"{len(done)} of {len(trials)} alone: {mutant.file}: {mutant.change[1][:60]}: {came[:90]}")

        with ThreadPoolExecutor(self._processes) as pool:
            list(pool.map(run, trials))

    def _run_alone(self, trial: Trial, seeds: int) -> None:
        if not trial.is_open() or trial.alone >= seeds:
            return
        mutant = trial.mutant
        runs = self._reached.runs_of(mutant, range(seeds))
        outcome = self._run({mutant.module: mutant.mutated}, mutant.name, runs, is_first_enough=True)
        trial.tried = len(runs)
        trial.changed = len(outcome["changed"])
        trial.alone = seeds
        for seed, finding in outcome["found"].items():
            trial.finding, trial.seed = finding, int(seed)
        self._keep(trial)

    def _load(self, mutant: Mutant) -> Trial:
        kept = self._folder / f"{mutant.name}.json"
        return Trial(mutant, **json.loads(kept.read_bytes())) if kept.exists() else Trial(mutant)

    def _keep(self, trial: Trial) -> None:
        values = {name: value for name, value in asdict(trial).items() if name != "mutant"}
        write(self._folder / f"{trial.mutant.name}.json", json.dumps(values).encode())

    def run_together(self, trials: Sequence[Trial], seeds: range) -> None:
        """Run all mutants at once; where a seed finds something, halve them until it is found which it finds.

        A mutant that would be seen only without the others is missed: what several change may make up for each other.
        Of mutants that a seed finds together, but none of them alone, one is run with another group from then on.
        """
        first, groups = self._load_groups(trials) or (seeds.start, [list(trials)])
        for start in range(first, seeds.stop, _TOGETHER):
            part = range(start, min(start + _TOGETHER, seeds.stop))
            groups = self._run_groups(groups, part)
            names = [[trial.mutant.name for trial in group] for group in groups]
            write(self._folder / _GROUPS, json.dumps({"stop": part.stop, "groups": names}).encode())
            self._say(f"seeds to {part.stop:,}: {sum(map(len, groups))} mutants are left, in {len(groups)} groups")

    def _load_groups(self, trials: Sequence[Trial]) -> tuple[int, list[list[Trial]]] | None:
        """Return the first seed that an interrupted run has not come to and its groups; None if there is none."""
        kept = self._folder / _GROUPS
        if not kept.exists():
            return None
        by_name, stored = {trial.mutant.name: trial for trial in trials}, json.loads(kept.read_bytes())
        groups = [[by_name[name] for name in group if name in by_name] for group in stored["groups"]]
        return (stored["stop"], groups) if sum(map(len, groups)) == len(by_name) else None

    def _run_groups(self, groups: Sequence[list[Trial]], seeds: range) -> list[list[Trial]]:
        """Return the mutants that none of the seeds finds, in groups of which it finds nothing together either."""
        waiting, kept = deque(groups), list[list[Trial]]()
        while waiting:
            group, aside = self._run_group(waiting.popleft(), seeds)
            kept += [group] if group else []
            if aside:
                waiting.appendleft([*waiting.popleft(), *aside] if waiting else aside)
        return kept

    def _run_group(self, group: list[Trial], seeds: range) -> tuple[list[Trial], list[Trial]]:
        """Return what is left of a group, and those that do not go with it."""
        aside: list[Trial] = []
        while group and (found := self._find_together(group, seeds)):
            seed = min(found)
            if not self._find_culprits(group, seed, found[seed]):
                aside.append(self._find_conflicting(group, seed))
            group = [trial for trial in group if trial.is_open() and trial not in aside]
            seeds = range(seed, seeds.stop)
        return group, aside

    def _find_conflicting(self, group: Sequence[Trial], seed: int) -> Trial:
        """Return the last of the shortest beginning of a group of which a seed finds something."""
        shortest, longest = 1, len(group)
        while shortest < longest:
            middle = (shortest + longest) // 2
            if self._find_together(group[:middle], range(seed, seed + 1)):
                longest = middle
            else:
                shortest = middle + 1
        return group[longest - 1]

    def _find_culprits(self, group: Sequence[Trial], seed: int, finding: str) -> list[Trial]:
        """Record and return those of a group, of which the seed finds something, that it finds in ever smaller ones."""
        if len(group) == 1:
            (trial,) = group
            trial.finding, trial.seed = finding, seed
            self._keep(trial)
            self._say(f"seed {seed} finds {trial.mutant.file}: {trial.mutant.change[1][:60]}: {finding[:90]}")
            return [trial]
        outcomes = [(half, self._find_together(half, range(seed, seed + 1))) for half in _halves(group)]
        return [each for half, found in outcomes if found for each in self._find_culprits(half, seed, found[seed])]

    def _find_together(self, group: Sequence[Trial], seeds: range) -> dict[int, str]:
        """Return what the seeds find; mutants left out of one combination make another."""
        found: dict[int, str] = {}
        mutants = [trial.mutant for trial in group]
        while mutants:
            sources, mutants = combine(mutants)
            parts = [dict.fromkeys(seeds[number :: self._processes], "") for number in range(self._processes)]
            names = [f"together-{number}" for number in range(len(parts))]
            with ThreadPoolExecutor(self._processes) as pool:
                for outcome in pool.map(partial(self._run, sources), names, parts):
                    found |= {int(seed): finding for seed, finding in outcome["found"].items()}
        return found

    def run_unit_tests(self, mutants: Sequence[Mutant]) -> list[Trial]:
        """Run, with each mutant, the unit tests of its package, then those of its callers, until one fails.

        Tests that fail without a mutant, for something that this machine lacks, are left out.
        """
        trials = list(map(self._load, mutants))
        untested = [trial for trial in trials if trial.test is None]
        if not untested:
            return trials
        self._say("running the unit tests without a mutant")
        with ThreadPoolExecutor(self._processes) as pool:
            failing = [test for found in pool.map(self._find_failing, _ALL_TESTS) for test in found]
        self._say(f"{len(failing)} fail without a mutant, and are left out: {', '.join(failing)[:200]}")

        def run(trial: Trial) -> None:
            folders = (f"tests/unit/{trial.mutant.file.rpartition('/')[0]}", *_TESTS_OF_CALLERS)
            failures = (self._run_tests(trial.mutant, folder, failing) for folder in folders)
            trial.test = next((failure for failure in failures if failure), "")
            self._keep(trial)
            self._say(f"{trial.mutant.file}: {trial.mutant.change[1][:60]}: {trial.test or 'no unit test fails'}")

        with ThreadPoolExecutor(self._processes) as pool:
            list(pool.map(run, untested))
        return trials

    def _find_failing(self, folder: str) -> list[str]:
        """Return the tests of a folder that fail without a mutant."""
        process = self._start([*_PYTEST, folder], {}, "")
        return _failed(process.stdout)

    def _run_tests(self, mutant: Mutant, folder: str, left_out: Sequence[str]) -> str | None:
        """Return the first test that fails, None if all pass."""
        options = ["-x", "-p", "replaced_modules", *(f"--deselect={test}" for test in left_out)]
        process = self._start([*_PYTEST, *options, folder], {mutant.module: mutant.mutated}, mutant.name)
        failed = _failed(process.stdout)
        if failed:
            return failed[0]
        return folder if process.returncode else None

    def _run(
        self, sources: Mapping[str, str], name: str, runs: Mapping[int, str], *, is_first_enough: bool = False
    ) -> dict[str, Any]:
        if not runs:
            return {"changed": [], "found": {}}
        quiet = self._reached.quiet if is_first_enough else []
        request = json.dumps({"runs": runs, "quiet": quiet, "is_first_enough": is_first_enough})
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


def _failed(output: str) -> list[str]:
    """Return the tests that failed, by what pytest prints."""
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return [line.split(" - ")[0].split(" ", 1)[1] for line in lines]


def _halves(trials: Sequence[Trial]) -> tuple[Sequence[Trial], Sequence[Trial]]:
    middle = len(trials) // 2
    return trials[:middle], trials[middle:]
