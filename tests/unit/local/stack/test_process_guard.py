import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fakes.processes import becomes, is_alive
from fakes.repository import REPOSITORY
from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

# A command that starts a grandchild, says who it is, and lasts.
LASTING = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(600)
"""
# Stands in for us: starts a guarded command, passes on what it says, and lasts.
OWNER = """
import sys, time
from pathlib import Path
from relaunch_local.stack.process_guard import start_guarded
folder = Path(sys.argv[1])
start_guarded([sys.executable, "-c", sys.argv[2]], environment={}, folder=folder / "work", log=folder / "log")
print("started", flush=True)
time.sleep(600)
"""


def processes_in(log: Path) -> list[int]:
    """Return the process ids that a running command has written."""
    assert becomes(lambda: log.exists() and log.read_text().endswith("\n"))
    return [int(word) for word in log.read_text().split()]


def start_python(folder: Path, program: str) -> GuardedProcess:
    command = [sys.executable, "-I", "-S", "-c", program]
    return start_guarded(command, environment={}, folder=folder / "work", log=folder / "log")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "left-over").touch()
    return tmp_path


def test_stopping_ends_the_command_and_what_it_started_and_removes_its_folder(folder: Path) -> None:
    process = start_python(folder, LASTING)
    started = processes_in(folder / "log")

    process.stop()

    assert becomes(lambda: not any(is_alive(each) for each in started))
    assert not (folder / "work").exists()


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_that_ends_by_itself_has_its_exit_code_and_keeps_its_folder(folder: Path, code: int) -> None:
    process = start_python(folder, f"raise SystemExit({code})")

    assert process.wait() == code
    assert process.exit_code() == code
    assert (folder / "work" / "left-over").exists()


def test_nothing_outlives_an_owner_that_was_killed(folder: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(folder), LASTING]
    owner = subprocess.Popen(command, env={"PYTHONPATH": str(REPOSITORY / "local")}, stdout=subprocess.PIPE)
    started = processes_in(folder / "log")

    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    if owner.stdout is not None:
        owner.stdout.close()

    assert becomes(lambda: not any(is_alive(each) for each in started))
    assert becomes(lambda: not (folder / "work").exists())
