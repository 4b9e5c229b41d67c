"""Invokes every sample of events/ in a container: `python -m relaunch_local.sam_local`."""

import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from relaunch_local.sam_local.docker import Docker, DockerError, running_docker
from relaunch_local.sam_local.forwarding import forwarded
from relaunch_local.sam_local.image import ensure_image
from relaunch_local.sam_local.samples import FUNCTIONS, is_handled, samples
from relaunch_local.stack.build import BUILD, NotBuiltError
from relaunch_local.stack.deployment import SAM, DeploymentError
from relaunch_local.stack.emulator import LOOPBACK, REGION, EmulatorError, free_port
from relaunch_local.stack.local_world import LocalWorld, LocalWorldSettings, local_world
from relaunch_local.stack.process_guard import start_guarded

# The secret of the webhook's sample is that of GitHub's example ("Validating webhook deliveries", GitHub Docs).
SAMPLES_SECRET = "It's a Secret to Everybody"  # noqa: S105
TEMPLATE = BUILD / "sam-local.yaml"
START_SECONDS = 60.0
POLL_SECONDS = 0.2


class InvocationError(Exception):
    """SAM CLI does not serve; the message contains its output."""


def main() -> None:
    """Invoke all samples and print a line for each; exit non-zero if one failed."""
    try:
        failed = run()
    except (DockerError, EmulatorError, NotBuiltError, DeploymentError, InvocationError) as error:
        raise SystemExit(f"sam-local: {error}") from error
    raise SystemExit(1 if failed else 0)


def run() -> int:
    """Invoke every sample; return how many failed."""
    with ExitStack() as stack:
        docker = stack.enter_context(running_docker())
        report("building the base image unless it exists")
        ensure_image(docker)
        world = stack.enter_context(local_world(LocalWorldSettings(hosts=[docker.gateway()]), report=report))
        world.client("secretsmanager").put_secret_value(
            SecretId=world.deployment.outputs["WebhookSecretArn"], SecretString=SAMPLES_SECRET
        )
        client = stack.enter_context(serving_functions(docker, container_environment(world, docker, stack)))
        outcomes = [invoke(client, function, sample) for sample, function in samples()]
    print(f"{len(outcomes)} samples invoked in containers, {outcomes.count(False)} failed")
    return outcomes.count(False)


def report(line: str) -> None:
    """Print progress to standard error."""
    print(f"· {line}", file=sys.stderr, flush=True)


def container_environment(world: LocalWorld, docker: Docker, stack: ExitStack) -> dict[str, dict[str, str]]:
    """Return the environment of each function: its deployed variables, and those of the local world."""
    gateway = docker.gateway()
    variables: dict[str, str] = {}
    forwarded_urls: dict[str, str] = {}
    for name, value in world.environment().items():
        if value.startswith("http") and value not in forwarded_urls:
            forwarded_urls[value] = stack.enter_context(forwarded(value, gateway))
        variables[name] = forwarded_urls.get(value, value)
    functions = world.client("lambda")
    answer = {}
    for logical_id in sorted(set(FUNCTIONS.values())):
        deployed = functions.get_function_configuration(FunctionName=world.deployment.resources[logical_id])
        answer[logical_id] = {**deployed["Environment"]["Variables"], **variables}
    return answer


@contextmanager
def serving_functions(docker: Docker, environment: Mapping[str, Mapping[str, str]]) -> Iterator[Any]:
    """Run `sam local start-lambda`; yield a client that invokes functions by their logical ids."""
    with tempfile.TemporaryDirectory(prefix="relaunch-sam-") as folder:
        port = free_port()
        variables = Path(folder) / "environment.json"
        variables.write_text(json.dumps(environment))
        write_template(next(iter(environment.values())))
        log = Path(folder) / "sam.log"
        command: list[str | Path] = [SAM, "local", "start-lambda", "--template", TEMPLATE, "--env-vars", variables]
        command += ["--host", LOOPBACK, "--port", str(port), "--skip-pull-image", "--warm-containers", "LAZY"]
        command += ["--parameter-overrides", f"Runtime=python{sys.version_info.major}.{sys.version_info.minor}"]
        work = Path(folder) / "work"
        work.mkdir()
        # With credentials SAM would call STS and wait for the response.
        own = {"PATH": os.environ["PATH"], "HOME": folder, "DOCKER_HOST": docker.url, "SAM_CLI_TELEMETRY": "0"}
        own |= {"AWS_DEFAULT_REGION": REGION, "LANG": "C.UTF-8"}
        process = start_guarded(command, environment=own, folder=work, log=log)
        try:
            yield wait_for_client(port, log)
        finally:
            process.stop()
            docker.end_containers(BUILD)
            TEMPLATE.unlink(missing_ok=True)


def write_template(variables: Mapping[str, str]) -> None:
    """Write a copy of the built template that declares these variables: SAM CLI sets only declared ones."""
    first = "        RELAUNCH_TABLE:\n"
    lines = [f"        {name}: unset\n" for name in variables if name.startswith(("AWS_", "RELAUNCH_STACK"))]
    TEMPLATE.write_text((BUILD / "template.yaml").read_text().replace(first, "".join(lines) + first, 1))


def wait_for_client(port: int, log: Path) -> Any:
    """Wait until SAM CLI serves; return a client without retries.

    Raises:
        InvocationError: it does not serve in time.
    """
    client = boto3.client(
        "lambda",
        endpoint_url=f"http://{LOOPBACK}:{port}",
        region_name=REGION,
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106 - SAM CLI takes any
        config=Config(read_timeout=180, retries={"total_max_attempts": 1}),
    )
    ends_at = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError as error:
            if time.monotonic() > ends_at:
                raise InvocationError(f"SAM CLI does not serve:\n{log.read_text()[-2000:]}") from error
            time.sleep(POLL_SECONDS)
        else:
            return client


def invoke(client: Any, function: str, sample: Path) -> bool:
    """Invoke a function with a sample and print the result; return whether the sample was handled."""
    started = time.monotonic()
    try:
        answer = json.loads(client.invoke(FunctionName=function, Payload=sample.read_bytes())["Payload"].read())
    except (ClientError, BotoCoreError) as error:
        answer = {"errorMessage": str(error)}
    result = "ok" if is_handled(sample, answer) else "FAILED"
    seconds = time.monotonic() - started
    print(f"{result:6} {function:24} {sample.stem:48} {seconds:4.1f} s  {json.dumps(answer)[:120]}", flush=True)
    return result == "ok"


if __name__ == "__main__":
    main()
