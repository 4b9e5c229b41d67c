"""From an empty account to a task that runs: commands, questions, seconds, resources.

The account is the local one (`relaunch_local.stack.empty_account`): the emulator makes resources at once, where AWS
takes minutes for some, so the seconds are those of the command, of SAM CLI and of the region's delays divided by the
speed. One round only.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.errors import NotMeasurableError
from benchmarks.session import Session
from benchmarks.tables import Table
from relaunch_local.stack.containers import EXAMPLES, ImageFiles
from relaunch_local.stack.deployment import read_stack
from relaunch_local.stack.empty_account import EmptyAccount, empty_account

COMMAND = Path(sys.executable).with_name("relaunch")
STACKS = ("relaunch-training", "relaunch-machines", "relaunch")
TIMEOUT_SECONDS = 120.0
TAG = "demo-4b1d8e6f02a97c35e8d0714b6a2f93c5d8e07b1a"


def measure(_session: Session) -> list[Table]:
    """Deploy into an empty account, and submit a job."""
    with empty_account() as account, tempfile.TemporaryDirectory() as folder:
        rows = [("relaunch deploy --yes", *_run(account, folder, "deploy", "--yes"))]
        subprocess.run(["git", "init", "--quiet", folder], check=True)
        training = read_stack(account.emulator, "relaunch-training")[0]
        account.join("relaunch", training)
        rows.append(
            (
                "relaunch init --yes",
                *_run(account, folder, "init", "--name", "demo", "--command", "python -m train", "--yes"),
            )
        )
        started = time.perf_counter()
        list(account.images.push(training["RepositoryName"], [TAG], ImageFiles(EXAMPLES)))
        _wait_until_running(account, folder)
        rows.append(("git push: from the image in ECR until the task is RUNNING", time.perf_counter() - started, ""))
        made = [(name, len(read_stack(account.emulator, name)[1])) for name in STACKS]
        idle = json.loads(_run(account, folder, "deploy", "--dry-run", "--json")[1])
    in_all = sum(row[1] for row in rows)
    return [
        Table(
            "From an empty account to RUNNING: a question for each command, answered by --yes",
            ("command", "seconds"),
            [*((row[0], row[1]) for row in rows), ("in all", in_all)],
            (
                "The image is built and pushed by a workflow at GitHub; here it is one call, and ECR's event another.",
                "No emulator takes the time that CloudFormation, EC2 and an image's pull take on AWS.",
            ),
        ),
        Table("Resources made", ("stack", "resources"), [*made, ("in all", sum(count for _, count in made))]),
        Table(
            f"While nothing is trained, list prices of {idle['prices_of']}",
            ("item", "USD a month"),
            [*((each["what"], each["usd_per_month"]) for each in idle["idle"]), ("in all", idle["idle_usd_per_month"])],
        ),
    ]


def _run(account: EmptyAccount, folder: str, *arguments: str) -> tuple[float, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RELAUNCH_"))}
    environment: Mapping[str, Any] = {**kept, **account.environment()}
    started = time.perf_counter()
    done = subprocess.run(
        [COMMAND, *arguments],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasurableError(f"relaunch {arguments[0]} failed: {done.stderr[-1000:]}")
    return time.perf_counter() - started, done.stdout


def _wait_until_running(account: EmptyAccount, folder: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        jobs = json.loads(_run(account, folder, "ps", "--all", "--json")[1])["jobs"]
        if jobs and jobs[0]["state"] in {"RUNNING", "SUCCEEDED"}:
            return
    raise NotMeasurableError(f"no task was RUNNING within {TIMEOUT_SECONDS:.0f} s")
