"""The command as a whole."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from fakes.repository import REPOSITORY
from relaunch_cli.app import COMMANDS, app

STACK_COMMANDS = (
    *("apply", "submit", "wait", "retry", "plan", "ps", "show", "explain", "logs", "cancel", "open", "definitions"),
    *("events", "machines", "budgets", "lost"),
)


IMPORTS_IN_FUNCTIONS = {
    "app.py": 2,
    "aws/connection.py": 27,
    "bugs.py": 1,
    "commands/ps.py": 3,
    "errors.py": 3,
    "job_nodes.py": 2,
    "lookup.py": 1,
    "main.py": 1,
    "options.py": 1,
    "planning.py": 4,
    "terminal.py": 2,
    "value_completions.py": 11,
    "views/plan.py": 1,
    "views/screen.py": 1,
}


def test_help_lists_every_command_and_the_exit_codes():
    text = CliRunner().invoke(app, ["--help"]).stdout

    for name in (*STACK_COMMANDS, "dead-letters", "webhook", "local", "schema", "completion"):
        assert f"\n  {name} " in text
    assert "130 cancelled" in text


@pytest.mark.parametrize("command", STACK_COMMANDS)
def test_every_command_knows_json_and_the_stack(command):
    text = CliRunner().invoke(app, [command, "--help"]).stdout

    assert "--json" in text
    assert "RELAUNCH_STACK" in text


def test_the_table_of_commands_has_the_first_line_of_the_help_of_each():
    commands = get_command(app).commands

    assert {name: summary for name, (_, summary) in COMMANDS.items()} == {
        name: command.help.splitlines()[0] for name, command in commands.items()
    }


def test_wrong_usage_ends_with_2():
    assert CliRunner().invoke(app, ["submit"]).exit_code == 2
    assert CliRunner().invoke(app, ["nonsense"]).exit_code == 2


def test_the_version_is_that_of_the_package():
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("relaunch 0.")


def test_the_schema_is_that_of_the_documentation():
    written = (REPOSITORY / "docs" / "relaunch.schema.json").read_text(encoding="utf-8")

    assert CliRunner().invoke(app, ["schema"]).stdout == written


_CALLED = """
import sys
from types import SimpleNamespace
from relaunch_cli.app import app
if "--help" in sys.argv:
    app(sys.argv[1:], standalone_mode=False)
    print("\\n".join(sys.modules))
    raise SystemExit
from relaunch_cli.aws.connection import AwsConnection
table = SimpleNamespace(query=lambda **_request: {"Items": []}, meta=SimpleNamespace(endpoint_url=""))
AwsConnection._outputs = lambda self: {"TableName": "jobs"}
session = SimpleNamespace(client=lambda service, config: {"dynamodb": table}[service], region_name="us-east-1")
session.get_credentials = lambda: None
AwsConnection._session = session
try:
    app(sys.argv[1:], standalone_mode=False)
except SystemExit:
    pass
finally:
    print("\\n".join(sys.modules))
"""
_PYDANTIC = {"pydantic", "pydantic_core"}
_HEAVY = {*_PYDANTIC, "httpx", "yaml", "re2", "relaunch.bootstrap", "relaunch.settings", "relaunch.ports.dependencies"}
_DECIDING = {f"relaunch.core.{room}" for room in ("lifecycle", "selection", "machines", "triggers", "launches")}
_UNNEEDED = {
    "--help": {
        *_HEAVY,
        *_DECIDING,
        "boto3",
        "botocore",
        "relaunch.core",
        "relaunch_cli.lookup",
        "relaunch_cli.commands",
    },
    "ps": {*_HEAVY, *_DECIDING, "relaunch.core.jobs.job", "relaunch.core.jobs.attempt", "relaunch.usecases"},
    "logs resnet-1": {*_HEAVY, *_DECIDING, "relaunch.core.jobs.job", "relaunch.core.jobs.attempt", "relaunch.usecases"},
    "show --help": {"httpx", "re2", "relaunch.bootstrap", "relaunch.settings", "boto3", "relaunch_cli.planning"},
}


@pytest.mark.parametrize("line", _UNNEEDED)
def test_a_command_imports_what_it_calls_and_nothing_that_takes_long(line):
    command = [sys.executable, "-c", _CALLED, *line.split()]
    environment = {"PYTHONPATH": ":".join(sys.path), "AWS_REGION": "us-east-1", "XDG_CACHE_HOME": "/dev/null/cache"}

    shown = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    imported = set(shown.stdout.split())
    assert "relaunch_cli.lazy_commands" in imported, shown.stderr
    assert sorted(imported & _UNNEEDED[line]) == []


def test_no_more_imports_stand_inside_functions():
    counted = {
        str(file.relative_to(REPOSITORY / "cli" / "relaunch_cli")): sum(_imports_in_functions(file))
        for file in (REPOSITORY / "cli").rglob("*.py")
    }

    # Each line says why (`noqa: PLC0415`), or pyproject.toml does for a whole file. Fewer are welcome.
    assert {file: count for file, count in counted.items() if count} == IMPORTS_IN_FUNCTIONS


def _imports_in_functions(file: Path) -> Iterator[bool]:
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            yield from (isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(function))
