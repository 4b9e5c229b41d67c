"""The policies of docs/security.md allow what they are for, and hold the writing of the table to what they say."""

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from architecture import command_page
from architecture.conftest import as_list
from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.builders import make_definition, make_job, make_timeline_entry
from fakes.repository import REPOSITORY
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, S3Trigger, Trigger
from relaunch.core.jobs.budgets import Budget
from relaunch_local.templates.document import read_template

PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
REGISTER, APPLY, SUBMIT, READ, SET_BUDGETS, OPERATE = (
    json.loads(block)["Statement"] for block in re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)
)
# The Service Authorization Reference has no action of this name: a transaction needs the permissions of its parts.
TRANSACTION = {"dynamodb:PutItem", "dynamodb:DeleteItem"}
WITHOUT_PERMISSION = {"sts:GetCallerIdentity"}
TABLE = "jobs"


def actions_of(statements: list[dict[str, Any]]) -> set[str]:
    return {action for statement in statements for action in as_list(statement["Action"])}


def calls_of(command: str) -> set[str]:
    """Return what docs/command.md says that a command calls."""
    page = (REPOSITORY / "docs" / "command.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{command}"))
    service, calls = "", {"cloudformation:DescribeStacks"}
    for name in re.findall(r"`([\w:]+)`", row.rpartition(" | ")[2]):
        service = name.partition(":")[0] if ":" in name else service
        calls.add(name if ":" in name else f"{service}:{name}")
    return calls


def permissions_of(command: str) -> set[str]:
    calls = calls_of(command) - WITHOUT_PERMISSION
    return calls - {"dynamodb:TransactWriteItems"} | (TRANSACTION if "dynamodb:TransactWriteItems" in calls else set())


def test_who_applies_may_call_what_apply_calls_and_nothing_else() -> None:
    assert actions_of(APPLY) == permissions_of("apply FILE")


def test_who_reads_may_call_what_the_reading_commands_call_and_write_nothing() -> None:
    assert {
        call
        for row in ("definitions", "ps", "show", "wait", "logs", "open", "machines", "budgets", "events")
        for call in permissions_of(row)
    } <= (actions_of(READ))
    assert actions_of(READ) & TRANSACTION == set()


def test_who_operates_may_call_beside_that_what_changes_jobs_and_dead_letters() -> None:
    commands = ("submit", "retry", "cancel", "dead-letters list", "dead-letters redrive", "dead-letters drop")
    called = {action for command in commands for action in command_page.actions_of(command)}
    scores = {"ec2:GetSpotPlacementScores", "ec2:DescribeAvailabilityZones"}  # of `plan --all-types` alone

    assert called - scores <= actions_of(APPLY) | actions_of(READ) | actions_of(OPERATE)
    assert actions_of(OPERATE) <= called


def test_who_operates_may_reach_every_dead_letter_and_the_queue_that_it_came_from() -> None:
    named = {arn for each in OPERATE for arn in as_list(each["Resource"]) if ":sqs:" in arn}
    queues = {arn.rpartition(":")[2].removeprefix("vision-").removesuffix("-*") for arn in named}
    dead = {name for name in read_template("template.yaml").resources if name.endswith("DeadLetterQueue")}

    assert dead <= queues
    assert {name.replace("DeadLetterQueue", "Queue") for name in dead} - queues == {"RefreshOfferingsQueue"}


def test_who_submits_may_call_the_function_alone() -> None:
    assert actions_of(SUBMIT) == {"lambda:InvokeFunction"}


@pytest.mark.parametrize(
    "statements",
    [REGISTER, APPLY, SUBMIT, READ, SET_BUDGETS, OPERATE],
    ids=["register", "apply", "submit", "read", "set budgets", "operate"],
)
def test_no_policy_has_an_action_with_a_wildcard(statements: list[dict[str, Any]]) -> None:
    assert [action for action in actions_of(statements) if "*" in action] == []


@pytest.fixture
def client() -> Iterator[Any]:
    with aws_in_process():
        client = make_client("dynamodb")
        create_jobs_table(client, TABLE)
        yield client


def may_write(client: Any, statements: list[dict[str, Any]] = APPLY) -> bool:
    """Return whether the condition of the policy holds for everything that is in the table."""
    (statement,) = (each for each in statements if "dynamodb:LeadingKeys" in str(each.get("Condition")))
    ((_, conditions),) = (each for each in statement["Condition"].items() if each[0].startswith("ForAllValues"))
    patterns = conditions["dynamodb:LeadingKeys"]
    keys = {item["pk"]["S"] for item in client.scan(TableName=TABLE)["Items"]}
    assert keys
    return all(any(fnmatchcase(key, pattern) for pattern in patterns) for key in keys)


@pytest.mark.parametrize(
    ("trigger", "is_allowed"),
    [
        (GithubTrigger("Acme/Vision", "push"), True),
        (S3Trigger("acme-vision-data"), True),
        (ImageTrigger("vision/trainer"), True),
        (GithubTrigger("acme/payroll", "push"), False),
        (S3Trigger("acme-payroll"), False),
        (ImageTrigger("payroll"), False),
    ],
)
def test_definitions_with_triggers_on_the_teams_own_origins_may_be_written(
    client: Any, trigger: Trigger, *, is_allowed: bool
) -> None:
    DynamoDbStores(client, TABLE).definitions.save_definition(make_definition(triggers=(trigger,)))

    assert may_write(client) is is_allowed


def test_jobs_may_not_be_written(client: Any) -> None:
    assert DynamoDbStores(client, TABLE).jobs.create_job(make_job(), [make_timeline_entry()])

    assert not may_write(client)


def test_who_sets_budgets_writes_nothing_but_those(client: Any) -> None:
    called = {action for command in ("budgets set", "budgets remove") for action in command_page.actions_of(command)}
    stores = DynamoDbStores(client, TABLE)
    stores.budgets.set_budget(Budget("stack"), 1.0, 2.0, {"2026-11": 0.5})

    assert called <= actions_of(READ) | actions_of(SET_BUDGETS)
    assert actions_of(SET_BUDGETS) == {"dynamodb:UpdateItem"}
    assert may_write(client, SET_BUDGETS)
    assert stores.jobs.create_job(make_job(), [make_timeline_entry()])
    assert not may_write(client, SET_BUDGETS)
