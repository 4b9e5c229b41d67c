"""The command, installed from its wheel into an environment of its own, as pipx does it, without a package index.

What the wheel requires is linked from the environment of the tests, which has the same versions; nothing else of that
environment can be imported.
"""

import subprocess
import sys
import venv
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fakes.repository import REPOSITORY


@dataclass(frozen=True)
class InstalledCommand:
    """An environment with the command, and the wheel that it is installed from."""

    folder: Path
    wheel: Path

    @property
    def program(self) -> Path:
        return self.folder / "bin" / "relaunch"

    @property
    def packages(self) -> Path:
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found


def install(folder: Path) -> InstalledCommand:
    """Build the wheel and install it into a new environment in a folder."""
    _run("hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    installed = InstalledCommand(folder / "environment", wheel)
    venv.EnvBuilder(symlinks=True).create(installed.folder)
    python = str(installed.folder / "bin" / "python")
    _run("pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel))
    (own,) = metadata.distributions(path=[str(installed.packages)])
    for name in required_by(own):
        _link(metadata.distribution(name), installed.packages)
    return installed


def required_by(distribution: metadata.Distribution) -> set[str]:
    """Return the names of the distributions that one requires on this interpreter, and of those that they require."""
    names: set[str] = set()
    waiting = [distribution]
    while waiting:
        for requirement in map(Requirement, waiting.pop().requires or ()):
            name = canonicalize_name(requirement.name)
            if name not in names and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
                names.add(name)
                waiting.append(metadata.distribution(name))
    return names


def _link(distribution: metadata.Distribution, packages: Path) -> None:
    """Link what a distribution has at the top, but for compiled modules there, and programs."""
    tops = {file.parts[0] for file in distribution.files or ()} - {"__pycache__", ".."}
    for top in tops:
        (packages / top).symlink_to(Path(str(distribution.locate_file(top))).resolve())


def _run(module: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
