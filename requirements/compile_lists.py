"""Compile the lists of required packages: exact versions of everything they depend on, with the hashes of all files.

`make requirements` runs this with uv (requirements/compile.in) in its environment; it needs a package index. A compiled
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

    Paths start at the repository. A list is a file with one requirement a line, or the project with its extra `dev`.
    """

    source: str
    compiled: str
    same_versions_as: str | None = None


LAYER = "layers/dependencies/requirements.txt"
KUBERNETES_LAYER = "layers/kubernetes/requirements"
_OF_SYSTEM = "layers/dependencies/requirements-amazon-linux"
DEVELOPMENT = "requirements/dev.txt"

# In this order: the tests run with the versions of the layer, and mutmut is installed beside them.
LISTS = (
    RequirementList("layers/dependencies/requirements.in", LAYER),
    RequirementList(f"{_OF_SYSTEM}-2.in", f"{_OF_SYSTEM}-2.txt"),
    RequirementList(f"{_OF_SYSTEM}-2023.in", f"{_OF_SYSTEM}-2023.txt"),
    RequirementList(f"{KUBERNETES_LAYER}.in", f"{KUBERNETES_LAYER}.txt", LAYER),
    RequirementList("pyproject.toml", DEVELOPMENT, LAYER),
    RequirementList("requirements/mutate.in", "requirements/mutate.txt", DEVELOPMENT),
    RequirementList("requirements/pytorch.in", "requirements/pytorch.txt", DEVELOPMENT),
    RequirementList("requirements/trainers.in", "requirements/trainers.txt", DEVELOPMENT),
    RequirementList("examples/train/requirements.in", "examples/train/requirements.txt", LAYER),
    RequirementList("requirements/sam.in", "requirements/sam.txt"),
    RequirementList("requirements/emulator.in", "requirements/emulator.txt"),
    RequirementList("requirements/bench.in", "requirements/bench.txt"),
    RequirementList("requirements/bench-peers.in", "requirements/bench-peers.txt"),
    RequirementList("requirements/bench-kubernetes.in", "requirements/bench-kubernetes.txt"),
    RequirementList("requirements/workflows.in", "requirements/workflows.txt"),
    RequirementList("requirements/checkov.in", "requirements/checkov.txt"),
    RequirementList("requirements/audit.in", "requirements/audit.txt"),
    RequirementList("requirements/compile.in", "requirements/compile.txt"),
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
    command: list[str | Path] = [Path(sys.executable).with_name("uv"), "pip", "compile", each.source]
    if each.source == "pyproject.toml":
        command += ["--extra", "dev"]
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
