"""The command as a whole."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from relaunch_cli.app import app

COMMANDS = (
    *("apply", "submit", "wait", "retry", "plan", "ps", "show", "explain", "logs", "cancel", "open", "definitions"),
    *("events", "machines"),
)


def test_help_lists_every_command_and_the_exit_codes():
    text = CliRunner().invoke(app, ["--help"]).stdout

    for name in (*COMMANDS, "dead-letters", "webhook", "local", "completion"):
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
