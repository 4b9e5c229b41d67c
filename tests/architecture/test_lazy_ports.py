"""Ports are imported when they are used: the table that finds them has what type checkers see."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from fakes.repository import REPOSITORY
from relaunch import late_parts, ports
from relaunch.adapters.aws.dynamodb import late_stores

SOURCE = (REPOSITORY / "layers" / "relaunch" / "relaunch" / "ports" / "__init__.py").read_text(encoding="utf-8")


def test_the_table_of_ports_has_what_type_checkers_see():
    seen = {
        alias.asname: str(node.module).removeprefix("relaunch.ports.")
        for node in ast.walk(ast.parse(SOURCE))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("relaunch.ports.")
        for alias in node.names
    }

    assert seen == ports._PLACES
    assert [name for name in seen if not hasattr(ports, name)] == []
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = ports.Nothing


@pytest.mark.parametrize("module", [late_parts, late_stores])
def test_what_is_imported_late_is_what_type_checkers_see(module):
    source = Path(module.__file__).read_text(encoding="utf-8")
    guarded = next(each for each in ast.parse(source).body if isinstance(each, ast.If))
    seen = defaultdict(list)
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        seen[node.module] += [alias.asname for alias in node.names]

    assert {name: tuple(own) for name, own in seen.items()} == dict(module.NAMES)


def test_an_error_of_ports_is_imported_alone():
    program = "import sys; from relaunch.ports import TransientError; print(*sys.modules)"

    shown = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert {name for name in shown.stdout.split() if name.startswith("relaunch.")} == {
        "relaunch.ports",
        "relaunch.ports.errors",
    }
