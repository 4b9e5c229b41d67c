"""Runs the demo as a process, and observes the processes, folders and ports that it uses."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

PROC = Path("/proc")
LISTENING = "0A"


@dataclass(frozen=True)
class ProcessId:
    """A process id with the start time, which makes it unique: the kernel reuses ids."""

    number: int
    started_at: int

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; a zombie does not."""
        fields = read_stat(self.number)
        return fields is not None and int(fields[19]) == self.started_at and fields[0] != "Z"


def read_stat(number: int) -> list[str] | None:
    """Return the fields of /proc/<pid>/stat from the state on; None if there is no such process."""
    try:
        return (PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def descendants(root: int) -> set[ProcessId]:
    """Return the running descendants of a process."""
    stats = {int(each.name): fields for each in PROC.glob("[0-9]*") if (fields := read_stat(int(each.name)))}
    found: set[ProcessId] = set()
    parents = {root}
    while parents:
        children = {number: fields for number, fields in stats.items() if int(fields[1]) in parents}
        found |= {ProcessId(number, int(fields[19])) for number, fields in children.items()}
        parents = set(children)
    return found


def guarded_folder(number: int) -> Path | None:
    """Return the folder that a process guard will remove; None for other processes."""
    try:
        words = (PROC / str(number) / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return None
    return Path(words[words.index("--folder") + 1]) if "--folder" in words else None


def listeners() -> set[tuple[int, str]]:
    """Return who listens on loopback: port and socket; a port may be another's soon, a socket never is."""
    rows = [line.split() for line in (PROC / "net" / "tcp").read_text().splitlines()[1:]]
    listening = [row for row in rows if row[1].startswith("0100007F:") and row[3] == LISTENING]
    return {(int(row[1].partition(":")[2], 16), row[9]) for row in listening}


@dataclass
class DemoProcess:
    """A running demo: its output and the processes it has started so far."""

    process: subprocess.Popen[str]
    error_file: TextIO
    lines: list[str] = field(default_factory=list)
    started: set[ProcessId] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    listeners: set[tuple[int, str]] = field(default_factory=set)
    errors: str = ""

    def read_until(self, text: str) -> None:
        """Read until a line contains this text or the demo has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            self.observe()
            if text in line:
                return

    def observe(self) -> None:
        """Record the processes and folders that exist now."""
        now = descendants(self.process.pid)
        # All of them each time: one that was only just forked has the words of its parent until it has become a guard.
        self.folders |= {folder for each in now if (folder := guarded_folder(each.number))}
        self.started |= now
        self.listeners |= listeners()

    def interrupt(self) -> None:
        """Send SIGINT."""
        self.observe()
        self.process.send_signal(signal.SIGINT)

    def finish(self) -> int:
        """Read the remaining output and wait for the exit code."""
        for line in self.process.stdout or ():
            self.lines.append(line.rstrip())
            self.observe()
        code = self.process.wait()
        self.error_file.seek(0)
        self.errors = self.error_file.read()
        return code

    @property
    def output(self) -> str:
        """The standard output so far."""
        return "\n".join(self.lines)

    @property
    def ports(self) -> list[int]:
        """The loopback ports in the output."""
        return sorted({int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", self.output)})

    def remains(self) -> list[str]:
        """Return the processes, folders and ports that still exist."""
        return [
            *(f"process {each.number}" for each in self.started if each.is_alive),
            *(f"folder {each}" for each in self.folders if each.exists()),
            *(f"port {port}" for port, _ in self.listeners & listeners() if port in self.ports),
        ]


@contextmanager
def running_demo(folder: Path, *arguments: str) -> Iterator[DemoProcess]:
    """Run `python -m relaunch_local.demo` in a folder; kill it at the end if it still runs."""
    # Errors go to a file: a full pipe that nobody reads would block the demo.
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "relaunch_local.demo", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        try:
            yield DemoProcess(process, errors)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()
