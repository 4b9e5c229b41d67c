"""completion: scripts for shells, and what they are answered."""

import os
import subprocess
import sys

import pytest

from fakes.cli_session import invoke

pytestmark = pytest.mark.slow

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def program(tmp_path):
    """A folder with the command as a program, for PATH."""
    program = tmp_path / "relaunch"
    program.write_text(f"#!{sys.executable}\nfrom relaunch_cli.main import main\nmain()\n", encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def run(program, *command: str, **variables: str) -> str:
    environment = {
        "PATH": f"{program}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **variables,
    }
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert result.stderr == ""
    return result.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_asks_the_command_in_its_shells_way(shell):
    result = invoke("completion", shell)

    assert result.exit_code == 0
    assert f"_RELAUNCH_COMPLETE=complete_{shell}" in result.stdout


def test_an_unknown_shell_is_refused():
    assert invoke("completion", "tcsh").exit_code == 2


def test_bash_completes_by_the_script(program):
    script = (
        'eval "$(relaunch completion bash)"; COMP_WORDS=(relaunch defi); COMP_CWORD=1; _relaunch_completion relaunch'
    )

    assert run(program, "bash", "-c", f'{script}; echo "${{COMPREPLY[@]}}"') == "definitions\n"


@pytest.mark.parametrize(
    ("shell", "variables", "expected"),
    [
        ("bash", {"COMP_WORDS": "relaunch definitions sh", "COMP_CWORD": "2"}, "show"),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "relaunch logs --ta"}, '"--tail"'),
        ("fish", {"_TYPER_COMPLETE_ARGS": "relaunch ret", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}, "retry\t"),
    ],
)
def test_each_shell_is_answered(program, shell, variables, expected):
    assert expected in run(program, str(program / "relaunch"), _RELAUNCH_COMPLETE=f"complete_{shell}", **variables)


def test_without_a_stack_no_job_is_completed_and_nothing_is_said(program):
    variables = {"COMP_WORDS": "relaunch cancel x", "COMP_CWORD": "2", "_RELAUNCH_COMPLETE": "complete_bash"}

    assert run(program, str(program / "relaunch"), **variables).strip() == ""
