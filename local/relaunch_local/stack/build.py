"""Builds the application with SAM if its sources have changed. Imports the standard library only, for `make build`."""

import argparse
import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from relaunch_local.repository import REPOSITORY

BUILD = REPOSITORY / ".aws-sam" / "build"
RECORD = REPOSITORY / ".aws-sam" / "relaunch-build.json"
LOCK = REPOSITORY / ".cache" / "build.lock"

SOURCES = ("template.yaml", "functions", "layers")


@dataclass(frozen=True)
class BuiltApplication:
    """The content of the build folder: a hash of its sources, and what they were compiled for."""

    key: str
    runtime: str
    architecture: str


@dataclass(frozen=True)
class BuildRequest:
    """The arguments of a build: SAM CLI, an interpreter, Lambda's Runtime and architecture."""

    sam: Path
    interpreter: Path
    runtime: str
    architecture: str


class NotBuiltError(Exception):
    """The build folder has no complete build of the current sources."""


def main() -> None:
    """Build with the arguments of the command line."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.stack.build", description=__doc__)
    parser.add_argument("--sam", type=Path, required=True, help="SAM CLI's command")
    parser.add_argument("--interpreter", type=Path, required=True, help="compiles the bytecode")
    parser.add_argument("--runtime", required=True, help="Lambda's name of that interpreter, as python3.13")
    parser.add_argument("--architecture", default="x86_64", choices=["x86_64", "arm64"])
    arguments = parser.parse_args()
    build(BuildRequest(arguments.sam.absolute(), arguments.interpreter, arguments.runtime, arguments.architecture))


def build(request: BuildRequest) -> None:
    """Run `sam build` unless the build folder is up to date.

    Raises:
        SystemExit: the build failed; its output has been printed.
    """
    wanted = BuiltApplication(source_key(), request.runtime, request.architecture)
    with locked(fcntl.LOCK_EX):
        if read_record() == wanted:
            return
        print(f"building the application for {request.runtime} on {request.architecture}", file=sys.stderr, flush=True)
        RECORD.unlink(missing_ok=True)
        run_sam_build(request)
        RECORD.write_text(json.dumps(asdict(wanted)))


def built_application() -> BuiltApplication:
    """Return what is in the build folder.

    Raises:
        NotBuiltError: there is no complete build, or the sources have changed since.
    """
    record = read_record()
    if record is None:
        raise NotBuiltError("the application is not built: run `make build`")
    if record.key != source_key():
        raise NotBuiltError("the application has changed since it was built: run `make build`")
    return record


def read_record() -> BuiltApplication | None:
    """Return the record of the last complete build, or None."""
    if not RECORD.is_file() or not (BUILD / "template.yaml").is_file():
        return None
    return BuiltApplication(**json.loads(RECORD.read_text()))


def source_key() -> str:
    """Return a hash of all sources."""
    digest = hashlib.sha256()
    for source in SOURCES:
        root = REPOSITORY / source
        for file in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(REPOSITORY)}\0".encode())
                digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@contextmanager
def locked(mode: int) -> Iterator[None]:
    """Lock the build folder: LOCK_EX to build, LOCK_SH to deploy. The lock ends with the process."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, mode)
        yield


def run_sam_build(request: BuildRequest) -> None:
    """Run `sam build`; print its output only if it fails."""
    environment = {
        **os.environ,
        "SAM_CLI_TELEMETRY": "0",
        "PYTHON": shlex.quote(str(request.interpreter)),
        "RUNTIME": request.runtime,
        "ARCHITECTURE": request.architecture,
        # The given interpreter may have no pip; SAM CLI's environment has one.
        "PIP": f"{request.sam.parent / 'python'} -m pip",
    }
    overrides = [f"Runtime={request.runtime}", f"Architecture={request.architecture}"]
    result = subprocess.run(
        [request.sam, "build", "--parameter-overrides", *overrides],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        raise SystemExit("sam build failed (see above)")


if __name__ == "__main__":
    main()
