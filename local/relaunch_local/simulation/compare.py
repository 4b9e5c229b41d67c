"""`python -m relaunch_local.simulation.compare REVISION`: whether the application does what it did at a revision.

A seed has one trace: each write of a job or machine, each event of ECS and EC2, each fault, with its time. A change of
structure leaves all traces as they were, but for the words that it renames, which `renames.toml` lists.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[3]
_ROOMS = ("layers/relaunch", "local", "cli", "functions", "tests", ".")
_RENAMES = Path(__file__).with_name("renames.toml")
_CONTEXT = 3
_SHOWN_SEEDS = 5

# Runs in either tree, so that it asks of that tree's simulation only what has long been there.
_RUN = """
import gc, hashlib, json, multiprocessing, re, sys
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.run import run_seed

asked = json.loads(sys.argv[1])

def trace(seed):
    result = run_seed(seed, Options(trace=True))
    text = "\\n".join((*result.trace, *result.violations))
    for old, new in asked["renames"].items():
        text = re.sub(rf"(?<![\\w-]){re.escape(old)}(?![\\w-])", new, text)
    return seed, text if asked["whole"] else hashlib.sha256(text.encode()).hexdigest()

gc.freeze()
gc.set_threshold(50_000, 20, 50)
with multiprocessing.get_context("fork").Pool(asked["processes"]) as pool:
    for found in pool.imap_unordered(trace, asked["seeds"], chunksize=5):
        print(json.dumps(found), flush=True)
"""


def main() -> int:
    """Run the command; return 1 if a trace differs."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.simulation.compare", description=__doc__)
    parser.add_argument("revision", help="the commit to compare the working tree with")
    parser.add_argument("--seeds", type=int, default=500, help="number of seeds (default: 500)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count() or 1, help="number of processes, of which each tree has half"
    )
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        _git("worktree", "add", "--quiet", "--detach", str(before), arguments.revision)
        try:
            renames = tomllib.loads(_RENAMES.read_text(encoding="utf-8"))["words"]
            processes = max(arguments.processes // 2, 1)
            differing = compare(before, _PROJECT, seeds, renames=renames, processes=processes)
        finally:
            _git("worktree", "remove", "--force", str(before))
    print(f"{len(seeds)} seeds, {len(differing)} of them with another trace than at {arguments.revision}")
    return 1 if differing else 0


def compare(
    before: Path,
    after: Path,
    seeds: Sequence[int],
    *,
    renames: Mapping[str, str],
    processes: int = 1,
    report: Callable[[str], None] = print,
) -> Sequence[int]:
    """Return the seeds whose traces differ between two trees, and report where the first of them do.

    Raises:
        subprocess.CalledProcessError: the simulation of a tree ended with an error.
    """

    def run(chosen: Sequence[int], *, whole: bool) -> tuple[Mapping[int, str], Mapping[int, str]]:
        asked = {"seeds": list(chosen), "processes": processes, "whole": whole}
        with ThreadPoolExecutor(2) as pool:
            old = pool.submit(_run_in, before, {**asked, "renames": renames})
            new = pool.submit(_run_in, after, {**asked, "renames": {}})
            return old.result(), new.result()

    old, new = run(seeds, whole=False)
    differing = [seed for seed in seeds if old[seed] != new[seed]]
    if differing:
        shown = differing[:_SHOWN_SEEDS]
        old, new = run(shown, whole=True)
        for seed in shown:
            report(describe_difference(seed, old[seed].splitlines(), new[seed].splitlines()))
    return differing


def describe_difference(seed: int, old: Sequence[str], new: Sequence[str]) -> str:
    """Return the first line in which two traces differ, in both, after the lines that they share."""
    pairs = zip(old, new, strict=False)
    at = next((number for number, (one, other) in enumerate(pairs) if one != other), min(len(old), len(new)))
    shared = [f"  {line}" for line in old[max(at - _CONTEXT, 0) : at]]
    first = [
        f"{sign} {lines[at]}" if at < len(lines) else f"{sign} (the end)" for sign, lines in (("-", old), ("+", new))
    ]
    return "\n".join((f"seed {seed}, line {at + 1}:", *shared, *first))


def _run_in(tree: Path, asked: Mapping[str, object]) -> Mapping[int, str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / room) for room in _ROOMS)}
    command = [sys.executable, "-c", _RUN, json.dumps(asked)]
    done = subprocess.run(command, cwd=tree, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return {int(seed): text for seed, text in map(json.loads, done.stdout.splitlines())}


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=_PROJECT, check=True)


if __name__ == "__main__":
    sys.exit(main())
