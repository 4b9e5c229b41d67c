"""Compile the lists of required packages: exact versions of everything they depend on, with the hashes of all files.

`make requirements` runs this with uv (the group `compile`) in its environment; it needs a package index. A compiled
file holds for Python 3.11 to 3.13 on every platform: markers tell where a package is left out. Versions that a compiled
file has stay as long as its list allows them; `--upgrade` takes the newest ones.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
OLDEST_PYTHON = "3.11"


@dataclass(frozen=True)
class RequirementList:
    """A list of required packages, the file it is compiled to, and the compiled file whose versions it has to share.

    Paths start at the repository. A list is a file with one requirement a line, or a group of pyproject.toml (PEP 735).
    """

    source: str
    """The path of a file, or PROJECT, a colon and the name of a group."""
    compiled: str
    same_versions_as: str | None = None


PROJECT = "pyproject.toml"
LAYER = "layers/dependencies/requirements.txt"
KUBERNETES_LAYER = "layers/kubernetes/requirements"
_OF_SYSTEM = "layers/dependencies/requirements-amazon-linux"
DEVELOPMENT = "requirements/dev.txt"


def _group(name: str, same_versions_as: str | None = None) -> RequirementList:
    return RequirementList(f"{PROJECT}:{name}", f"requirements/{name}.txt", same_versions_as)


# In this order: the tests run with the versions of the layer, and mutmut is installed beside them.
LISTS = (
    RequirementList("layers/dependencies/requirements.in", LAYER),
    RequirementList(f"{_OF_SYSTEM}-2.in", f"{_OF_SYSTEM}-2.txt"),
    RequirementList(f"{_OF_SYSTEM}-2023.in", f"{_OF_SYSTEM}-2023.txt"),
    RequirementList(f"{KUBERNETES_LAYER}.in", f"{KUBERNETES_LAYER}.txt", LAYER),
    _group("dev", LAYER),
    _group("mutate", DEVELOPMENT),
    _group("browser", DEVELOPMENT),
    _group("pytorch", DEVELOPMENT),
    _group("trainers", DEVELOPMENT),
    RequirementList("examples/train/requirements.in", "examples/train/requirements.txt", LAYER),
    *map(_group, ("sam", "emulator", "bench", "bench-peers", "bench-kubernetes", "workflows", "checkov", "audit")),
    _group("compile"),
)


def main() -> None:
    """Compile all lists."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that the lists allow")
    arguments = parser.parse_args()
    for each in LISTS:
        command = compile_command(each, upgrade=arguments.upgrade)
        if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:  # noqa: S603 - our own arguments
            raise SystemExit(f"{each.compiled}: uv could not compile it (see above)")


def compile_command(each: RequirementList, *, upgrade: bool) -> Sequence[str | Path]:
    """Return the command line of uv that compiles one list."""
    command: list[str | Path] = [Path(sys.executable).with_name("uv"), "pip", "compile"]
    if each.compiled == DEVELOPMENT:
        # With what the project itself requires.
        command += [PROJECT]
    command += ["--group", each.source] if each.source.startswith(PROJECT) else [each.source]
    if each.same_versions_as:
        command += ["--constraint", each.same_versions_as]
    if upgrade:
        command += ["--upgrade"]
    # Wheels only: a package that has to be built would bring build tools that no hash is known of.
    command += ["--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes", "--only-binary", ":all:"]
    # uv would else take the .venv of the folder for the interpreter, and name its own command line in the file.
    command += ["--python", sys.executable, "--custom-compile-command", "make requirements"]
    # No address of an index, whoever compiles.
    command += ["--no-emit-index-url", "--no-emit-find-links", "--quiet", "--output-file", each.compiled]
    return command


if __name__ == "__main__":
    main()
