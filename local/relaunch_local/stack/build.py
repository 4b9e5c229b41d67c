"""Builds the application with SAM when something in it has changed; on the standard library, for `make build`."""

import argparse
import fcntl
import hashlib
import json
import os
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
    """What lies in the build folder: the key of its sources, and what they were compiled for."""

    key: str
    runtime: str
    architecture: str


@dataclass(frozen=True)
class BuildRequest:
    """What to build with: SAM CLI, an interpreter, and the Runtime and architecture it is to be built for."""

    sam: Path
    interpreter: Path
    runtime: str
    architecture: str


class NotBuiltError(Exception):
    """There is no finished build in the build folder."""


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m relaunch_local.stack.build", description=__doc__)
    parser.add_argument("--sam", type=Path, required=True, help="SAM CLI's command")
    parser.add_argument("--interpreter", type=Path, required=True, help="compiles the bytecode")
    parser.add_argument("--runtime", required=True, help="Lambda's name of that interpreter, as python3.13")
    parser.add_argument("--architecture", default="x86_64", choices=["x86_64", "arm64"])
    arguments = parser.parse_args()
    build(BuildRequest(arguments.sam.absolute(), arguments.interpreter, arguments.runtime, arguments.architecture))


def build(request: BuildRequest) -> None:
    """Run `sam build` unless the build folder holds this already.

    Raises:
        SystemExit: the build failed; what it said has been printed.
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
    """Tell what the build folder holds.

    Raises:
        NotBuiltError: nothing, half of something, or an application that has changed since.
    """
    record = read_record()
    if record is None:
        raise NotBuiltError("the application is not built: run `make build`")
    if record.key != source_key():
        raise NotBuiltError("the application has changed since it was built: run `make build`")
    return record


def read_record() -> BuiltApplication | None:
    """Read what the last finished build wrote down; None while there is none."""
    if not RECORD.is_file() or not (BUILD / "template.yaml").is_file():
        return None
    return BuiltApplication(**json.loads(RECORD.read_text()))


def source_key() -> str:
    """Name the content of everything that is built."""
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
    """Hold the build folder: LOCK_EX to write it, LOCK_SH to deploy from it. The lock ends with its holder."""
    LOCK.parent.mkdir(parents=True, exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, mode)
        yield


def run_sam_build(request: BuildRequest) -> None:
    """Run SAM, and show what it says only when it fails."""
    environment = {
        **os.environ,
        "SAM_CLI_TELEMETRY": "0",
        "PYTHON": str(request.interpreter),
        "RUNTIME": request.runtime,
        "ARCHITECTURE": request.architecture,
        # The interpreter at hand may have no pip; the one beside SAM CLI has.
        "PIP": f"{request.sam.parent / 'python'} -m pip",
    }
    command = [
        str(request.sam),
        "build",
        "--parameter-overrides",
        f"Runtime={request.runtime}",
        f"Architecture={request.architecture}",
    ]
    result = subprocess.run(
        command,
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
