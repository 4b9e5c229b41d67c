"""Build a virtual environment if it is missing, incomplete or out of date.

The Makefile calls this before anything is installed, so only the standard library is used:
`python requirements/build_environment.py FOLDER [--requirement FILE]... [--project]`
"""

import argparse
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Sequence
from pathlib import Path

STAMP = "complete"
# What this program has made, also if it did not end: nobody else's folder is replaced.
MARK = "made-by-make"
PROJECT_FILE = Path(__file__).resolve().parents[1] / "pyproject.toml"


def main() -> None:
    """Build the environment unless it was built from the same files with the same interpreter."""
    arguments = parse_arguments()
    key = environment_key(arguments)
    stamp = arguments.folder / STAMP
    if is_built(stamp, key):
        return
    # A second `make` waits here, and then finds the environment complete. The lock ends with the process.
    with arguments.folder.with_name(arguments.folder.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_built(stamp, key):
            return
        sys.stderr.write(f"{arguments.folder}: installing (once; a minute or two)\n")
        build(arguments)
        stamp.write_text(key)


def parse_arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requirement", type=Path, action="append", default=[], help="a file of versions and hashes")
    parser.add_argument("--project", action="store_true", help="install this project too, editable")
    return parser.parse_args()


def environment_key(arguments: argparse.Namespace) -> str:
    """Return a hash of the interpreter, the requirement files and the project's metadata.

    An interpreter of a virtual environment counts as the one it was made with, so that it does not matter which of them
    is first on PATH.
    """
    digest = hashlib.sha256(f"{sys.version} {sys.base_prefix}".encode())
    for file in arguments.requirement:
        digest.update(file.read_bytes())
    if arguments.project:
        project = tomllib.loads(PROJECT_FILE.read_text())
        digest.update(repr((project["project"], project["build-system"])).encode())
    return digest.hexdigest()


def is_built(stamp: Path, key: str) -> bool:
    """Return whether the environment is complete and has this key."""
    return stamp.is_file() and stamp.read_text() == key


def build(arguments: argparse.Namespace) -> None:
    """Create the environment; it is complete once its stamp is written, last.

    Raises:
        SystemExit: pip failed, which has printed its error; or the folder is somebody else's.
    """
    folder: Path = arguments.folder
    if folder.exists():
        if not any((folder / name).exists() for name in (MARK, STAMP)):
            raise SystemExit(f"{folder}: is there, and was not made by make: move it away, or remove it")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    venv.create(folder, with_pip=bool(arguments.requirement or arguments.project), symlinks=True)
    if arguments.requirement:
        install_listed(folder, arguments.requirement)
    if arguments.project:
        # Its dependencies and the build tool that pyproject.toml names are among the requirements.
        install(folder, "--no-deps", "--no-build-isolation", "--editable", PROJECT_FILE.parent)


def install_listed(folder: Path, files: Sequence[Path]) -> None:
    """Install what files of versions and hashes list, in an environment.

    Raises:
        SystemExit: pip failed, which has printed its error: a package is listed without its hash, or has to be built.
    """
    # The files list all dependencies (pip would resolve extras anew, without hashes), and what has to be built is
    # refused: build tools would be installed without hashes.
    named = [part for file in files for part in ("--requirement", file)]
    install(folder, "--require-hashes", "--no-deps", "--only-binary=:all:", *named)


def install(folder: Path, *arguments: str | Path) -> None:
    """Run `pip install` in an environment.

    Raises:
        SystemExit: pip failed; it has printed its error.
    """
    # Python compiles what it imports, which is a small part of what is installed: 25 instead of 39 processor seconds.
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    command = [folder / "bin" / "python", "-m", "pip", "install", *options, *arguments]
    try:
        subprocess.run(command, check=True)  # noqa: S603 - arguments of our own Makefile
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{folder}: pip could not install it (see above)") from error


if __name__ == "__main__":
    main()
