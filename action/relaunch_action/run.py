"""The step as the runner starts it: reads its variables, and turns every failure into an annotation and exit code 1."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Callable

from relaunch_action import http_requests
from relaunch_action.credentials import Role, RoleCredentials, read_credentials
from relaunch_action.errors import ActionError
from relaunch_action.github import Github
from relaunch_action.http_requests import Send
from relaunch_action.inputs import PLAN_MODE, Inputs, is_allowed_url, parse_inputs
from relaunch_action.job_api import JobApi
from relaunch_action.plan_step import PlanStep
from relaunch_action.pull_request import read_pull_request
from relaunch_action.retries import Patience
from relaunch_action.signature import Credentials
from relaunch_action.step import Step
from relaunch_action.workflow_commands import Runner
from relaunch_action.workflow_run import WorkflowRun, read_workflow_run


def main() -> None:
    """Run the step and exit."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]  # they are text files
    patience = Patience()
    patience.cancellation.watch()
    sys.exit(run(os.environ, Runner(os.environ), http_requests.send, patience))


def run(environment: Mapping[str, str], runner: Runner, send: Send, patience: Patience) -> int:
    """Run the step; return the exit code."""
    try:
        make_step(environment, runner, send, patience).run()
    except ActionError as error:
        runner.error(str(error))
        return 1
    except Exception as error:  # noqa: BLE001 - a traceback of Python's own would show texts as they are
        for line in "".join(traceback.format_exception(type(error), error, error.__traceback__)).splitlines():
            runner.log(line)
        runner.error(f"an error in the action itself: {type(error).__name__}: {error}")
        return 1
    return 0


def make_step(environment: Mapping[str, str], runner: Runner, send: Send, patience: Patience) -> Step | PlanStep:
    """Return the step that the variables describe.

    Raises:
        ActionError: they are invalid; the message lists all errors of the inputs.
    """
    inputs = parse_inputs(environment)
    workflow_run = read_workflow_run(environment)
    credentials = _find_credentials(inputs, workflow_run, environment, runner, send)
    if inputs.mode == PLAN_MODE:
        pull_request = read_pull_request(environment)
        github = _github(inputs, environment, send, patience)
        can_sign_in = _can_sign_in(inputs, environment)
        plan_api = JobApi(inputs.url, inputs.region, credentials, send, patience, _now, "plan_api")
        return PlanStep(inputs, workflow_run, pull_request, plan_api, github, runner, can_sign_in)
    job_api = JobApi(inputs.url, inputs.region, credentials, send, patience, _now)
    return Step(inputs, workflow_run, job_api, runner, patience)


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _github(inputs: Inputs, environment: Mapping[str, str], send: Send, patience: Patience) -> Github:
    url = environment.get("GITHUB_API_URL", "").rstrip("/")
    if not is_allowed_url(url):
        raise ActionError(f"GITHUB_API_URL of the runner is {url!r}, and no https address")
    if not inputs.github_token:
        raise ActionError("the input github-token is empty: leave it out, so that it is the workflow's own")
    return Github(url, environment["GITHUB_REPOSITORY"], inputs.github_token, send, patience)


def _can_sign_in(inputs: Inputs, environment: Mapping[str, str]) -> bool:
    name = "ACTIONS_ID_TOKEN_REQUEST_URL" if inputs.role_arn else "AWS_ACCESS_KEY_ID"
    return bool(environment.get(name))


def _find_credentials(
    inputs: Inputs, workflow_run: WorkflowRun, environment: Mapping[str, str], runner: Runner, send: Send
) -> Callable[[], Credentials]:
    if not inputs.role_arn:
        if inputs.mode == PLAN_MODE:
            return lambda: read_credentials(environment)
        found = read_credentials(environment)
        return lambda: found
    role = Role(inputs.role_arn, inputs.region, workflow_run.session_name)
    return RoleCredentials(role, environment, send, time.monotonic, runner.mask)
