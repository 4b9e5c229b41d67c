"""Files of a repository whose stack was removed and deployed again: names that CloudFormation has given to it since."""

import re
from collections.abc import Mapping

from relaunch_cli.repository_setup.findings import PLAN_FILE
from relaunch_cli.repository_setup.training_stack import TrainingStack

# The name of the stack, the logical ID, and what is random ("Name type", CloudFormation Template Reference).
_GIVEN = re.compile(r"(?P<known>.*-(?:TaskRole|ExecutionRole|SubmitRole|PlanRole|newcheckpointbucket)-)[A-Za-z0-9]+")
_URL = re.compile(r"https://[a-z0-9]+\.lambda-url\.[a-z0-9-]+\.on\.aws/?")


def follow_stack(files: Mapping[str, str | None], stack: TrainingStack) -> dict[str, str | None]:
    """Return the files with the names of the stack as it is, in the place of those that it had before.

    Names of other stacks, accounts and regions stay, and what somebody named; so does the URL of a file without a role
    that has changed.
    """
    return {path: None if text is None else _follow(path, text, stack) for path, text in files.items()}


def _follow(path: str, text: str, stack: TrainingStack) -> str:
    names = (stack.task_role_arn, stack.execution_role_arn, stack.submit_role_arn, stack.plan_role_arn)
    followed = text
    for name in (*names, stack.checkpoint_bucket):
        if given := _GIVEN.fullmatch(name):
            followed = re.sub(rf"{re.escape(given['known'])}[A-Za-z0-9]+", name, followed)
    url = stack.plan_api_url if path == PLAN_FILE else stack.job_api_url
    return _URL.sub(url, followed) if followed != text and url else followed
