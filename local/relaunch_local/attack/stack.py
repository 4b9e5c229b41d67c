"""The application under attack: the webhook and the functions behind it, in a simulated account without faults."""

import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relaunch.adapters.github.signature import SecretRing
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import GithubTrigger, InputRule, JobDefinition, S3Trigger
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobSummary
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.entrypoints.intake import handle_message
from relaunch.entrypoints.webhook import handle_request
from relaunch.ports import CapacityProviderOffer, Dependencies, PermanentError
from relaunch_local.ecs import Timing
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.options import Options
from relaunch_local.simulation.scenario import BUCKET, Scenario

REPOSITORY = "acme/vision"
SECRET = "It's a Secret to Everybody"  # noqa: S105 - not a secret
PREVIOUS_SECRET = "It was a secret until 27 hours ago"  # noqa: S105 - not a secret
_NOW = 100_000.0
RECEIVED_AT = "2026-11-03T09:00:00Z"

DEFINITION = JobDefinition(
    name="resnet",
    task_definition="relaunch-resnet",
    accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1, memory_mib=8 * 1024)),
    triggers=(
        GithubTrigger(REPOSITORY, "push", branches=("main",), paths=("train/**",)),
        GithubTrigger(REPOSITORY, "workflow_dispatch"),
        GithubTrigger(REPOSITORY, "repository_dispatch"),
        GithubTrigger(REPOSITORY, "workflow_run", workflows=("CI", "Build image")),
        GithubTrigger(REPOSITORY, "release"),
        S3Trigger(BUCKET, prefix="images/", suffix=".manifest"),
    ),
    inputs={"epochs": InputRule("[0-9]{1,3}", "10"), "learning_rate": InputRule("[0-9.]+", "0.1")},
    environment={"RECIPE": "resnet"},
    max_running_jobs=1_000,
    max_waiting_jobs=10_000,
)


@dataclass
class AttackedStack:
    """A stack with one definition, and what reached its queue."""

    secret: str = SECRET
    """What is stored as the secret of the webhook."""
    grants: TaskDefinitionGrants = field(default_factory=TaskDefinitionGrants)
    messages: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Deploy it, with a secret that was replaced 27 hours ago."""
        self.account = SimulatedAccount(0, Options(without_faults=True, scenario=_scenario(self.grants)))
        stored = {"AWSCURRENT": (self.secret, 0.0), "AWSPREVIOUS": (PREVIOUS_SECRET, -1e6)}
        self._secrets = SecretRing(stored.get, lambda: _NOW, previous_seconds=3_600.0)

    @property
    def deps(self) -> Dependencies:
        """Return the dependencies of the functions."""
        return self.account.deps

    def post(self, headers: Mapping[str, str], body: bytes, path: str = "/") -> int:
        """Send a request to the webhook; return its status. What is queued is in `messages`."""
        request = {
            "version": "2.0",
            "rawPath": path,
            "headers": {"content-type": "application/json", **headers},
            "body": base64.b64encode(body).decode(),
            "isBase64Encoded": True,
        }
        response = handle_request(request, self._secrets, self.messages.append, _discard, RECEIVED_AT)
        return int(str(response["statusCode"]))

    def handle(self, message: str) -> str | None:
        """Handle a message of the intake queue; return why it was refused, None if it was handled.

        Every exception but PermanentError is propagated.
        """
        # Limits of AWS on the rate of calls are none of an attack's business.
        self.account.clock.advance(10.0)
        try:
            handle_message(message, self.deps)
        except PermanentError as error:
            return str(error)
        return None

    def jobs(self) -> list[JobSummary]:
        """Return all jobs."""
        return self.deps.jobs.list_jobs(1_000)[0]


def sign(body: bytes, secret: str = SECRET) -> str:
    """Return the value of X-Hub-Signature-256."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"


def signed_headers(event: str, body: bytes, delivery: str = "guid-1") -> dict[str, str]:
    """Return the headers of a delivery as GitHub sends it."""
    return {"x-github-event": event, "x-github-delivery": delivery, "x-hub-signature-256": sign(body)}


def to_body(payload: Any) -> bytes:
    """Write a payload as GitHub does."""
    return json.dumps(payload).encode()


def _discard(_line: str) -> None:
    """Write no log."""


def _scenario(grants: TaskDefinitionGrants) -> Scenario:
    provider = CapacityProviderOffer("gpus", "g4dn.xlarge", PurchaseOption.ON_DEMAND)
    return Scenario(
        intensity=1.0,
        chaos_seconds=0.0,
        providers=(provider,),
        capacity={provider.name: None},
        definitions=(DEFINITION,),
        recipes={DEFINITION.name: Recipe(work_seconds=60.0, checkpoint_seconds=None)},
        events=(),
        limits=StackLimits(max_running_jobs=1_000, task_definitions=grants),
        timing=Timing(),
        provisioning_quota=500,
        # The application is attacked, so IAM does not help it.
        granted={"TaskDefinitionFamilies": "any", "TaskRolePath": "*"},
    )
