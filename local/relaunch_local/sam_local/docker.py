"""A Docker daemon in namespaces of this run's own, which ends with it, and of which nothing is left."""

import contextlib
import fcntl
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

START_SECONDS = 300.0
POLL_SECONDS = 0.1
_BRIDGE = b"docker0"
_SIOCGIFADDR = 0x8915  # asks Linux for the address of an interface
# The daemon is the first process of a PID namespace: when it ends, however it does, the kernel ends all containers.
_NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
# The network namespace has no packet filter and no way out. systemd, which manages control groups elsewhere, cannot be
# reached from the mount namespace.
_SETTINGS = ("--iptables=false", "--ip-forward=false", "--ip-masq=false", "--exec-opt", "native.cgroupdriver=cgroupfs")
_CONTROL_GROUP = "relaunch-sam-local"
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


class DockerError(Exception):
    """The daemon did not start, or a command failed; the message contains the output."""


@dataclass(frozen=True)
class Docker:
    """A running daemon."""

    url: str
    """The value for DOCKER_HOST."""

    def run(self, *arguments: str) -> str:
        """Run the command `docker` and return its output.

        Raises:
            DockerError: it failed; the message contains its output.
        """
        result = subprocess.run(["docker", "--host", self.url, *arguments], capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise DockerError(f"docker {arguments[0]} failed: {result.stderr.strip()}")
        return result.stdout.strip()

    def gateway(self) -> str:
        """Return the address at which containers reach this network namespace."""
        bridge = fcntl.ioctl(socket.socket(), _SIOCGIFADDR, struct.pack("256s", _BRIDGE))
        return socket.inet_ntoa(bridge[20:24])

    def remove_containers(self) -> None:
        """Remove all containers, with their control groups."""
        containers = self.run("ps", "--all", "--quiet").split()
        if containers:
            self.run("rm", "--force", *containers)


@contextmanager
def running_docker(folder: Path) -> Iterator[Docker]:
    """Run a daemon that keeps everything in `folder`, which is removed at the end.

    Raises:
        DockerError: it did not start.
    """
    folder.mkdir()
    docker = Docker(f"unix://{folder / 'socket'}")
    log = folder.with_suffix(".log")
    command: list[str | Path] = [*_NAMESPACE, "dockerd", "--host", docker.url, "--data-root", folder / "data"]
    command += ["--exec-root", folder / "exec", "--pidfile", folder / "pid"]
    command += ["--cgroup-parent", _CONTROL_GROUP, *_SETTINGS]
    process = start_guarded(command, environment=dict(os.environ), folder=folder, log=log)
    try:
        _wait_for(docker, process, log)
        yield docker
    finally:
        with contextlib.suppress(DockerError):
            docker.remove_containers()
        process.stop()
        remove_control_groups()


def remove_control_groups() -> None:
    """Remove the control groups that the containers were in, unless others are in them."""
    for pattern in (f"*/{_CONTROL_GROUP}/*", f"{_CONTROL_GROUP}/*", f"*/{_CONTROL_GROUP}", _CONTROL_GROUP):
        for group in _CONTROL_GROUPS.glob(pattern):
            with contextlib.suppress(OSError):
                group.rmdir()


def _wait_for(docker: Docker, process: GuardedProcess, log: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            docker.run("version")
        except DockerError as error:
            if process.exit_code() is not None or time.monotonic() > ends_at:
                raise DockerError(f"dockerd did not start:\n{log.read_text()[-2000:]}") from error
        else:
            return
        time.sleep(POLL_SECONDS)
