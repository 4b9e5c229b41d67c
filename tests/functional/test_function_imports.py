"""What no function, or only some, may import before its first event: each import makes the cold start longer."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from fakes.repository import REPOSITORY
from relaunch.collector import RESTING
from relaunch.late_parts import ALWAYS

FUNCTIONS = (
    "job_api",
    "launch_attempt",
    "observe_capacity",
    "observe_task",
    "plan_api",
    "reconcile",
    "refresh_offerings",
    "request_machine",
    "send_notices",
    "submit_job",
)
# What is not imported, and the functions that may nevertheless.
UNUSED: Mapping[str, tuple[str, ...]] = {
    "asyncio": (),
    "aws_lambda_powertools.utilities.batch": (),
    "aws_lambda_powertools.utilities.data_classes": (),
    "boto3": (),
    "multiprocessing": (),
    # Its models, of which schemas are published; most of what is read is read by its validator alone
    # (adapters/stored_type.py, adapters/received_type.py).
    "pydantic": ("job_api", "plan_api", "refresh_offerings", "send_notices"),
    "pydantic.type_adapter": ("job_api", "plan_api", "refresh_offerings"),
    "re2": (),
    "relaunch.adapters.alibaba": (),
    "relaunch.adapters.aws.ec2": ("launch_attempt", "observe_capacity", "request_machine"),
    "relaunch.adapters.aws.ecs.target": (),
    "relaunch.adapters.definition_file": ("plan_api",),
    "relaunch.adapters.github": ("refresh_offerings", "submit_job"),
    "relaunch.adapters.kubernetes": (),
    "relaunch.adapters.market_thresholds": (),
    "relaunch.adapters.notices": ("send_notices",),
    "relaunch.adapters.offerings": ("launch_attempt", "plan_api"),
    "relaunch.core.lifecycle.wait_explanation": (),
    "relaunch.core.notices": ("send_notices",),
    "relaunch.core.triggers": ("job_api", "plan_api", "refresh_offerings", "submit_job"),
    "s3transfer": (),
    "yaml": ("plan_api",),
}
# Modules of the layer that are imported, and regular expressions that they compile: one more of the former makes a cold
# start up to 2 ms longer, of the latter up to half a millisecond.
MOST = {
    "job_api": (220, 19),
    "launch_attempt": (228, 10),
    "observe_capacity": (197, 8),
    "observe_task": (199, 13),
    "plan_api": (247, 30),
    "reconcile": (201, 8),
    "refresh_offerings": (160, 10),
    "request_machine": (197, 15),
    "send_notices": (189, 10),
    "submit_job": (233, 21),
}


class Start(NamedTuple):
    """What a function has imported and made."""

    modules: list[str]
    patterns: int
    models: list[str]
    collector: int


@pytest.fixture(scope="module")
def imported() -> Mapping[str, Start]:
    environment = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "PYTHONPATH": f"{REPOSITORY / 'functions'}:{REPOSITORY / 'layers' / 'relaunch'}",
        "RELAUNCH_ATTEMPTS_QUEUE_URL": "https://sqs/attempts",
        "RELAUNCH_CAPACITY_PROVIDERS": "g5-spot=g5.xlarge/spot",
        "RELAUNCH_CLUSTER": "relaunch",
        "RELAUNCH_MACHINE_REGISTRATION_MINUTES": "5",
        "RELAUNCH_MACHINE_START_ON_REBALANCE": "false",
        "RELAUNCH_MACHINE_TASK_STOP": "when-next-ready",
        "RELAUNCH_MACHINE_WARM_MINUTES": "0",
        "RELAUNCH_MAX_MACHINES": "20",
        "RELAUNCH_MAX_MACHINES_PRICE_USD_PER_HOUR": "none",
        "RELAUNCH_MAX_PRICE_USD_PER_HOUR": "40",
        "RELAUNCH_MAX_RUNNING_JOBS": "20",
        "RELAUNCH_MAX_SPOT_RATIO": "0.9",
        "RELAUNCH_MAX_WAITING_JOBS": "5000",
        "RELAUNCH_PROVISIONING_DEADLINE_SECONDS": "480",
        "RELAUNCH_TABLE": "jobs",
        "RELAUNCH_TASK_DEFINITION_FAMILIES": "relaunch-*",
        "RELAUNCH_TASK_ROLE_PATH": "relaunch/",
    }
    program = REPOSITORY / "tests" / "functional" / "imports_of_functions.py"
    answer = subprocess.run(
        [sys.executable, program, *FUNCTIONS], env=environment, capture_output=True, text=True, check=False
    )
    assert not answer.returncode, answer.stderr
    return {name: Start(**made) for line in answer.stdout.splitlines() for name, made in json.loads(line).items()}


def test_the_functions_are_those_of_the_application() -> None:
    made = {path.parent.name for path in (REPOSITORY / "functions").glob("*/handler.py")}

    # The webhook lives on the standard library, which tests/functional/test_github_webhook.py holds.
    assert {*FUNCTIONS, "github_webhook"} == made


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_imports_nothing_that_its_first_event_does_not_need(
    function: str, imported: Mapping[str, Start]
) -> None:
    unused = [name for name, users in UNUSED.items() if function not in users]
    loaded = [
        each
        for each in imported[function].modules
        if any(each == name or each.startswith(f"{name}.") for name in unused)
    ]

    assert not loaded
    assert sum(each.partition(".")[0] == "relaunch" for each in imported[function].modules) <= MOST[function][0]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_makes_little_and_looks_for_no_cycles_before_its_first_event(
    function: str, imported: Mapping[str, Start]
) -> None:
    assert imported[function].patterns <= MOST[function][1]
    # plan_api reads definition files, whose models stand in each other.
    assert function == "plan_api" or imported[function].models == []
    assert imported[function].collector == RESTING


def test_no_limit_is_left_behind(imported: Mapping[str, Start]) -> None:
    for name, users in UNUSED.items():
        assert [
            each for each in users if not any(f"{module}.".startswith(f"{name}.") for module in imported[each].modules)
        ] == []


def test_what_is_always_imported_is_of_no_target() -> None:
    """A stack whose jobs run on a cluster of Kubernetes alone needs no code for ECS, and the other way round."""
    always = {module for modules in ALWAYS.values() for module in modules}

    assert [each for each in always if ".ecs" in each or ".kubernetes" in each or ".alibaba" in each] == []
