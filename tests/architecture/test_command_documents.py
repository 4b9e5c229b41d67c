"""docs/command.md has the documents of `--json`: every command that prints one, and every name in them."""

import ast
import re

import typer

from architecture.command_page import PAGE
from fakes.repository import REPOSITORY
from relaunch_cli.app import app

SECTION = PAGE[PAGE.index("## `--json`") :]
TABLE = SECTION[SECTION.index("| command | document |") :].partition("\n\n")[0]
VIEWS = REPOSITORY / "cli" / "relaunch_cli" / "views"
# What is in a definition file is documented there.
AS_IN_FILES = {"s3", "schedule", "missed", "sns", "topic", "tag", "suffix", "default"}


def with_json(group: object, path: tuple[str, ...] = ()) -> set[str]:
    found = set()
    for name, command in getattr(group, "commands", {}).items():
        found |= with_json(command, (*path, name))
        is_own = not getattr(command, "commands", None) or command.invoke_without_command
        if is_own and any("--json" in each.opts for each in command.params):
            found.add(" ".join((*path, name)))
    return found


def names_in(*files: str) -> set[str]:
    trees = [ast.parse((VIEWS / file).read_text(encoding="utf-8")) for file in files]
    keys = (key for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Dict) for key in node.keys)
    texts = (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    return {text for text in texts if text.isidentifier()}


def test_every_command_with_json_has_its_document_there():
    documented = {name for row in TABLE.splitlines()[2:] for name in re.findall("`([^`]+)`", row.split(" | ")[0])}

    assert with_json(typer.main.get_command(app)) - documented == set()


def test_every_name_in_a_document_is_there():
    files = [f"json_output/{each.name}" for each in (VIEWS / "json_output").glob("*.py")]
    names = names_in(*files, "deployment.py", "github.py", "init.py", "node_fit.py", "notices.py")

    assert {"job_id", "spent_usd", "idle_usd_per_month"} <= names
    assert names - AS_IN_FILES - set(re.findall(r"\w+", SECTION)) == set()
