"""`python reach.py FIRST SEEDS`: which lines of the core and the use cases each seed runs, and what came of the seed.

A seed that does not run a mutated line has the same run with the mutant as without it: it need not be run.
"""

import importlib
import json
import pkgutil
import sys
from collections import defaultdict
from functools import _lru_cache_wrapper

import coverage
from fingerprint import fingerprint

import relaunch.core
import relaunch.usecases

PACKAGES = (relaunch.core, relaunch.usecases)
_ONCE = "once"


def main(first: int, seeds: int) -> None:
    """Print a JSON object: `runs` (fingerprint) and `steps` by seed; `lines`: seeds by file and line, null for all."""
    names = [package.__name__ for package in PACKAGES]
    # Functions of the simulation are greenlets.
    measured = coverage.Coverage(source=names, concurrency="greenlet", data_file=None, config_file=False)
    measured.start()
    # What runs at import, or once in a process, decides in every seed.
    for name in list(sys.modules):
        if name.partition(".")[0] in {"relaunch", "relaunch_local"}:
            del sys.modules[name]
    modules = [importlib.import_module(name) for name in _module_names()]
    _forget_caches(modules)
    run_seed = importlib.import_module("relaunch_local.simulation.run").run_seed
    measured.switch_context(_ONCE)
    run_seed(first)
    runs = {}
    steps = {}
    for seed in range(first, first + seeds):
        measured.switch_context(str(seed))
        result = run_seed(seed)
        runs[seed] = fingerprint(result)
        steps[seed] = result.steps
    measured.stop()
    json.dump({"runs": runs, "steps": steps, "lines": _lines(measured.get_data(), str(first))}, sys.stdout)


def _module_names() -> list[str]:
    return [
        each.name for package in PACKAGES for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]


def _forget_caches(modules: list) -> None:
    for module in modules:
        for name, function in vars(module).items():
            if isinstance(function, _lru_cache_wrapper):
                setattr(module, name, function.__wrapped__)


def _lines(data: coverage.CoverageData, first: str) -> dict[str, dict[int, list[int] | None]]:
    lines: dict[str, dict[int, list[int] | None]] = defaultdict(dict)
    for file in data.measured_files():
        name = file.partition("/relaunch/relaunch/")[2]
        for line, contexts in data.contexts_by_lineno(file).items():
            is_once = "" in contexts or (_ONCE in contexts and first not in contexts)
            lines[name][line] = None if is_once else sorted(int(each) for each in contexts if each != _ONCE)
    return lines


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
