"""Runs MiniStack, the emulator of all services but ECS and EC2, behind the guard on a free loopback port."""

import os
import socket
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3

from relaunch_local.repository import REPOSITORY
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import HOSTS_VARIABLE
from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

ACCOUNT: Final = "111122223333"
REGION: Final = "eu-central-1"
LOOPBACK = "127.0.0.1"

INTERPRETER = REPOSITORY / ".venv-emulator" / "bin" / "python"

RUNNER = "relaunch_local.stack.guarded_emulator"

EMULATOR_LOG = "emulator.log"

START_SECONDS = 300.0
PORT_ATTEMPTS = 5
POLL_SECONDS = 0.05


class EmulatorError(Exception):
    """The emulator did not start; the message contains its output."""


@dataclass(frozen=True)
class Emulator:
    """A running emulator."""

    endpoint_url: str
    root: Credentials

    def environment(self) -> dict[str, str]:
        """Return the environment variables with which boto3 and SAM use this emulator only."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ACCESS_KEY_ID": self.root.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.root.secret_access_key,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str) -> Any:
        """Return a boto3 client of the root user."""
        return boto3.client(
            service,  # type: ignore[call-overload]  # the service's name is not a literal here
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.root.access_key_id,
            aws_secret_access_key=self.root.secret_access_key,
            region_name=REGION,
        )


@contextmanager
def running_emulator(
    folder: Path, function_environment: Mapping[str, str], root: Credentials, hosts: Collection[str] = ()
) -> Iterator[Emulator]:
    """Run an emulator in `folder`, which is removed at the end; functions get `function_environment`.

    It has these credentials of the root user, and can be called by these hosts beside those of loopback.

    Raises:
        EmulatorError: it is not installed or did not start.
    """
    if not INTERPRETER.exists():
        raise EmulatorError(f"{INTERPRETER} is missing: run `make setup`")
    log = folder / EMULATOR_LOG
    for _ in range(PORT_ATTEMPTS):
        emulator = Emulator(f"http://{LOOPBACK}:{free_port()}", root)
        work = folder / "emulator"
        work.mkdir(exist_ok=True)
        process = start_guarded(
            # Without -P the current folder would be on the path.
            [INTERPRETER, "-P", "-m", RUNNER],
            environment={
                **emulator_environment(emulator, work, function_environment),
                "PYTHONPATH": str(REPOSITORY / "local"),
                HOSTS_VARIABLE: ",".join(hosts),
            },
            folder=folder,
            log=log,
        )
        try:
            if is_up(emulator, process, log):
                yield emulator
                return
        finally:
            process.stop()
    raise EmulatorError(f"the emulator did not start:\n{log.read_text()[-4000:]}")


def emulator_environment(emulator: Emulator, work: Path, function_environment: Mapping[str, str]) -> dict[str, str]:
    """Return the emulator's environment, which does not inherit from this process; functions inherit from it."""
    port = emulator.endpoint_url.rsplit(":", 1)[1]
    return {
        **function_environment,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work),
        "TMPDIR": str(work),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        # Only this user and root can read the environment of a process.
        "AWS_ACCESS_KEY_ID": emulator.root.access_key_id,
        "AWS_SECRET_ACCESS_KEY": emulator.root.secret_access_key,
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "MINISTACK_REGION": REGION,
        # The host name of queue URLs.
        "MINISTACK_HOST": LOOPBACK,
        "BIND_HOST": LOOPBACK,
        "GATEWAY_PORT": port,
        # Policies are enforced, so that a missing permission in the template is noticed.
        "AUTH": "true",
        # The IoT broker would listen on all interfaces.
        "IOT_MTLS_ENABLED": "0",
    }


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_up(emulator: Emulator, process: GuardedProcess, log: Path) -> bool:
    """Wait until the emulator logs that it listens; return False if it ends, its port being taken, or times out.

    Connecting to the port would not be enough: another process may listen there.
    """
    deadline = time.monotonic() + START_SECONDS
    while process.exit_code() is None and time.monotonic() < deadline:
        if f"Running on {emulator.endpoint_url} " in log.read_text():
            return True
        time.sleep(POLL_SECONDS)
    return False
