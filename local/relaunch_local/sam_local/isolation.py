"""Namespaces of the run's own for network and mounts: what listens in them cannot be reached, what is written is gone.

The kernel removes both with the last process in them, however that ends. So no interface of Docker, no mount of a
container and no temporary file is left on this machine, and no daemon that runs on it is met.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_NAMESPACES = ("unshare", "--net", "--mount")
_CONTAINERS = (*_NAMESPACES, "--pid", "--fork", "true")
_PROGRAMS = {"dockerd": "docker.io", "docker": "docker.io", "busybox": "busybox-static"}
# In these is what else would be met or left: sockets of daemons, and the folders of the local world.
_REPLACED = ("/run", "/dev/shm")  # noqa: S108 - they are replaced by new ones
FOLDER = Path("/run/relaunch")
"""Where everything is written that is not the local world's."""


class IsolationError(Exception):
    """Containers cannot be run on this machine; the message says why, and what to do."""


def check_machine() -> None:
    """Check that this process may make namespaces, and that the programs are installed.

    Raises:
        IsolationError: it may not, or one is missing.
    """
    if os.geteuid() != 0:
        raise IsolationError("containers need root: `make sam-local AS_ROOT=sudo`")
    if missing := sorted({package for name, package in _PROGRAMS.items() if shutil.which(name) is None}):
        raise IsolationError(f"Debian's {' and '.join(missing)} missing: apt-get install {' '.join(missing)}")
    probe = subprocess.run(_CONTAINERS, capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise IsolationError(f"root may make no namespaces here, as in a container: {probe.stderr.strip()}")


def run_isolated(command: Sequence[str]) -> None:
    """Replace this process by a command in new namespaces."""
    os.execvp(_NAMESPACES[0], [*_NAMESPACES, *command])  # noqa: S606 - no shell is needed


def furnish() -> None:
    """Bring up loopback, and put empty folders in memory where others have theirs; call this in new namespaces."""
    subprocess.run(["busybox", "ip", "link", "set", "lo", "up"], check=True)
    for folder in _REPLACED:
        subprocess.run(["busybox", "mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    FOLDER.mkdir()
    os.environ["TMPDIR"] = str(FOLDER)
