"""Deploys the built template into the emulator as `sam deploy` does, and reads the stack's outputs and resources.

SAM CLI itself takes a processor for eight seconds, to start and to compress what the emulator unpacks again: it runs
where `relaunch deploy` does.
"""

import fcntl
import json
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from botocore.exceptions import ClientError, WaiterError

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.build import BUILD, built_application, locked
from relaunch_local.stack.emulator import INTERPRETER, REGION, Emulator
from relaunch_local.stack.packages import upload_packages
from relaunch_local.templates.document import parse_yaml

STACK = "relaunch"
PACKAGES = "relaunch-packages"
TEMPLATE = "relaunch.template"
WEBHOOK_SECRET_LENGTH = 48

POLL_SECONDS = 0.1
CREATION_SECONDS = 300.0

SAM = REPOSITORY / ".venv-sam" / "bin" / "sam"


class DeploymentError(Exception):
    """The deployment failed; the message says what CloudFormation refused, or what the build lacks."""


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


def deploy(emulator: Emulator, parameters: Mapping[str, str]) -> Deployment:
    """Deploy the build with these template parameters and its Runtime and Architecture.

    Raises:
        NotBuiltError: there is no build.
        DeploymentError: the stack was not created, or the emulator cannot run the build.
    """
    s3 = emulator.client("s3")
    s3.create_bucket(Bucket=PACKAGES, CreateBucketConfiguration={"LocationConstraint": REGION})
    with locked(fcntl.LOCK_SH):
        application = built_application()
        check_runtime(application.runtime)
        template = parse_yaml((BUILD / "template.yaml").read_text(encoding="utf-8"))
        packaged = upload_packages(template, BUILD, s3, PACKAGES)
    s3.put_object(Bucket=PACKAGES, Key=TEMPLATE, Body=json.dumps(packaged).encode())
    parameters = {**parameters, "Runtime": application.runtime, "Architecture": application.architecture}
    create_stack(emulator.client("cloudformation"), f"{emulator.endpoint_url}/{PACKAGES}/{TEMPLATE}", parameters)
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


def create_stack(cloudformation: Any, template_url: str, parameters: Mapping[str, str]) -> None:
    """Create the stack, with what samconfig.toml lets `sam deploy` do, and wait until it is complete.

    Raises:
        DeploymentError: the template or a parameter was refused, or a resource was not created.
    """
    try:
        cloudformation.create_stack(
            StackName=STACK,
            TemplateURL=template_url,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            OnFailure="DO_NOTHING",
        )
        waited = {"Delay": POLL_SECONDS, "MaxAttempts": round(CREATION_SECONDS / POLL_SECONDS)}
        cloudformation.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig=waited)
    except (ClientError, WaiterError) as error:
        raise DeploymentError("\n".join(["the stack was not created:", *reasons(cloudformation, error)])) from error


def reasons(cloudformation: Any, error: ClientError | WaiterError) -> list[str]:
    """Return why resources failed, or the call did."""
    if isinstance(error, ClientError):
        return [str(error)]
    events = cloudformation.describe_stack_events(StackName=STACK)["StackEvents"]
    failed = [each for each in events if each["ResourceStatus"].endswith("_FAILED")]
    return [f"{each['LogicalResourceId']}: {each.get('ResourceStatusReason', '')}" for each in failed] or [str(error)]


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
