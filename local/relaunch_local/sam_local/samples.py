"""The samples of events/ that functions are invoked with, and what they are filled in with."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from relaunch_local.repository import REPOSITORY
from relaunch_local.stack.emulator import REGION

EVENTS = REPOSITORY / "events"

# Functions by the prefix of their samples' file names.
FUNCTIONS = {
    "function-url.github-": "GithubWebhookFunction",
    "function-url.job-api": "JobApiFunction",
    "sqs.intake.": "SubmitJobFunction",
    "sqs.sns.": "SubmitJobFunction",
    "sqs.attempts.": "LaunchAttemptFunction",
    "sqs.machines.": "RequestMachineFunction",
    "sqs.warnings.": "ObserveCapacityFunction",
    "sqs.task-changes.": "ObserveTaskFunction",
    "sqs.notices.": "SendNoticesFunction",
    "job_api.": "JobApiFunction",
    "plan_api.": "PlanApiFunction",
    "schedule.reconcile": "ReconcileFunction",
    "schedule.refresh-offerings": "RefreshOfferingsFunction",
}
_SAMPLES_REGION = "us-east-1"
TOPIC = f"arn:aws:sns:{REGION}:111122223333:features"
"""The topic of the sample of one, as it is filled in."""

SNS_QUEUE = f"arn:aws:sqs:{REGION}:111122223333:relaunch-SnsQueue-EXAMPLE"
"""The queue of that sample, as it is filled in with the region alone."""
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z")

Names = Mapping[str, str]
"""Names in a sample, such as that of its job, with those in the local world that take their place."""


class SampleError(Exception):
    """A sample has not the name that is to be filled in."""


def samples() -> dict[str, str]:
    """Return the logical id of the function of every sample of an invocation, by the name of its file."""
    names = sorted(file.stem for file in EVENTS.glob("*.json"))
    return {name: function for name in names for begin, function in FUNCTIONS.items() if name.startswith(begin)}


def read_sample(name: str) -> str:
    """Return the content of a sample."""
    return (EVENTS / f"{name}.json").read_text(encoding="utf-8")


def fill_in(sample: str, names: Names, now: datetime) -> str:
    """Return a sample that is about what is there now: with these names, this region, and times until now.

    Without names it is returned as it is.

    Raises:
        SampleError: the sample has not one of the names.
    """
    if not names:
        return sample
    filled = sample.replace(_SAMPLES_REGION, REGION)
    for name, real in names.items():
        if name not in filled:
            raise SampleError(f"the sample says nothing of {name}")
        filled = filled.replace(name, real)
    times = [datetime.fromisoformat(each) for each in _TIME.findall(filled)]
    later = now - max(times, default=now)

    def shift(time: re.Match[str]) -> str:
        at = (datetime.fromisoformat(time[0]) + later).astimezone(UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    return _TIME.sub(shift, filled)
