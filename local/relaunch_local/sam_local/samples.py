"""The samples of events/, the functions they are for, and the expected responses."""

from pathlib import Path
from typing import Any

from relaunch_local.repository import REPOSITORY

# Functions by the prefix of their samples' file names.
FUNCTIONS = {
    "function-url.github-": "GithubWebhookFunction",
    "function-url.job-api": "JobApiFunction",
    "sqs.intake.": "SubmitJobFunction",
    "sqs.attempts.": "LaunchAttemptFunction",
    "sqs.machines.": "RequestMachineFunction",
    "sqs.warnings.": "ObserveCapacityFunction",
    "sqs.task-changes.": "ObserveTaskFunction",
    "job_api.": "JobApiFunction",
    "schedule.reconcile": "ReconcileFunction",
    "schedule.refresh-offerings": "RefreshOfferingsFunction",
}
# The simulator cannot describe all instance types: the rest is refreshed, and these are retried.
EXPECTED_ERRORS = {"schedule.refresh-offerings": "not refreshed: instance types"}


def samples() -> list[tuple[Path, str]]:
    """Return every sample of an invocation with its function's logical id."""
    files = sorted((REPOSITORY / "events").glob("*.json"))
    return [(file, name) for file in files for begin, name in FUNCTIONS.items() if file.name.startswith(begin)]


def is_handled(sample: Path, answer: Any) -> bool:
    """Return whether a response says that the sample was handled."""
    if "errorMessage" in answer:
        return bool(answer["errorMessage"] == EXPECTED_ERRORS.get(sample.stem))
    return not answer.get("batchItemFailures") and int(answer.get("statusCode", 200)) < 300
