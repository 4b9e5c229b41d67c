"""The command as a whole."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fakes.repository import REPOSITORY
from relaunch_cli.app import app

COMMANDS = (
    *("apply", "submit", "wait", "retry", "plan", "ps", "show", "explain", "logs", "cancel", "open", "definitions"),
    *("events", "machines"),
)


def test_help_lists_every_command_and_the_exit_codes():
    text = CliRunner().invoke(app, ["--help"]).stdout

    for name in (*COMMANDS, "dead-letters", "webhook", "local", "schema", "completion"):
        assert f"\n  {name} " in text
    assert "130 cancelled" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_knows_json_and_the_stack(command):
    text = CliRunner().invoke(app, [command, "--help"]).stdout

    assert "--json" in text
    assert "RELAUNCH_STACK" in text


def test_help_needs_neither_boto3_nor_pydantic():
    code = (
        "import sys\nfrom relaunch_cli.app import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('boto3', 'botocore', 'pydantic', 'yaml') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": ":".join(sys.path)}

    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert output.splitlines()[-1] == "[]"


def test_wrong_usage_ends_with_2():
    assert CliRunner().invoke(app, ["submit"]).exit_code == 2
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


def test_the_version_is_that_of_the_package():
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("relaunch 0.")


def test_the_schema_is_that_of_the_documentation():
    written = (REPOSITORY / "docs" / "relaunch.schema.json").read_text(encoding="utf-8")

    assert CliRunner().invoke(app, ["schema"]).stdout == written


_PS = """
import sys
from types import SimpleNamespace
from relaunch_cli.app import app
from relaunch_cli.aws.connection import AwsConnection
table = SimpleNamespace(query=lambda **_request: {"Items": []})
AwsConnection._outputs = lambda self: {"TableName": "jobs"}
AwsConnection._session = SimpleNamespace(client=lambda service, config: {"dynamodb": table}[service])
app(["ps"], standalone_mode=False)
print("\\n".join(name for name in sys.modules if name.partition(".")[0] in ("relaunch", "httpx", "yaml")))
"""


def test_ps_imports_the_list_of_jobs_and_nothing_of_how_they_are_decided_on():
    shown = subprocess.run([sys.executable, "-c", _PS], capture_output=True, text=True, check=True)
    imported = set(shown.stdout.split())

    assert shown.stderr == "no open jobs; --all includes jobs that have ended\n"
    assert "relaunch.adapters.aws.dynamodb.job_listing" in imported
    unneeded = ("relaunch.bootstrap", "relaunch.settings", "relaunch.usecases", "relaunch.entrypoints", "httpx", "yaml")
    unneeded += tuple(
        f"relaunch.core.{room}" for room in ("lifecycle", "selection", "machines", "triggers", "launches")
    )
    assert sorted(imported.intersection(unneeded)) == []
