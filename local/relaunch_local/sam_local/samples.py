"""Which sample is for which function, and what answers to them are good."""

from pathlib import Path
from typing import Any

from relaunch_local.repository import REPOSITORY

# The function that a sample is for, by what its file's name begins with.
FUNCTIONS = {
    "function-url.": "GithubWebhookFunction",
    "sqs.intake.": "SubmitJobFunction",
    "sqs.attempts.": "LaunchAttemptFunction",
    "sqs.warnings.": "ObserveCapacityFunction",
    "sqs.task-changes.": "ObserveTaskFunction",
    "job_api.": "JobApiFunction",
    "schedule.reconcile": "ReconcileFunction",
    "schedule.refresh-offerings": "RefreshOfferingsFunction",
}
# The simulator's EC2 describes no instance types: what can be had of the rest is refreshed, and this is tried again.
EXPECTED_ERRORS = {"schedule.refresh-offerings": "not refreshed: instance types"}


def samples() -> list[tuple[Path, str]]:
    """Return every sample that is an invocation, with its function's logical id."""
    files = sorted((REPOSITORY / "events").glob("*.json"))
    return [(file, name) for file in files for begin, name in FUNCTIONS.items() if file.name.startswith(begin)]


def is_handled(sample: Path, answer: Any) -> bool:
    """Tell whether an answer is none of a function that failed, nor of one that could not do what it was asked."""
    if "errorMessage" in answer:
        return bool(answer["errorMessage"] == EXPECTED_ERRORS.get(sample.stem))
    return not answer.get("batchItemFailures") and int(answer.get("statusCode", 200)) < 300
