"""Standard streams that are closed, full, or in another encoding than UTF-8."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PLAIN = "from relaunch_cli.main import main; main()"
PRINTING = """
from relaunch_cli import app
app.app = lambda: print("gr\u00f6\u00dfe \u2026")
app.run()
"""


def run(program: str, *arguments: str, redirect: str = "", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a shell, with its streams redirected."""
    environment = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"], **variables}
    command = ["bash", "-c", f'"$@" {redirect}', "bash", sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=False, env=environment)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="of Linux alone")
@pytest.mark.parametrize("arguments", [("schema",), ("plan", "--offline", "--gpu", "1", "--json"), ("--help",)])
def test_a_disk_that_is_full_is_no_bug(arguments):
    ended = run(PLAIN, *arguments, redirect="> /dev/full")

    errors = ended.stderr.decode()
    assert ended.returncode == 2
    assert "relaunch: nothing more can be written: No space left on device" in errors
    assert "Traceback" not in errors


def test_a_closed_standard_input_is_an_empty_one():
    ended = run(PLAIN, "plan", "-", "--offline", redirect="<&-")

    assert ended.returncode == 2
    assert "-:1:1: the file is empty" in ended.stderr.decode()


def test_a_closed_standard_output_is_no_bug():
    ended = run(PLAIN, "plan", "--offline", "--gpu", "1", "--json", redirect=">&-")

    assert ended.returncode == 0
    assert "unforeseen" not in ended.stderr.decode()


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", "gr??e ?"), ("latin-1", "größe ?"), ("utf-8", "größe …")])
def test_what_an_encoding_does_not_have_is_a_question_mark(encoding, shown):
    ended = run(PRINTING, PYTHONIOENCODING=encoding)

    assert (ended.returncode, ended.stdout.decode(encoding)) == (0, f"{shown}\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_has_every_character_in_every_encoding(encoding):
    options = ("--target", "kubernetes", "--gpu", "1", "--command", "echo größe…")

    ended = run(
        PLAIN, "plan", *options, "--offline", "--json", PYTHONIOENCODING=encoding, PYTHONUTF8="0", LC_ALL="C.UTF-8"
    )

    (plan,) = json.loads(ended.stdout.decode(encoding))["plans"]
    (container,) = plan["manifest"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["echo", "größe…"]
