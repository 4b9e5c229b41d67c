"""A Docker daemon: the running one, or one that ends with this process; its images are kept in .cache."""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

STORE = REPOSITORY / ".cache" / "sam-local"
START_SECONDS = 30.0
END_SECONDS = 20.0
POLL_SECONDS = 0.1
_BRIDGE = b"docker0"
_SIOCGIFADDR = 0x8915  # asks Linux for the address of an interface


class DockerError(Exception):
    """No Docker daemon is available; the message says what to do."""


@dataclass(frozen=True)
class Docker:
    """A running daemon."""

    url: str
    """The value for DOCKER_HOST."""

    def is_running(self) -> bool:
        """Return whether the daemon responds."""
        try:
            self.run("version")
        except DockerError:
            return False
        return True

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
        """Return the address at which containers reach this machine."""
        bridge = fcntl.ioctl(socket.socket(), _SIOCGIFADDR, struct.pack("256s", _BRIDGE))
        return socket.inet_ntoa(bridge[20:24])

    def end_containers(self, folder: Path) -> None:
        """Remove the containers that mount something below a folder."""
        for mounted in folder.iterdir():
            for container in self.run("ps", "--quiet", "--filter", f"volume={mounted}").split():
                self.run("rm", "--force", container)


@contextmanager
def running_docker() -> Iterator[Docker]:
    """Use the running daemon, or run one that does not change this machine's packet filter or forwarding.

    Raises:
        DockerError: a program is missing, this process is not root, or the daemon did not start.
    """
    missing = [each for each in ("docker", "busybox") if shutil.which(each) is None]
    if missing:
        raise DockerError(f"{' and '.join(missing)} missing: install docker.io and busybox-static (apt-get install)")
    existing = Docker(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    if existing.is_running():
        yield existing
        return
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        raise DockerError("no Docker daemon is running; to start one, run this as root with docker.io installed")
    with _own_daemon() as docker:
        yield docker


@contextmanager
def _own_daemon() -> Iterator[Docker]:
    STORE.mkdir(parents=True, exist_ok=True)
    # The length of a socket's path is limited; the repository's path may be long.
    with tempfile.TemporaryDirectory(prefix="relaunch-docker-") as name:
        folder = Path(name)
        docker, log = Docker(f"unix://{folder / 'docker.sock'}"), folder / "dockerd.log"
        command: list[str | Path] = ["dockerd", "--host", docker.url, "--data-root", STORE / "docker"]
        command += ["--exec-root", folder / "exec", "--pidfile", folder / "pid"]
        command += ["--iptables=false", "--ip-forward=false", "--ip-masq=false"]
        process = start_guarded(command, environment=dict(os.environ), folder=folder / "exec", log=log)
        try:
            _wait_for(docker, log)
            yield docker
        finally:
            _terminate(process, folder / "pid")


def _terminate(process: GuardedProcess, pid_file: Path) -> None:
    """Terminate the daemon with SIGTERM: killed, it would leave its store mounted."""
    ends_at = time.monotonic() + END_SECONDS
    if pid_file.is_file():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGTERM)
        while process.exit_code() is None and time.monotonic() < ends_at:
            time.sleep(POLL_SECONDS)
    process.stop()


def _wait_for(docker: Docker, log: Path) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while not docker.is_running():
        if time.monotonic() > ends_at:
            raise DockerError(f"dockerd did not start:\n{log.read_text()[-2000:]}")
        time.sleep(POLL_SECONDS)
