"""Deploys the built template into the emulator with `sam deploy`, and reads the stack's outputs and resources."""

import fcntl
import os
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.build import BUILD, built_application, locked
from relaunch_local.stack.emulator import INTERPRETER, REGION, Emulator
from relaunch_local.stack.process_guard import start_guarded

STACK = "relaunch"
PACKAGES = "relaunch-packages"
WEBHOOK_SECRET_LENGTH = 48

SAM = REPOSITORY / ".venv-sam" / "bin" / "sam"


class DeploymentError(Exception):
    """The deployment failed; the message contains SAM's output."""


@dataclass(frozen=True)
class Deployment:
    """The deployed stack: its outputs, and its resources by logical id."""

    outputs: Mapping[str, str]
    resources: Mapping[str, str]
    emulator: Emulator

    @property
    def webhook_url(self) -> str:
        """The function URL of github_webhook on the emulator's endpoint; its AWS host name does not resolve here."""
        return self._local_url("WebhookUrl")

    @property
    def job_api_url(self) -> str:
        """The function URL of job_api on the emulator's endpoint, for signed requests."""
        return self._local_url("JobApiUrl")

    def _local_url(self, output: str) -> str:
        url_id = self.outputs[output].removeprefix("https://").split(".", 1)[0]
        return f"{self.emulator.endpoint_url}/_aws/lambda-url/{url_id}/"

    @cached_property
    def webhook_secret(self) -> str:
        """The webhook secret that GitHub signs with."""
        client = self.emulator.client("secretsmanager")
        return str(client.get_secret_value(SecretId=self.outputs["WebhookSecretArn"])["SecretString"])


def deploy(emulator: Emulator, parameters: Mapping[str, str], folder: Path) -> Deployment:
    """Deploy the build with these template parameters and its Runtime and Architecture.

    Raises:
        NotBuiltError: there is no build.
        DeploymentError: SAM failed, or the emulator cannot run the build.
    """
    emulator.client("s3").create_bucket(Bucket=PACKAGES, CreateBucketConfiguration={"LocationConstraint": REGION})
    with locked(fcntl.LOCK_SH):
        application = built_application()
        check_runtime(application.runtime)
        parameters = {**parameters, "Runtime": application.runtime, "Architecture": application.architecture}
        run_sam_deploy(emulator, parameters, folder)
    deployment = Deployment(*read_stack(emulator), emulator)
    store_webhook_secret(deployment)
    return deployment


def store_webhook_secret(deployment: Deployment) -> None:
    """Store a secret as the template asks for: without punctuation, which MiniStack does not exclude.

    The webhook reads a text that begins with a brace as JSON, and refuses all deliveries when it is none.
    """
    secret = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(WEBHOOK_SECRET_LENGTH))
    client = deployment.emulator.client("secretsmanager")
    client.put_secret_value(SecretId=deployment.outputs["WebhookSecretArn"], SecretString=secret)


def check_runtime(runtime: str) -> None:
    """Check that the build is for the emulator's interpreter, which runs every function.

    Raises:
        DeploymentError: the build is for another interpreter.
    """
    environment = INTERPRETER.parent.parent / "lib"
    if not (environment / runtime).is_dir():
        raise DeploymentError(f"the application is built for {runtime}, the emulator is not: run `make setup build`")


def run_sam_deploy(emulator: Emulator, parameters: Mapping[str, str], folder: Path) -> None:
    """Run `sam deploy` in a clean environment with the emulator's endpoint and credentials."""
    work = folder / "sam"
    work.mkdir()
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(work),
        "TMPDIR": str(work),
        "LANG": "C.UTF-8",
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "0.1",
        **emulator.environment(),
    }
    command: list[str | Path] = [SAM, "deploy", "--config-file", REPOSITORY / "samconfig.toml", "--config-env", "local"]
    command += ["--template-file", BUILD / "template.yaml", "--s3-bucket", PACKAGES, "--stack-name", STACK]
    command += ["--parameter-overrides", *(f"{name}={value}" for name, value in parameters.items())]
    log = folder / "deploy.log"
    process = start_guarded(command, environment=environment, folder=work, log=log)
    try:
        exit_code = process.wait()
    finally:
        process.stop()
    if exit_code != 0:
        raise DeploymentError(f"sam deploy failed:\n{log.read_text()[-4000:]}")


def read_stack(emulator: Emulator, name: str = STACK) -> tuple[dict[str, str], dict[str, str]]:
    """Return the stack's outputs, and the physical ids of its resources by logical id."""
    cloudformation = emulator.client("cloudformation")
    stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    resources = {
        each["LogicalResourceId"]: each["PhysicalResourceId"]
        for page in pages
        for each in page["StackResourceSummaries"]
    }
    return outputs, resources
