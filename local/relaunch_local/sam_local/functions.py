"""The functions of the built application in containers, by `sam local start-lambda`, against a local world."""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.sam_local.docker import Docker
from relaunch_local.sam_local.forwarding import forwarded
from relaunch_local.stack.build import BUILD
from relaunch_local.stack.deployment import SAM
from relaunch_local.stack.emulator import LOOPBACK, REGION, free_port
from relaunch_local.stack.local_world import LocalWorld
from relaunch_local.stack.process_guard import GuardedProcess, start_guarded

START_SECONDS = 300.0
POLL_SECONDS = 0.05
_LOG_LINES = 40


class InvocationError(Exception):
    """SAM CLI does not serve; the message contains its output."""


@dataclass(frozen=True)
class Functions:
    """The functions, each of which stays in its container until the end."""

    client: Any
    log: Path
    """What SAM CLI and the functions write."""

    def invoke(self, function: str, payload: bytes) -> tuple[Any, str]:
        """Invoke a function by its logical id; return its answer, and what was logged meanwhile."""
        start = self.log.stat().st_size
        try:
            answer = json.loads(self.client.invoke(FunctionName=function, Payload=payload)["Payload"].read())
        except (ClientError, BotoCoreError, ValueError) as error:
            answer = {"errorType": type(error).__name__, "errorMessage": str(error)}
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return answer, "\n".join(lines[-_LOG_LINES:])


@contextmanager
def serving_functions(
    docker: Docker, world: LocalWorld, functions: Mapping[str, str], folder: Path
) -> Iterator[Functions]:
    """Serve these functions of a local world, given by their logical ids with their names.

    Raises:
        InvocationError: SAM CLI does not serve in time.
    """
    with ExitStack() as stack:
        environment = container_environment(world, docker, functions, stack)
        folder.mkdir()
        variables = folder / "environment.json"
        log = folder / "sam.log"
        port = free_port()
        variables.write_text(json.dumps(environment))
        template = write_template(folder, next(iter(environment.values())))
        command: list[str | Path] = [SAM, "local", "start-lambda", "--template", template, "--env-vars", variables]
        command += ["--host", LOOPBACK, "--port", str(port), "--skip-pull-image", "--warm-containers", "LAZY"]
        command += ["--parameter-overrides", f"Runtime=python{sys.version_info.major}.{sys.version_info.minor}"]
        # With credentials SAM would call STS and wait for the response.
        own = {"PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder), "LANG": "C.UTF-8"}
        own |= {"DOCKER_HOST": docker.url, "SAM_CLI_TELEMETRY": "0", "AWS_DEFAULT_REGION": REGION}
        own["SAM_CLI_CONTAINER_CONNECTION_TIMEOUT"] = str(round(START_SECONDS))
        work = folder / "work"
        work.mkdir()
        process = start_guarded(command, environment=own, folder=work, log=log)
        stack.callback(process.stop)
        wait_for(port, process, log)
        yield Functions(make_client(port), log)


def container_environment(
    world: LocalWorld, docker: Docker, functions: Mapping[str, str], stack: ExitStack
) -> dict[str, dict[str, str]]:
    """Return the environment of each function: its deployed variables, those of the local world, its role's."""
    gateway = docker.gateway()
    variables: dict[str, str] = {}
    forwarded_urls: dict[str, str] = {}
    for name, value in world.environment().items():
        if value.startswith("http") and value not in forwarded_urls:
            forwarded_urls[value] = stack.enter_context(forwarded(value, gateway))
        variables[name] = forwarded_urls.get(value, value)
    client = world.client("lambda")
    answer = {}
    for logical_id, name in functions.items():
        deployed = client.get_function_configuration(FunctionName=name)
        role = world.function_credentials(name)
        answer[logical_id] = {**deployed["Environment"]["Variables"], **variables, **role}
    return answer


def write_template(folder: Path, variables: Mapping[str, str]) -> Path:
    """Write a copy of the built template beside links to what was built; return it.

    SAM CLI sets only variables that the template declares: those of the local world are declared too.
    """
    for built in BUILD.iterdir():
        if built.is_dir():
            (folder / built.name).symlink_to(built)
    first = "        RELAUNCH_TABLE:\n"
    lines = [f"        {name}: unset\n" for name in variables if name.startswith(("AWS_", "RELAUNCH_STACK"))]
    template = folder / "template.yaml"
    template.write_text((BUILD / "template.yaml").read_text().replace(first, "".join(lines) + first, 1))
    return template


def make_client(port: int) -> Any:
    """Return a client that invokes functions by their logical ids, and repeats nothing."""
    return boto3.client(
        "lambda",
        endpoint_url=f"http://{LOOPBACK}:{port}",
        region_name=REGION,
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106 - SAM CLI takes any
        config=Config(read_timeout=START_SECONDS, retries={"total_max_attempts": 1}),
    )


def wait_for(port: int, process: GuardedProcess, log: Path) -> None:
    """Wait until SAM CLI serves.

    Raises:
        InvocationError: it ended, or does not serve in time.
    """
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError as error:
            if process.exit_code() is not None or time.monotonic() > ends_at:
                raise InvocationError(f"SAM CLI does not serve:\n{log.read_text()[-2000:]}") from error
            time.sleep(POLL_SECONDS)
        else:
            return
