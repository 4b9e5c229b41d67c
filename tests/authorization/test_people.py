"""Each command that docs/security.md gives to a role of people makes only calls that the role allows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from architecture.test_roles_of_people import OPERATOR, READER
from authorization.job_stories import tell_of_a_life_on_machines
from authorization.stories import Stories, make_demo
from fakes.aws import aws_in_process
from fakes.cli_session import invoke
from fakes.dashboard_world import own
from fakes.role_world import FAMILY, REGION, RoleWorld
from relaunch.core.jobs.budgets import Budget
from relaunch_cli.aws.connection import AwsConnection
from relaunch_cli.dashboard.application import Dashboard
from relaunch_cli.dashboard.guard import FORM_FIELD, Guard

DEFINITIONS = f"""jobs:
  demo:
    task_definition: {FAMILY}
    container: main
    accelerator: {{gpu: {{memory: 16GiB}}}}
    checkpoint: s3://acme-checkpoints/demo/
    on:
      - s3: {{bucket: acme-datasets, prefix: in/}}
      - eventbridge: {{pattern: {{source: [relaunch.relaunch]}}}}
      - schedule: {{expression: rate(1 day)}}
"""
Arguments = Callable[[str, Path], list[str]]
COMMANDS: dict[str, Arguments] = {
    "ps": lambda _job, _file: ["ps", "--all"],
    "show": lambda job, _file: ["show", job],
    "explain": lambda job, _file: ["explain", job, "--full"],
    "wait": lambda job, _file: ["wait", job],
    "logs": lambda job, _file: ["logs", job],
    "open": lambda job, _file: ["open", job, "--print"],
    "machines": lambda _job, _file: ["machines"],
    "costs": lambda _job, _file: ["costs"],
    "budgets": lambda _job, _file: ["budgets"],
    "budgets set": lambda _job, _file: ["budgets", "set", "definition/demo", "--monthly", "100"],
    "budgets remove": lambda _job, _file: ["budgets", "remove", "definition/demo", "--yes"],
    "events": lambda _job, _file: ["events"],
    "amis": lambda _job, _file: ["amis"],
    "definitions": lambda _job, _file: ["definitions"],
    "definitions show": lambda _job, _file: ["definitions", "show", "demo"],
    "definitions delete": lambda _job, _file: ["definitions", "delete", "demo", "--yes"],
    "plan": lambda _job, _file: ["plan", "demo"],
    "apply": lambda _job, file: ["apply", str(file)],
    "submit": lambda _job, _file: ["submit", "demo"],
    "retry": lambda job, _file: ["retry", job],
    "cancel": lambda job, _file: ["cancel", job],
    "lost": lambda job, _file: ["lost", job, "--yes"],
    "dead-letters list": lambda _job, _file: ["dead-letters", "list"],
    "dead-letters show": lambda _job, _file: ["dead-letters", "show", "attempts"],
    "dead-letters redrive": lambda _job, _file: ["dead-letters", "redrive", "attempts"],
    "dead-letters drop": lambda _job, _file: ["dead-letters", "drop", "attempts", "--yes"],
}
# They write a script and a schema; the dashboard is asked for its pages below; `init` is tried in an account of its
# own, by tests/real/test_deploy.py.
ELSEWHERE = {"completion", "dashboard", "init", "schema"}


@pytest.fixture(scope="module")
def stack() -> Iterator[tuple[RoleWorld, str]]:
    """A stack with a job that has ended well."""
    with aws_in_process():
        stories = Stories()
        tell_of_a_life_on_machines(stories)
        world = stories.world
        outputs = [{"OutputKey": name, "OutputValue": value} for name, value in world.outputs().items()]
        world.answers |= {
            ("cloudformation", "DescribeStacks"): lambda **_: {"Stacks": [{"Outputs": outputs}]},
            ("logs", "GetLogEvents"): lambda **_: {"events": [], "nextForwardToken": "f", "nextBackwardToken": "b"},
            ("logs", "DescribeLogGroups"): lambda **_: {"logGroups": []},
            ("ssm", "GetParameters"): lambda **_: {"Parameters": [], "InvalidParameters": []},
            ("sts", "GetCallerIdentity"): lambda **_: {"Arn": "arn:aws:iam::111122223333:user/ada"},
            ("events", "ListRules"): lambda **_: {"Rules": []},
            ("events", "PutRule"): lambda **_: {"RuleArn": "arn"},
            ("events", "PutTargets"): lambda **_: {"FailedEntryCount": 0, "FailedEntries": []},
            ("scheduler", "ListSchedules"): lambda **_: {"Schedules": []},
            ("scheduler", "CreateSchedule"): lambda **_: {"ScheduleArn": "arn"},
            ("s3", "HeadBucket"): lambda **_: {"BucketRegion": REGION},
            ("s3", "GetBucketEncryption"): lambda **_: {"ServerSideEncryptionConfiguration": {"Rules": []}},
            ("s3", "GetBucketNotificationConfiguration"): lambda **_: {"EventBridgeConfiguration": {}},
            ("service-quotas", "GetServiceQuota"): lambda **_: {"Quota": {"Value": 64.0}},
            ("ecr", "DescribeRepositories"): lambda **_: {"repositories": [{"repositoryName": "trainer"}]},
            ("ec2", "DescribeAvailabilityZones"): lambda **_: {"AvailabilityZones": [{"ZoneName": "a", "ZoneId": "b"}]},
        }
        (job,), _ = world.stores.jobs.list_jobs(10)
        yield world, job.job_id


def run(story: tuple[RoleWorld, str], role: str, command: str, folder: Path) -> tuple[list[str], str]:
    """Run a command with a role; return what it was refused, and what it said."""
    world, job_id = story
    world.stores.definitions.save_definition(make_demo())
    world.stores.budgets.set_budget(Budget("definition/demo"), 50.0, None, {})
    file = folder / "relaunch.yaml"
    file.write_text(DEFINITIONS)
    connection = AwsConnection("relaunch", REGION)
    connection.__dict__["_session"] = world.session(role)
    before = len(world.refused)
    outcome = invoke(*COMMANDS[command](job_id, file), session=connection)
    return [f"{each.action} on {each.resource}" for each in world.refused[before:]], outcome.stdout + outcome.stderr


@pytest.mark.parametrize("command", [each for each in READER if each not in {*ELSEWHERE, "plan"}])
def test_a_reader_may_run_what_is_given_to_readers(stack: tuple[RoleWorld, str], command: str, tmp_path: Path) -> None:
    refused, said = run(stack, "ReaderRole", command, tmp_path)

    assert refused == [], said
    assert "not authorized" not in said


@pytest.mark.parametrize("command", [each for each in (*READER, *OPERATOR) if each not in ELSEWHERE])
def test_an_operator_may_run_what_is_given_to_operators(
    stack: tuple[RoleWorld, str], command: str, tmp_path: Path
) -> None:
    refused, said = run(stack, "OperatorRole", command, tmp_path)

    assert refused == [], said
    assert "not authorized" not in said


@pytest.mark.parametrize(
    "command", ["apply", "submit", "retry", "definitions delete", "dead-letters list", "budgets set"]
)
def test_a_reader_may_change_nothing(stack: tuple[RoleWorld, str], command: str, tmp_path: Path) -> None:
    refused, _ = run(stack, "ReaderRole", command, tmp_path)

    assert refused


GUARD = Guard(8000)
PAGES = (
    "/",
    "/?state=failed",
    "/jobs/{job}",
    "/jobs/{job}/log",
    "/jobs/{job}/cancel",
    "/jobs/{job}/retry",
    "/jobs/{job}/export",
    "/machines",
    "/costs",
    "/market",
    "/market/g5.xlarge",
    "/definitions",
)
FORMS = ("/jobs/{job}/cancel", "/jobs/{job}/retry", "/definitions/demo/submit")


Ask = Callable[[str, str, str], tuple[list[str], int, str]]


@pytest.fixture
def ask(stack: tuple[RoleWorld, str]) -> Ask:
    """Asks the dashboard with a role; returns what that was refused, the status, and the page."""
    world, job_id = stack
    world.stores.definitions.save_definition(make_demo())

    def answer(role: str, method: str, target: str) -> tuple[list[str], int, str]:
        connection = AwsConnection("relaunch", REGION)
        connection.__dict__["_session"] = world.session(role)
        before = len(world.refused)
        form = urlencode({FORM_FIELD: GUARD.form_token, "key": "k"}).encode() if method == "POST" else b""
        request = own(8000, GUARD, method, target.format(job=job_id), form)
        answered = Dashboard(connection, GUARD, "relaunch").answer(request)
        refused = [f"{each.action} on {each.resource}" for each in world.refused[before:]]
        return refused, answered.status, answered.body.decode()

    return answer


@pytest.mark.parametrize("target", [*PAGES, "/definitions/demo/submit"])
def test_a_reader_sees_every_page_of_the_dashboard(ask: Ask, target: str) -> None:
    refused, status, page = ask("ReaderRole", "GET", target)

    assert (refused, status) == ([], 200), page
    assert "not authorized" not in page
    assert "denies" not in page


@pytest.mark.parametrize("target", FORMS[1:])
def test_a_form_says_to_a_reader_who_may_send_it(ask: Ask, target: str) -> None:
    refused, status, page = ask("ReaderRole", "POST", target)

    assert refused
    assert status == 502
    assert "AWS denies" in page
    assert "whoever has the role OperatorRole may send them" in page


@pytest.mark.parametrize("target", FORMS)
def test_an_operator_may_send_every_form(ask: Ask, target: str) -> None:
    refused, status, page = ask("OperatorRole", "POST", target)

    assert (refused, status) == ([], 303), page
