"""A demo that runs as a program of its own, and everything it starts: processes, folders, ports."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
LISTENING = "0A"


@dataclass(frozen=True)
class Started:
    """A process as the kernel knows it: numbers are used again, together with the start time they are not."""

    number: int
    started_at: int

    @property
    def is_alive(self) -> bool:
        """Whether it still runs; one that has ended and was not waited for does not."""
        fields = read_stat(self.number)
        return fields is not None and int(fields[19]) == self.started_at and fields[0] != "Z"


def read_stat(number: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; None for a process that is gone."""
    try:
        return (PROC / str(number) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def descendants(root: int) -> set[Started]:
    """Everything that a process has started, directly or not, and that is still below it."""
    stats = {int(each.name): fields for each in PROC.glob("[0-9]*") if (fields := read_stat(int(each.name)))}
    found: set[Started] = set()
    parents = {root}
    while parents:
        children = {number: fields for number, fields in stats.items() if int(fields[1]) in parents}
        found |= {Started(number, int(fields[19])) for number, fields in children.items()}
        parents = set(children)
    return found


def guarded_folder(number: int) -> Path | None:
    """The folder that a guard of the local world is to remove; None for other processes."""
    try:
        words = (PROC / str(number) / "cmdline").read_bytes().decode().split("\0")
    except OSError:
        return None
    return Path(words[words.index("--folder") + 1]) if "--folder" in words else None


def is_listening(port: int) -> bool:
    """Whether anybody listens on this port of loopback."""
    rows = (line.split() for line in (PROC / "net" / "tcp").read_text().splitlines()[1:])
    return any(row[1] == f"0100007F:{port:04X}" and row[3] == LISTENING for row in rows)


@dataclass
class DemoProcess:
    """A running demo: what it has said so far, and what it has started so far."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    started: set[Started] = field(default_factory=set)
    folders: set[Path] = field(default_factory=set)
    errors: str = ""

    def read_until(self, text: str) -> None:
        """Read on until a line has this text, or the demo has ended."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            self.observe()
            if text in line:
                return

    def observe(self) -> None:
        """Remember what it has started by now."""
        now = descendants(self.process.pid)
        self.folders |= {folder for each in now - self.started if (folder := guarded_folder(each.number))}
        self.started |= now

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.observe()
        self.process.send_signal(signal.SIGINT)

    def finish(self) -> int:
        """Read the rest, and wait for the end."""
        assert self.process.stderr is not None
        errors: list[str] = []
        # Both at once: a full pipe would keep it from ending.
        reader = threading.Thread(target=lambda: errors.append(self.process.stderr.read()))  # type: ignore[union-attr]  # just asserted
        reader.start()
        for line in self.process.stdout or ():
            self.lines.append(line.rstrip())
            self.observe()
        reader.join()
        self.errors = "".join(errors)
        return self.process.wait()

    @property
    def output(self) -> str:
        """All that was read of standard output."""
        return "\n".join(self.lines)

    @property
    def ports(self) -> list[int]:
        """The ports of loopback that it named."""
        return sorted({int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", self.output)})

    def remains(self) -> list[str]:
        """What is left of all that it has started."""
        return [
            *(f"process {each.number}" for each in self.started if each.is_alive),
            *(f"folder {each}" for each in self.folders if each.exists()),
            *(f"port {each}" for each in self.ports if is_listening(each)),
        ]


@contextmanager
def running_demo(folder: Path, *arguments: str) -> Iterator[DemoProcess]:
    """Run `python -m relaunch_local.demo` in a folder; it is killed at the end if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "relaunch_local.demo", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield DemoProcess(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
