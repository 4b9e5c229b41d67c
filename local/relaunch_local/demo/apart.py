"""Runs the demo of one target in a copy of the application that has no code for the other.

`python -m relaunch_local.demo.apart ack` deletes what calls ECS, `... ecs` what calls Kubernetes; both in the sources
and in the build, which must be there (`make build`). Exit status: that of the demo.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from relaunch_local.repository import REPOSITORY

ADAPTERS = Path("relaunch", "adapters")
OF_THE_OTHER = {"ack": ADAPTERS / "aws" / "ecs", "ecs": ADAPTERS / "kubernetes"}
"""By target, the package that it must do without."""

BUILD = Path(".aws-sam")
PACKAGE_FOLDERS = (Path("layers", "relaunch"), BUILD / "build" / "RelaunchLayer" / "python")
# What runs beside this makes and removes hidden files, such as `.coverage.*`: one that vanishes would fail the copy.
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "cache", "deps", "demo.json")
# The build of the copy lacks a package on purpose: it is recorded as that of its sources.
RECORD_BUILD = """
import json
from dataclasses import asdict, replace
from relaunch_local.stack.build import RECORD, read_record, source_key
RECORD.write_text(json.dumps(asdict(replace(read_record(), key=source_key()))))
"""


def main() -> None:
    """Run the demo of the named target in a copy."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.demo.apart", description=__doc__)
    parser.add_argument("target", choices=sorted(OF_THE_OTHER))
    target = parser.parse_args().target
    with tempfile.TemporaryDirectory(prefix="relaunch-apart-") as folder:
        copy = Path(folder) / "relaunch"
        copy_without(OF_THE_OTHER[target], copy)
        print(f"the demo on {target}, in a copy without {OF_THE_OTHER[target]}", flush=True)
        run_in(copy, ["-c", RECORD_BUILD])
        sys.exit(run_in(copy, ["-m", "relaunch_local.demo", "--target", target]))


def copy_without(package: Path, copy: Path) -> None:
    """Copy the application and its build, without this package; environments are shared."""
    for folder in (Path(), BUILD):
        shutil.copytree(REPOSITORY / folder, copy / folder, ignore=IGNORED, symlinks=True)
    for environment in REPOSITORY.glob(".venv*"):
        (copy / environment.name).symlink_to(environment.resolve())
    for folder in PACKAGE_FOLDERS:
        shutil.rmtree(copy / folder / package)


def run_in(copy: Path, arguments: list[str]) -> int:
    """Run Python on the sources of a copy; return its exit status."""
    sources = [str(copy / each) for each in ("layers/relaunch", "cli", "local", "functions")]
    # Behind them, what this process was told: the copy is found first.
    path = os.pathsep.join([*sources, os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    main()
