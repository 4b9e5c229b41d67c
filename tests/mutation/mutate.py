"""Plant errors in the core, one at a time, and count those that its tests find: `make mutate MODULES="launching fit"`.

mutmut knows a module by its path from where it runs, so it runs in a folder in which the package lies at the top. What
it made stays there: `mutmut results`, `mutmut show NAME` and `mutmut browse` in that folder tell what was not found.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from mutmut.stats import status_by_exit_code

LEAST_FOUND_PERCENT = 90
LEAST_FOUND_PERCENT_OF_A_MODULE = 80

PROJECT = Path(__file__).resolve().parents[2]
CORE = PROJECT / "layers" / "relaunch" / "relaunch" / "core"
WORKSPACE = PROJECT / ".cache" / "mutation"
CONTENT = {
    "relaunch": PROJECT / "layers" / "relaunch" / "relaunch",
    "tests": PROJECT / "tests",
    "events": PROJECT / "events",
    "infrastructure": PROJECT / "infrastructure",
    "pyproject.toml": PROJECT / "pyproject.toml",
}
FOUND = ("killed", "timeout")


def main() -> None:
    """Run mutmut on the named modules, or all; end non-zero when too little was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="of the core, without .py; all when none is named")
    parser.add_argument("--children", type=int, default=os.cpu_count(), help="how many errors are tried at a time")
    arguments = parser.parse_args()
    unknown = [module for module in arguments.modules if not list(CORE.glob(f"*/{module}.py"))]
    if unknown:
        parser.error(f"the core has no module {', '.join(unknown)}")
    lay_out_workspace()
    plant(arguments.modules, arguments.children)
    sys.exit(report(count_by_module(arguments.modules)))


def lay_out_workspace() -> None:
    """Make the folder anew: results of older code or tests would stand as if they were of these."""
    shutil.rmtree(WORKSPACE, ignore_errors=True)
    WORKSPACE.mkdir(parents=True)
    for name, content in CONTENT.items():
        (WORKSPACE / name).symlink_to(content)


def plant(modules: list[str], children: int) -> None:
    """Let mutmut plant the errors and run, for each, the tests that pass through the function it is in.

    Raises:
        SystemExit: mutmut could not run, most often because the tests fail without any error planted; it has said why.
    """
    command = [Path(sys.executable).with_name("mutmut"), "run", "--max-children", str(children)]
    command += [f"relaunch.core.*.{module}.*" for module in modules]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "mutation"}
    with subprocess.Popen(command, cwd=WORKSPACE, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if line.startswith("Mutant results"):
                break
            sys.stdout.write(f"\r{line.rstrip()}" if line.strip() else "")
            sys.stdout.flush()
        process.communicate()
    sys.stdout.write("\n")
    if process.returncode:
        sys.exit(process.returncode)


def count_by_module(modules: list[str]) -> dict[str, Counter[str]]:
    """Return, by module, how many errors came to which end."""
    counts = {}
    for file in sorted((WORKSPACE / "mutants" / "relaunch" / "core").rglob("*.py.meta")):
        module, package = file.name.removesuffix(".py.meta"), file.parent.name
        exit_codes = json.loads(file.read_text())["exit_code_by_key"].values()
        if exit_codes and module in (modules or [module]):
            counts[f"{package}.{module}"] = Counter(status_by_exit_code[code] for code in exit_codes)
    return counts


def report(counts: dict[str, Counter[str]]) -> int:
    """Print the table and return the exit status: 1 when less was found than is asked."""
    print(f"{'module':<32} planted found survived others  found %")
    for module, count in counts.items():
        print_row(module, count)
    total = sum(counts.values(), Counter())
    print_row("all", total)
    weak = [name for name, count in counts.items() if percent_found(count) < LEAST_FOUND_PERCENT_OF_A_MODULE]
    if weak:
        print(f"less than {LEAST_FOUND_PERCENT_OF_A_MODULE} % found: {', '.join(weak)}")
    if percent_found(total) < LEAST_FOUND_PERCENT:
        print(f"less than {LEAST_FOUND_PERCENT} % found of all")
    return int(bool(weak) or percent_found(total) < LEAST_FOUND_PERCENT)


def print_row(name: str, count: Counter[str]) -> None:
    """Print one module: what ran out of time is found too; no test passes through most of the others."""
    found = sum(count[status] for status in FOUND)
    others = count.total() - found - count["survived"]
    print(f"{name:<32} {count.total():>7} {found:>5} {count['survived']:>8} {others:>6} {percent_found(count):>8.1f}")


def percent_found(count: Counter[str]) -> float:
    """Return how many percent of what was planted was found."""
    return 100 * sum(count[status] for status in FOUND) / count.total()


if __name__ == "__main__":
    main()
