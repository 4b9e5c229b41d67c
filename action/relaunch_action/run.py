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
from relaunch_action.http_requests import Send
from relaunch_action.inputs import Inputs, parse_inputs
from relaunch_action.job_api import JobApi
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


def make_step(environment: Mapping[str, str], runner: Runner, send: Send, patience: Patience) -> Step:
    """Return the step that the variables describe.

    Raises:
        ActionError: they are invalid; the message lists all errors of the inputs.
    """
    inputs = parse_inputs(environment)
    workflow_run = read_workflow_run(environment)
    credentials = _find_credentials(inputs, workflow_run, environment, runner, send)
    job_api = JobApi(inputs.url, inputs.region, credentials, send, patience, lambda: datetime.now(timezone.utc))
    return Step(inputs, workflow_run, job_api, runner, patience)


def _find_credentials(
    inputs: Inputs, workflow_run: WorkflowRun, environment: Mapping[str, str], runner: Runner, send: Send
) -> Callable[[], Credentials]:
    if not inputs.role_arn:
        found = read_credentials(environment)
        return lambda: found
    role = Role(inputs.role_arn, inputs.region, workflow_run.session_name)
    return RoleCredentials(role, environment, send, time.monotonic, runner.mask)
